#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which cache lines a message touches, and who touches them.

usage: layout.py BUILD             print the tables
       layout.py BUILD --update RST   put them between the markers of RST

Runs BUILD/layout-subject under valgrind, names what it touches with pahole, and
fails if a line is written by two parties, or if one is touched that the table
WHY below does not explain."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))

import lines  # noqa: E402
import rst    # noqa: E402

# Why is it touched at all? By object; then by the number of its line, or "".
WHY = {
    "h_ticket": "whom to send to, where, by which key",
    "h_terminus": "the library's side of the terminus",
    "h_nq": "the library's side of the NQ",
    "h_dev": "which kind of device it is",
    "payload to send": "the message",
    "entry taken": "the notification, for the caller",
    "stack": "registers saved, packet header",
    "constants of the program": "calls by pointer, constants",
    "terminus status": {"": "", 0: "B2: does anybody poll?", 1: "B6: buffers may be reused"},
    "entry status": "B6: was there an error? Read only: it nearly always was 0",
    "shm_sender": "the core's side of the terminus",
    "shm_dev": "where this process has the segment",
    "segment head": "H 2.8: is the NIC up?",
    "terminus record": "B8: who revokes must see who is inside; counters",
    "slot record": "key, bounds, mode, where the area is",
    "NQCB record": "the next position; B5: does anybody sleep?",
    "NQ control": "B4: entries taken; the sender looks once a lap",
    "NQ ring head": "entries lost",
    "NQ entry": "B3: the notification",
    "message area": "the message itself, where the receiver wants it",
    "metadata entry": "metadata",
    "work queue entry": {"": "", 0: "the request", 1: "payload by direct I/O"},
    "work queue control": "B1: producer index",
    "hml_nic": "packet size, host, slot table",
    "hml_link": "H 2.8: is the NIC up?",
    "hml_terminus": "the core's side of the terminus",
    "hml_stats": "counters",
    "hml_slot": "key, bounds, mode, where the area is",
    "hml_nq": "the next position; B5: does anybody sleep?",
}

STRUCTS = (
    ("hamlyn_trb", "sender", "NIC"),
    ("hamlyn_wq_control", "sender", "NIC"),
    ("hamlyn_terminus_status", "NIC", "sender"),
    ("hamlyn_nq_entry", "NIC", "receiver"),
    ("hamlyn_nq_ring", "NIC", "receiver"),
    ("hamlyn_nq_control", "receiver", "NIC"),
    ("hamlyn_metadata", "both, by design", "both"),
    ("hml_nq", "NIC; sleepers arm it", "NIC"),
    ("hml_slot", "owner's calls; counters: NIC", "NIC"),
    ("shm_terminus", "its sender", "who revokes"),
    ("shm_nq", "senders; sleepers arm it", "senders"),
    ("shm_slot", "owner's calls; counters: senders", "senders"),
)

DRIVER_STRUCTS = (
    ("hml_term", "engine; doorbells", "engine"),
    ("hml_slot_object", "owner's calls; counters: NIC", "NIC"),
    ("hml_nqueue", "NIC; owner's calls", "NIC"),
    ("hml_engine", "engine; doorbells", "engine"),
    ("hml_device", "administrators", "NIC"),
)

STEPS = {"send": "h_send_msg()", "engine": "hml_tx_run()", "poll": "h_recv(), nothing there",
         "take": "h_recv(), message there"}


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300,
                          **more).stdout


def trace(subject, *words):
    """What lines.py finds out about a run of the subject."""
    with tempfile.TemporaryDirectory() as folder:
        log, objects = os.path.join(folder, "trace"), os.path.join(folder, "objects")
        out = run("valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=" + log,
                  subject, *words)
        with open(objects, "w", encoding="ascii") as file:
            file.write(out)
        return list(lines.analyse(subject, objects, log))


def why(entry):
    reason = WHY.get(entry["object"])
    if isinstance(reason, dict):
        reason = reason.get(entry["line"], reason[""])
    if not reason:
        sys.exit(f"layout.py: nothing explains line {entry['line']} of {entry['object']}, "
                 f"touched by {entry['step']}: say in WHY why it is needed")
    return reason


