#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Kills nodes of Tempest programs at random times, also while they start: the others end.

Usage: selftests/tempest/kills.py BUILD-FOLDER [ROUNDS [SEED]]

The launcher is told to let the others be, so that nodes must see by themselves. Fails if one is
still there after some time, which is a bound and no measure; prints the longest time it took.
"""
import os
import random
import signal
import subprocess
import sys
import time

PATIENCE = 30 * int(os.environ.get("HAMLYN_TEST_SCALE", "1"))
LONG_RUN = {"HAMLYN_TEST_ROUNDS": "100000000", "HAMLYN_TEST_SECONDS": "600"}
PROGRAMS = (["stache/litmus", "SB"], ["stache/litmus", "IRIW"], ["tempest/contended", "counts"])
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT)


def children(pid):
    """Of a process, and theirs."""
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as listed:
            found = [int(child) for child in listed.read().split()]
    except OSError:
        pass
    return found + [grandchild for child in found for grandchild in children(child)]


def nodes_of(pid, program):
    """Those that run the program by now."""
    found = []
    for child in children(pid):
        try:
            with open(f"/proc/{child}/cmdline", "rb") as line:
                if line.read().split(b"\0")[0].decode() == program:
                    found.append(child)
        except OSError:
            pass
    return found


def kill_one(build, choose):
    """One run. Returns the seconds until all had ended, or None if there was no node yet."""
    name, test = choose.choice(PROGRAMS)
    number = choose.choice((2, 3, 6))
    view = choose.choice(("userfaultfd", "mprotect"))
    program = f"{build}/{name}"
    with subprocess.Popen([f"{build}/hamlyn-run", "-n", str(number), "--keep-going", program, test],
                          env={**os.environ, **LONG_RUN, "HAMLYN_TEMPEST_VIEW": view},
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL) as job:
        try:
            time.sleep(choose.choice((0.05, 0.2, 0.8)) * 2 * choose.random())
            nodes = nodes_of(job.pid, program)
            if not nodes:
                return None
            began = time.monotonic()
            os.kill(choose.choice(nodes), choose.choice(SIGNALS))
            job.wait(PATIENCE)
            return time.monotonic() - began
        except ProcessLookupError:
            return None
        except subprocess.TimeoutExpired:
            sys.exit(f"{name} {test}, {number} nodes, {view}: not ended after {PATIENCE} s")
        finally:
            job.terminate()


def main():
    """The command line."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    build = os.path.realpath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = sys.argv[3] if len(sys.argv) > 3 else str(time.time_ns())
    print(f"# seed {seed}")
    choose = random.Random(seed)
    took = [seconds for seconds in (kill_one(build, choose) for _ in range(rounds)) if seconds]
    print(f"# {len(took)} killed, all had ended after {max(took, default=0):.2f} s at most")
    sys.exit(not took)


if __name__ == "__main__":
    main()
