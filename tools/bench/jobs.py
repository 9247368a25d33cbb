#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The table of jobs of Documentation/jobs.rst: lines, system calls and microseconds of each job with
hamlyn and with others. Compiles hamlyn's programs from that page and the others' from
tools/bench/jobs; all take turns. What is not installed is left out."""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "Documentation/jobs.rst"
JOBS = {"echo": "echo", "request": "request", "file": "big file, a MiB", "loop": "event loop",
        "publish": "publish, to 4", "fan": "fan-in, of 4",
        "work": "work, by 4", "push": "work, pushed"}
SYSTEMS = {"hamlyn": ("hamlyn", None, None), "sockets": ("sockets", None, None),
           "zeromq": ("ZeroMQ", "libzmq3-dev", "-lzmq"), "nng": ("nng", "libnng-dev", "-lnng"),
           "dbus": ("D-Bus", "libsystemd-dev", "-lsystemd")}
# A call of D-Bus has a reply, and a time to wait for it: its echo is its request
SAME = {("request", "dbus"): "echo"}
# Not in Debian, and so not run: lines of the examples in C of its documentation, counted as all others
# are: request_response/src, of its commit 0204aa74, and publish_subscribe_with_backpressure/src, of
# 2e70c474 (publisher.c) and 8ef7b789 (subscriber.c), below examples/c of eclipse-iceoryx/iceoryx2
DOCUMENTED = {("request", "iceoryx2"): 234, ("publish", "iceoryx2"): 200}
# Rounds of the short run; the long one takes about LONG seconds more
SHORT = {"file": 64, "fan": 4000}
SHORT_ELSE = 2000
LONG = 1.0
COUNTED = {"file": (8, 40)}
COUNTED_ELSE = (400, 4400)


def end_session(leader):
    """A server has a process group of its own, and a session of its program's."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass    # it has ended by itself


def run_whole(command, patience, **options):
    """What it prints; nothing of it is left, however it ends."""
    with subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            said = process.communicate(timeout=patience)[0]
        except BaseException:
            end_session(process.pid)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return said


def blocks():
    """Name: code, of the blocks of the page that have a marker."""
    found = re.findall(r"^\.\. hamlyn-(?:run|file): (\S+).*\n\n\.\. code-block:: c\n\n"
                       r"((?:(?:    .*)?\n)+)", PAGE.read_text(), re.M)
    return {name: re.sub(r"^    ", "", code, flags=re.M) for name, code in found}


def lines_of(code):
    code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), code, flags=re.S)
    code = re.sub(r"//[^\n]*", "", code)
    return sum(1 for line in code.split("\n") if line.strip())


class Bench:
    def __init__(self, args, folder):
        self.args = args
        self.folder = folder
        self.env = dict(os.environ, HAMLYN_DEVICE=f"shm:jobs-{os.getpid()}")
        self.lines, self.programs, self.lost = {}, {}, {}
        self.bus = None

    def compile(self):
        page = blocks()
        (self.folder / "both.h").write_text(page["both.h"])
        for job in self.args.jobs:
            for system, (_, package, library) in SYSTEMS.items():
                other = TOP / f"tools/bench/jobs/{system}-{SAME.get((job, system), job)}.c"
                if system == "hamlyn" and f"job-{job}" in page:
                    code = page[f"job-{job}"]
                elif other.exists():
                    code = other.read_text()
                else:
                    continue
                self.lines[job, system] = lines_of(code)
                source = self.folder / f"{system}-{job}.c"
                source.write_text(code)
                program = source.with_suffix("")
                ours = [str(self.args.build / "libhamlyn.a")] if system == "hamlyn" else []
                done = subprocess.run(
                    ["gcc", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-sign-compare",
                     f"-I{TOP}/uapi", f"-I{TOP}/libhamlyn/include", f"-I{self.folder}", str(source), *ours,
                     *([library] if library else []), "-lpthread", "-o", str(program)],
                    capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    self.programs[job, system] = program
                elif package and "No such file" in done.stderr:
                    print(f"{system}-{job}: left out, it needs {package}", file=sys.stderr)
                else:
                    sys.exit(f"{system}-{job}: {done.stderr}")

    def start_bus(self):
        if not shutil.which("dbus-daemon"):
            self.programs = {key: value for key, value in self.programs.items() if key[1] != "dbus"}
            return
        self.bus = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--print-address=1",
             f"--address=unix:path={self.folder}/bus"], stdout=subprocess.PIPE, text=True)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = self.bus.stdout.readline().strip()

    def run(self, job, system, count, before=()):
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            begin = time.monotonic()
            said = run_whole([*before, str(self.programs[job, system]), str(count)],
                             self.args.patience, cwd=place, env=self.env)
            took = time.monotonic() - begin
            lost = re.search(r"^lost: (\d+)$", said, re.M)
            if lost:
                self.lost.setdefault((job, system), []).append(int(lost[1]))
            return took

    def rounds(self, job, system):
        short = SHORT.get(job, SHORT_ELSE)
        first = self.run(job, system, short)
        one = max((self.run(job, system, 6 * short) - first) / (5 * short), 0)
        more = LONG / one if one else 250 * short
        return short, short + int(min(max(more, 5 * short), 250 * short))

    def measure(self):
        """Microseconds, of paired runs in turn: the order changes from round to round."""
        times = {key: [] for key in self.programs}
        keys = list(self.programs)
        rounds = {key: self.rounds(*key) for key in keys}
        for number in range(self.args.repeat):
            for job, system in keys[number % len(keys):] + keys[:number % len(keys)]:
                short, long = rounds[job, system]
                first = self.run(job, system, short)
                second = self.run(job, system, long)
                times[job, system].append((second - first) * 1e6 / (long - short))
            print(f"round {number + 1} of {self.args.repeat}", file=sys.stderr)
        return times

    def count(self, job, system):
        """System calls of one more."""
        counts = []
        for count in COUNTED.get(job, COUNTED_ELSE):
            said = self.folder / "strace"
            self.run(job, system, count, ["strace", "-f", "-c", "-o", str(said)])
            total = re.search(r"^100\.00\s+\S+\s+\S*\s*(\d+)\s.*total$", said.read_text(), re.M)
            counts.append(int(total[1]))
        short, long = COUNTED.get(job, COUNTED_ELSE)
        return (counts[1] - counts[0]) / (long - short)

    def end(self):
        if self.bus:
            self.bus.send_signal(signal.SIGTERM)
            self.bus.wait()
        for file in Path("/dev/shm").glob(f"*jobs-{os.getpid()}*"):
            file.unlink()


