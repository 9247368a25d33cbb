#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Cache lines that a message touches: reads what the subject said about its
objects and what valgrind's lackey saw it load and store, and prints one JSON
object for each line of each step.

usage: lines.py SUBJECT OBJECTS TRACE"""

import collections
import json
import re
import subprocess
import sys

LINE = 64
STEPS = ("layout_send", "layout_engine", "layout_poll", "layout_take")

Object = collections.namedtuple("Object", "where name type at size stride")


def read_objects(path):
    objects = []
    for text in open(path, encoding="ascii"):
        if text.startswith("object|"):
            _, where, name, kind, at, size, stride = text.rstrip("\n").split("|")
            objects.append(Object(where, name, kind, int(at, 16), int(size), int(stride)))
    return objects


def symbols(program):
    """Address -> name of the markers; ranges of what the program has of its own."""
    markers = {}
    out = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        word = line.split()
        if len(word) == 3 and (word[2] in STEPS or word[2] == "layout_end"):
            markers[int(word[0], 16)] = word[2]
    return markers


MEMBER = re.compile(r"^(?P<decl>.*?);\s*/\*\s*(?P<at>\d+)\s+(?P<size>\d+)\s*\*/")
CLOSE = re.compile(r"^\}\s*(?:__attribute__\(\(.*?\)\)\s*)*(?P<name>\w*)")


def member_name(decl):
    pointer = re.search(r"\(\*\s*(\w+)\)\s*\(", decl)
    if pointer:
        return pointer.group(1)
    decl = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", decl)
    decl = re.sub(r"/\*.*?\*/", "", decl)
    found = re.search(r"(\w+)\s*((?:\[\d+\])*)\s*$", decl)
    return found.group(1) if found else "?"


def fields_of(program, kind):
    """[(offset, size, name)] of a structure, members of members included."""
    out = subprocess.run(["pahole", "--expand_types", "-C", kind, program],
                         check=True, capture_output=True, text=True).stdout
    fields = []
    open_at = []                    # index of the first field of each open structure
    for raw in out.splitlines():
        line = re.sub(r"^\s*(/\* typedef .*?\*/)?\s*", "", raw)
        if line.startswith("/*") or not line:
            continue
        if line.endswith("{") or re.search(r"\{\s*$", line):
            open_at.append(len(fields))
            continue
        if line.startswith("}"):
            first = open_at.pop()
            name = CLOSE.match(line).group("name")
            if open_at and name and name != "__attribute__":
                fields[first:] = [(o, n, name + "." + f) for o, n, f in fields[first:]]
            continue
        found = MEMBER.match(line)
        if found and open_at:
            fields.append((int(found.group("at")), int(found.group("size")),
                           member_name(found.group("decl"))))
    return fields


class Layout:
    def __init__(self, program, objects):
        self.program = program
        self.objects = objects
        self.fields = {}

    def find(self, address):
        for o in self.objects:
            if o.at <= address < o.at + o.size:
                return o
        return None

    def names(self, o, offset, size):
        """Members of @o in [offset, offset + size)."""
        if not o.type:
            return ["..."]
        if o.type not in self.fields:
            self.fields[o.type] = fields_of(self.program, o.type)
        names = [f for at, n, f in self.fields[o.type]
                 if at < offset + size and offset < at + n]
        return names or ["behind it"]


def steps(trace, markers):
    """(step, [(kind, address, size)]) for each step after the warm-up."""
    step, accesses = None, []
    for line in trace:
        kind = line[:2].strip()
        if kind not in ("I", "L", "S", "M"):
            continue
        address, size = line[3:].split(",")
        address = int(address, 16)
        if kind == "I":
            mark = markers.get(address)
            if mark == "layout_end":
                yield step, accesses
                step, accesses = None, []
            elif mark:
                step, accesses = mark, []
        elif step:
            accesses.append((kind, address, int(size)))


# Who is at work in a step. The steps of one process are told apart by what they do.
PARTIES = {"layout_send": "sender", "layout_engine": "NIC",
           "layout_poll": "receiver", "layout_take": "receiver"}


def analyse(program, objects_path, trace_path, last=64):
    layout = Layout(program, read_objects(objects_path))
    markers = symbols(program)
    runs = collections.defaultdict(lambda: collections.deque(maxlen=last))
    with open(trace_path, encoding="ascii", errors="replace") as trace:
        for step, accesses in steps(trace, markers):
            runs[step].append(accesses)
    users = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    entries = []
    for step in STEPS:
        if step in runs:
            entries += one_step(layout, step, runs[step], users)
    for entry in entries:
        entry["writers"], entry["readers"] = parties(users, entry.pop("addresses"), last)
    yield from entries
    yield from neighbours(layout, users, last)


# What happens less often than that does not count as steady: once a lap, once a look around
OFTEN = 0.25


def parties(users, lines, last):
    """Who writes the lines often, and who reads them often without writing."""
    sums = collections.defaultdict(lambda: [0, 0])
    for line in lines:
        for party, (loads, stores) in users[line].items():
            sums[party][0] += loads
            sums[party][1] += stores
    writers = [party for party, (_, stores) in sums.items() if stores >= OFTEN * last]
    readers = [party for party, (loads, _) in sums.items()
               if loads >= OFTEN * last and party not in writers]
    return sorted(writers), sorted(readers)


def neighbours(layout, users, last):
    """Some processors fetch lines in pairs: is the other of a pair written by somebody else?"""
    named = {}
    for o in layout.objects:
        if o.where not in ("private", "other") and not o.stride and o.type:
            for line in range(o.at // LINE, (o.at + o.size - 1) // LINE + 1):
                named.setdefault(line, o.name)
    for line in sorted(named):
        other = line ^ 1
        if line > other or other not in named:
            continue
        a, b = parties(users, [line], last), parties(users, [other], last)
        for (writers, _), (others, readers), first, second in (
                (a, b, line, other), (b, a, other, line)):
            if writers and set(others + readers) - set(writers):
                yield {"step": "pair", "object": named[first], "writers": writers,
                       "beside": named[second], "users": sorted(set(others + readers))}


def one_step(layout, step, runs, users):
    seen = {}
    party = PARTIES[step]
    for accesses in runs:
        touched = set()
        for kind, address, size in accesses:
            o = layout.find(address)
            if o is None:
                key = ("other", "constants of the program", 0)
                names = ["..."]
            elif o.name == "stack":
                key = (o.where, "stack", 0)
                names = ["..."]
            else:
                offset = address - o.at
                inside = offset % o.stride if o.stride else offset
                # Which line of the object: counted from where the object begins.
                # Elements of arrays that are shorter than a line count as one.
                line = (address // LINE - (address - inside) // LINE)
                key = (o.where, o.name, line)
                names = layout.names(o, inside, size)
            entry = seen.setdefault(key, {"loads": 0, "stores": 0, "runs": 0,
                                          "load": [], "store": [], "lines": set()})
            entry["lines"].add(address // LINE)
            if key[0] not in ("private", "other"):
                users[address // LINE][party][kind != "L"] += 1
            for bit, what in (("LM", "load"), ("SM", "store")):
                if kind in bit:
                    entry[what + "s"] += 1
                    for name in names:
                        if name not in entry[what]:
                            entry[what].append(name)
            if key not in touched:
                touched.add(key)
                entry["runs"] += 1
    for (where, name, line), e in seen.items():
        yield {"step": step.removeprefix("layout_"), "where": where, "object": name,
               "line": line, "lines": len(e["lines"]),
               "loads": round(e["loads"] / len(runs), 2),
               "stores": round(e["stores"] / len(runs), 2),
               "share": round(e["runs"] / len(runs), 3),
               "load": e["load"], "store": e["store"], "addresses": sorted(e["lines"])}


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    for entry in analyse(*sys.argv[1:]):
        print(json.dumps(entry))


if __name__ == "__main__":
    main()
