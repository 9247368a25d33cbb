#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measures Active Messages beside TCP and AF_UNIX, in turns, and prints JSON lines.

What is compared takes turns within each repetition; figures are medians of the
repetitions. Programs that fail end it."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = "16,256,1K,4K,16K,64K,256K,1M"


def lines(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **(env or {})}, timeout=600)
    if done.returncode:
        sys.exit(f"bench.py: {' '.join(map(str, command))}: status {done.returncode}\n"
                 f"{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def tell(**result):
    print(json.dumps(result), flush=True)


class Bench:
    def __init__(self, args):
        self.args = args
        self.run = [args.build / "hamlyn-run", *(["--device", args.device] if args.device else [])]
        self.perf = [args.build / "hamlyn-perf", "--json", "--quiet",
                     *(["--device", args.device] if args.device else [])]

    def program(self, name, *options, processes=2, env=None):
        return lines([*self.run, "-n", str(processes), "--timeout", "300",
                      self.args.build / "am" / name, "--json", *options], env)

    def measured(self, test, *options):
        return lines([*self.perf, "--reps", "1", *options, test])

    def turns(self):
        for turn in range(self.args.reps):
            print(f"bench.py: turn {turn + 1} of {self.args.reps}", file=sys.stderr)
            yield turn

    def round_trips(self):
        """P 7.1.1, L 4.1: four words there and back, beside as many bytes of others."""
        rtt = {}
        for _ in self.turns():
            for name, system in (("ping_pong", "GAM"), ("hpam_pingpong", "HPAM")):
                for r in self.program(name):
                    if r["test"] == name:
                        rtt.setdefault(system, []).append(r["median_ns"])
            for r in self.measured("lat", "--sizes", "32", "--systems",
                                   "unix-stream,unix-stream-spin,tcp,tcp-spin,limit"):
                if r["test"] == "lat":
                    rtt.setdefault(r["system"], []).append(r["rtt_median_ns"])
        gam = statistics.median(rtt["GAM"])
        for system, values in rtt.items():
            median = statistics.median(values)
            tell(test="am-rtt", system=system, size=32, rtt_ns=median, ratio=median / gam)

    def bandwidths(self):
        """P 7.1.2, L 4.1, and the size that half of the highest is reached at."""
        rates = {}
        for _ in self.turns():
            for name in ("ping_bulk", "thru_bulk"):
                for r in self.program(name, "--sizes", SIZES if name == "thru_bulk" else
                                      "16,256,1K,4K,16320"):
                    if r["test"] == name:
                        rates.setdefault((name, r["size"]), []).append(r["bytes_per_s"])
            for r in self.measured("bw", "--sizes", SIZES, "--systems",
                                   "unix-stream,tcp,unix-stream-spin,tcp-spin,limit"):
                if r["test"] == "bw":
                    rates.setdefault((r["system"], r["size"]), []).append(r["bytes_per_s"])
        systems = {}
        for (system, size), values in rates.items():
            systems.setdefault(system, {})[size] = statistics.median(values)
        for system, points in systems.items():
            for size, rate in sorted(points.items()):
                tell(test="am-bw", system=system, size=size, bytes_per_s=rate)
        for system, points in systems.items():
            peak = max(points.values())
            above = [size for size, rate in points.items() if rate >= peak / 2]
            tell(test="am-n-half", system=system, peak_bytes_per_s=peak, least_size=min(above))

    def reliability(self):
        """What sequence numbers, sums, time-outs and saved replies cost where nothing is lost."""
        rate, trip = {"with": [], "without": []}, {"with": [], "without": []}
        for turn in self.turns():
            order = ["with", "without"] if turn % 2 else ["without", "with"]
            for which in order:
                env = {"HAMLYN_AM_RELIABLE": "1" if which == "with" else "0"}
                rate[which].append(self.program("rate", env=env)[0]["msgs_per_s"])
                trip[which].append(self.program("ping_pong", env=env)[0]["median_ns"])
        for which in ("with", "without"):
            tell(test="am-reliability", reliability=which,
                 msgs_per_s=statistics.median(rate[which]),
                 rtt_ns=statistics.median(trip[which]),
                 rate_ratio=statistics.median(
                     a / b for a, b in zip(rate[which], rate["without"])))

    def messages(self):
        """S: how many messages and doorbells a request takes."""
        for options in ((), ("--store", "1M", "--count", "1000")):
            runs = [self.program("rate", *options)[0] for _ in self.turns()]
            tell(test="am-messages", what=runs[0]["test"],
                 **{key: statistics.median(r[key] for r in runs)
                    for key in runs[0] if key.endswith(("_per_request", "msgs_per_s"))})

    def logp(self):
        """L 4.2, Table 4.2; L Figure 4.1 is of the turn whose g is the median."""
        runs = []
        with tempfile.TemporaryDirectory() as folder:
            for turn in self.turns():
                plot = Path(folder, f"{turn}.svg")
                options = ["--plot", plot] if self.args.plot else []
                runs += [(r, plot) for r in self.program("logp", *options)
                         if r["test"] == "logp"]
            runs.sort(key=lambda run: run[0]["g_ns"])
            if self.args.plot:
                shutil.copyfile(runs[(len(runs) - 1) // 2][1], self.args.plot)
        runs = [r for r, _ in runs]
        tell(test="am-logp", **{key: statistics.median(r[key] for r in runs)
                                for key in runs[0] if key.endswith("_ns")})

    def radix(self):
        """L 4.3, Table 4.3: seconds of each phase."""
        for processes in (2, 4, 16):
            phases = {}
            for _ in self.turns():
                for r in self.program("radix", processes=processes):
                    if r["test"] == "radix-phase":
                        name = f"pass {r['pass']} {r['phase']}"
                    elif r["test"] == "radix":
                        name = "total"
                    else:
                        continue
                    phases.setdefault(name, []).append(r["seconds"])
            tell(test="am-radix", processes=processes,
                 **{name: round(statistics.median(values), 4)
                    for name, values in phases.items()})

    def bad_fabrics(self):
        """Every message once, with a tenth of all lost, repeated, delayed, damaged."""
        for name, faults in (("none", "0,0,0,0"), ("lost", "10,0,0,0"),
                             ("repeated", "0,10,0,0"), ("delayed", "0,0,10,0"),
                             ("damaged", "0,0,0,10"), ("all of these", "10,10,10,10")):
            r = self.program("exactly_once_lossy", "--messages", str(self.args.messages), env={
                "HAMLYN_TEST_FAULTS": faults, "HAMLYN_AM_SUMS": "1", "HAMLYN_AM_TIMEOUT_US": "300",
                "HAMLYN_DEVICE": f"shm:am-bench-{os.getpid()},size=256M,guesses=0"})[0]
            tell(test="am-bad-fabric", **{"10 % of packets": name}, messages=r["messages"],
                 msgs_per_s=r["messages_per_s"], sent_again=r["am_retransmissions"],
                 reflected=r["am_reflections"], duplicates=r["am_duplicates"],
                 damaged=r["am_damaged"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build"), help="folder of the programs")
    parser.add_argument("--device", help="what the programs open (default: as they do)")
    parser.add_argument("--reps", type=int, default=5, help="repetitions (default %(default)s)")
    parser.add_argument("--messages", type=int, default=5000000,
                        help="of each process for each bad fabric (default %(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE",
                        help="draw FILE, an SVG of the LogP signature (needs gnuplot)")
    parser.add_argument("part", nargs="*",
                        help="round_trips, bandwidths, reliability, messages, logp, radix,"
                             " bad_fabrics (default: all of them)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    bench = Bench(args)
    parts = {name: getattr(bench, name) for name in
             ("round_trips", "bandwidths", "reliability", "messages", "logp", "radix",
              "bad_fabrics")}
    for name in args.part or parts:
        if name not in parts:
            sys.exit(f"bench.py: there is no part {name}; there are {', '.join(parts)}")
        print(f"bench.py: {name}", file=sys.stderr)
        parts[name]()


if __name__ == "__main__":
    main()