def short(names, most=5):
    """Members without what they share, and not all of them."""
    names = [name.rsplit(".", 1)[-1] for name in names if name not in ("...", "behind it")]
    names = list(dict.fromkeys(names))
    return " ".join(names[:most]) + (" ..." if len(names) > most else "")


def figure(value):
    return f"{value:.0f}" if value >= 1 or value == 0 else f"{value:.2f}".rstrip("0")


def moves(entry):
    """Does the line go from one processor to another with each message?"""
    if entry["where"] in ("private", "other"):
        return "own"
    if entry["share"] < lines.OFTEN:
        return "seldom"
    if entry["writers"] and entry["readers"]:
        return "yes"
    return "no" if entry["writers"] else "read only"


def step_table(entries, step):
    entries = [e for e in entries if e["step"] == step]
    order = ("yes", "no", "read only", "seldom", "own")
    rows = [["line", "moves", "loads", "stores", "members", "why"]]
    for e in sorted(entries, key=lambda e: (order.index(moves(e)), e["object"], e["line"])):
        rows.append([f"{e['object']} {e['line']}" if e["line"] else e["object"], moves(e),
                     figure(e["loads"]), figure(e["stores"]),
                     short(dict.fromkeys(e["store"] + e["load"])), why(e)])
    return rst.table(rows)


def summary(entries, device):
    """How many lines of each kind."""
    rows = []
    for step in STEPS:
        mine = [e for e in entries if e["step"] == step]
        if mine:
            count = {kind: sum(moves(e) == kind for e in mine)
                     for kind in ("yes", "no", "read only", "own")}
            rows.append([device, STEPS[step], *(str(n) for n in count.values())])
    return rows


def two_writers(entries):
    bad = [e for e in entries if e["step"] in STEPS and len(e["writers"]) > 1]
    for e in bad:
        print(f"layout.py: line {e['line']} of {e['object']} is written by "
              f"{' and '.join(e['writers'])}", file=sys.stderr)
    return bool(bad)


def pairs_table(entries):
    pairs = [(device, e) for device, part in entries.items() for e in part
             if e["step"] == "pair"]
    if not pairs:
        return "None."
    return rst.table([["device", "line", "written by", "beside", "used by"],
                      *([device, e["object"], ", ".join(e["writers"]), e["beside"],
                         ", ".join(e["users"])] for device, e in pairs)])


def structs_table(program, structs):
    rows = [["structure", "bytes", "lines", "written by", "read by"]]
    for name, writer, reader in structs:
        out = run("pahole", "-C", name, program)
        size = re.search(r"/\* size: (\d+), cachelines: (\d+)", out)
        if not size:
            sys.exit(f"layout.py: pahole knows no struct {name}")
        fit = lines.LINE // int(size.group(1))
        count = size.group(2) if fit < 2 else f"1/{fit}"
        rows.append([name, size.group(1), count, writer, reader])
    return rst.table(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--update")
    args = parser.parse_args()
    subject = os.path.join(args.build, "layout-subject")
    entries = {"embedded": trace(subject, "embedded", f"shm:layout-{os.getpid()}"),
               "kernel": trace(subject, "mapped")}
    tables = {"structs": structs_table(subject, STRUCTS),
              "pairs": pairs_table(entries),
              "summary": rst.table([["device", "step", "move", "stay", "read only", "own"],
                                    *(row for device, part in entries.items()
                                      for row in summary(part, device))])}
    module = os.path.join(args.build, "hamlyn.ko")
    if os.path.exists(module):
        tables["driver-structs"] = structs_table(module, DRIVER_STRUCTS)
    for device, part in entries.items():
        for step in STEPS:
            if any(e["step"] == step for e in part):
                tables[f"{device}-{step}"] = step_table(part, step)
    if args.update:
        for name in set(rst.update(args.update, "layout", tables)) - set(tables):
            print(f"layout.py: there is no table {name}", file=sys.stderr)
    else:
        for name, text in tables.items():
            print(f"{name}\n\n{text}\n")
    # All parties' checks: computed, so that the list above is complete when it fails
    if any([two_writers(part) for part in entries.values()]):
        sys.exit(1)


if __name__ == "__main__":
    main()