def figure(value):
    # Of a difference: the longer run had less of it, so it is less than runs differ by.
    if value <= 0:
        return "~0"
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"


def table(bench, times, calls):
    rows = [["job", ""] + [name for name, _, _ in SYSTEMS.values()] + ["iceoryx2"]]
    for job in bench.args.jobs:
        title = JOBS[job]
        for what, cell in (
                ("lines", lambda key: str(bench.lines[key])),
                ("system calls", lambda key: figure(calls[key]) if key in calls else "-"),
                ("microseconds", lambda key: figure(statistics.median(times[key]))),
                ("items lost", lambda key: figure(statistics.median(bench.lost[key])))):
            if what == "items lost" and not any(key[0] == job for key in bench.lost):
                continue
            rows.append([title if what == "lines" else "\\", what] +
                        [cell((job, system)) if (job, system) in bench.programs else "-"
                         for system in SYSTEMS] +
                        [str(DOCUMENTED.get((job, "iceoryx2"), "-")) if what == "lines" else "-"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    rows[0][1] = "\\".ljust(widths[1])
    text = [rule, "  ".join(cell.ljust(width) for cell, width in zip(rows[0], widths)).rstrip(), rule]
    text += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in rows[1:]]
    return "\n".join(text + [rule])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=TOP / "build", help="has libhamlyn.a")
    parser.add_argument("--repeat", type=int, default=7, help="paired runs of each (%(default)s)")
    parser.add_argument("--patience", type=float, default=120, help="seconds for a run")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), metavar="JOB",
                        help="these only, which are not written: " + ", ".join(JOBS))
    parser.add_argument("--write", action="store_true", help="the table into Documentation/jobs.rst")
    args = parser.parse_args()
    args.build = args.build.resolve()
    if args.write and args.jobs != list(JOBS):
        parser.error("--write is for the table of all jobs")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        bench.compile()
        try:
            bench.start_bus()
            times = bench.measure()
            calls = {key: bench.count(*key) for key in bench.programs} if shutil.which("strace") else {}
        finally:
            bench.end()
        text = table(bench, times, calls)
    print(text)
    if args.write:
        page = PAGE.read_text()
        machine = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout
        said = (f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors, Linux {machine.strip()}, "
                f"embedded device, load {os.getloadavg()[0]:.1f}; "
                f"{args.repeat} pairs of runs:")
        PAGE.write_text(re.sub(r"(\.\. BEGIN jobs\n).*(\n\.\. END jobs)",
                               lambda m: f"{m[1]}\n{said}\n\n{text}\n{m[2]}", page, flags=re.S))
    return 0


if __name__ == "__main__":
    sys.exit(main())
