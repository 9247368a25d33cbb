#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Instructions of an active message by feature, as HPAM's Table 2 has cycles.

Counts with valgrind's callgrind, the embedded device's NIC core included: runs differ
by one in a hundred. "Flow control/reliability" is what goes away
with HAMLYN_AM_RELIABLE=0; "protection" is the slot's lookup, key, bounds and mode,
counted by source line; "basic" is the rest."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
# Where it is decided who may write what
PROTECTION = {"rx.c": ("plain", "admit_packet", "admit"), "nic.h": ("hml_view_covers",),
              "port_user.h": ("hml_port_slot",)}


def ranges():
    """(file, first line, last line) of the functions that protect."""
    found = []
    for name, functions in PROTECTION.items():
        path = next(p for p in (TOP / "driver/core" / name, TOP / "libhamlyn/src/embedded" / name)
                    if p.exists())
        text = path.read_text().split("\n")
        for function in functions:
            for number, line in enumerate(text):
                if re.match(rf"(?:static|bool|int|struct)\b[^;]*\b{function}\(", line):
                    end = next(n for n in range(number, len(text)) if text[n] == "}")
                    found.append((name, number + 1, end + 1))
    return found


def counted(path):
    """File of callgrind -> {(file, line): instructions}."""
    names, result = {}, {}
    file, line, call = "", 0, False
    for text in path.read_text().split("\n"):
        match = re.match(r"(c?)f[lie]=\((\d+)\)(?: (.*))?$", text)
        if match:
            if match.group(3):
                names[match.group(2)] = os.path.basename(match.group(3))
            if not match.group(1):
                file = names[match.group(2)]
            continue
        if text.startswith("calls="):
            call = True
            continue
        match = re.match(r"([+-]\d+|\d+|\*) (\d+)$", text)
        if not match:
            continue
        where = match.group(1)
        if where != "*":
            line = line + int(where) if where[0] in "+-" else int(where)
        # The line after calls= is what the called function took, which is counted there
        if not call:
            result[file, line] = result.get((file, line), 0) + int(match.group(2))
        call = False
    return result


def measure(build, reliable, count):
    with tempfile.TemporaryDirectory() as work:
        for which in "ab":
            os.mkfifo(f"{work}/turn-{which}")
        command = [build / "hamlyn-run", "-n", "2", "--timeout", "120", "valgrind", "-q",
                   "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=cost_send",
                   "--toggle-collect=cost_receive",
                   f"--callgrind-out-file={work}/out.%q{{PMI_RANK}}",
                   build / "am/cost", "--turns", f"{work}/turn-", "--count", str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={
            **os.environ, "HAMLYN_AM_RELIABLE": reliable, "HAMLYN_AM_TIMEOUT_US": "10000000"})
        if done.returncode:
            sys.exit(f"instructions.py: status {done.returncode}\n{done.stderr}")
        lines = [counted(Path(f"{work}/out.{rank}")) for rank in (0, 1)]
    return [sum(side.values()) / count for side in lines], lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build"), help="folder of the programs")
    parser.add_argument("--count", type=int, default=200, help="messages (default %(default)s)")
    args = parser.parse_args()
    build = args.build.resolve()
    with_all, lines = measure(build, "1", args.count)
    without, _ = measure(build, "0", args.count)
    protection = sum(n for side in lines for (file, line), n in side.items()
                     for name, first, last in ranges()
                     if file == name and first <= line <= last) / args.count
    if not protection:
        sys.exit("instructions.py: the lines that protect are not among those that were counted")
    total, bare = sum(with_all), sum(without)
    for feature, value in (("basic", bare - protection),
                           ("flow control/reliability", total - bare),
                           ("protection", protection), ("total", total),
                           ("of it to send", with_all[0]), ("of it to receive", with_all[1])):
        print(json.dumps({"test": "am-instructions", "feature": feature,
                          "instructions": round(value)}))


if __name__ == "__main__":
    main()
