#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What Tempest costs, and what grows with threads, nodes and the segment.

usage: tempest.py [--build DIR] [--runs N] [--json]

Runs DIR/tempest/figures, all of it several times in turns; prints the median of the runs'
medians in microseconds, and whether the gates are kept: the exit status is 1 if one is not.
With --json a row says so, and nothing else: a benchmark's results are kept whatever they are.
For figures that mean something nobody else uses the machine, or by "chrt -r 1"."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

NODES = (1, 2, 4, 8, 16, 32)
SIZES = ("1G", "8G", "64G")
SECONDS = 300
LINE = re.compile(r"^# (.+?) +median +([0-9.]+) us")

FETCH = "fetch of a block, home on another node"
LOCAL = "block fault to resumed, checked load"

# What is measured: the most microseconds that it may take
GATES = {
    "block fault to resumed, plain store": 12,
    "block fault to resumed, checked store": 12,
    "downgrade, all other threads asleep": 3,
    "downgrade, another thread running": 15,
}
FETCH_GATE = 5    # more than a local fault
RUNNING = "downgrade, another thread running"
INTERRUPT = "membarrier() alone, another thread running"
INTERRUPT_GATE = 1    # more than that, where it alone takes nearly as long as the gate


def run(build, test, nodes=1, pinned=False, **environment):
    """The medians that a test of figures prints, by name."""
    command = [os.path.join(build, "tempest/figures"), test]
    if pinned:    # a processor for each node
        command = ["sh", "-c", 'exec taskset -c "$PMI_RANK" "$@"', "sh"] + command
    if nodes > 1:
        command = [os.path.join(build, "hamlyn-run"), "-n", str(nodes), "--timeout", str(SECONDS)] + command
    ended = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, text=True, timeout=SECONDS + 10, check=True)
    return {m[1]: float(m[2]) for m in map(LINE.match, ended.stdout.splitlines()) if m}


def turn(build):
    """All of it once: (what, segment or None): us."""
    found = {}
    for size in SIZES:
        for test in ("faults", "downgrades", "open-and-close"):
            for what, us in run(build, test, HAMLYN_TEMPEST_SIZE=size).items():
                found[what, size] = us
    parts = [run(build, "out-of-line"), run(build, "by-threads")]
    parts += [run(build, "barriers", nodes) for nodes in NODES]
    if os.cpu_count() > 1:
        parts.append(run(build, "fetches", 2, True, HAMLYN_TEMPEST_SPIN="1000"))
    for part in parts:
        for what, us in part.items():
            found[what, None] = us
    return found


def rows_of(turns):
    """As bench.sh keeps them."""
    for what, size in turns[0]:
        us = statistics.median(each[what, size] for each in turns)
        row = {"test": "tempest", "what": what, "us": round(us, 2), "runs": len(turns)}
        if size:
            row["segment"] = size
        if what in GATES:
            row["gate_us"] = GATES[what]
        if what == RUNNING:
            interrupt = statistics.median(each[INTERRUPT, size] for each in turns)
            row["gate_us"] = round(max(GATES[what], interrupt + INTERRUPT_GATE), 2)
        if what == FETCH:
            local = statistics.median(each[LOCAL, None] for each in turns)
            row["gate_us"] = round(local + FETCH_GATE, 2)
        yield row


def keeps(row):
    return "gate_us" not in row or row["us"] <= row["gate_us"]


def text_of(row):
    name = row["what"] + (f", {row['segment']}" if "segment" in row else "")
    gate = f"  at most {row['gate_us']:6.2f}{'' if keeps(row) else '  EXCEEDED'}" if "gate_us" in row else ""
    return f"{name:<52} {row['us']:8.2f}{gate}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="a JSON object for each figure")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error("--runs: at least 1")
    rows = list(rows_of([turn(args.build) for _ in range(args.runs)]))
    for row in rows:
        if args.json and "gate_us" in row:
            row["kept"] = keeps(row)
        print(json.dumps(row) if args.json else text_of(row))
    return 0 if args.json or all(map(keeps, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
