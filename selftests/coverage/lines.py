#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Counts how often each line was executed, from what gcov knows of it.

usage: lines.py collect --gcov GCOV --root ROOT --under FOLDER --out FILE DIR...
           what all *.gcno below each DIR, with the *.gcda beside them, say of the
           sources in ROOT/FOLDER, added up
       lines.py check --name NAME --least PERCENT [--only GLOB] [--but GLOB] FILE...
           the table of a part, all FILEs added up, and as a test whether as
           many lines as that were executed; ends with "N passed, N failed"
       lines.py uncovered [--explained RST] FILE...
           the lines that were not executed, by file and function; with an RST,
           only of functions that it does not name
       lines.py update RST NAME=FILE[,FILE]...
           puts the tables between ".. BEGIN coverage:NAME" and ".. END coverage:NAME"

A FILE is JSON: source: line: [count, function]."""

import argparse
import fnmatch
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench"))

import rst

TOTAL = "all"


# ---- what gcov says ----

def add(lines, more):
    """Add the counts of more to those of lines. A line of a header, or of an inline
    function, is in several objects: it is covered when it is in one of them."""
    for source, counts in more.items():
        known = lines.setdefault(source, {})
        for number, (count, function) in counts.items():
            known[number] = [known.get(number, (0,))[0] + count, function]


def of_object(gcov, notes, root, under):
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run([gcov, "--json-format", notes], cwd=work,
                              capture_output=True, text=True, check=False)
        reports = [name for name in os.listdir(work) if name.endswith(".gcov.json.gz")]
        if done.returncode or "mismatch" in done.stderr or not reports:
            sys.exit(f"lines.py: {gcov} cannot read {notes}: {done.stderr.strip()}")
        lines = {}
        for name in reports:
            with gzip.open(os.path.join(work, name), "rt", encoding="utf-8") as file:
                add(lines, of_report(json.load(file), root, under))
    return lines


def functions_of(path):
    """The function that each line of a source is in, as its style shows it. gcov does not
    know it where the compiler has put all of a function into others."""
    names = [""]
    name = ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            match = re.match(r"[A-Za-z_][\w \t*]*?\b(\w+)\(", line)
            if match and not line.rstrip().endswith(";"):
                name = match.group(1)
            names.append(name)
    return names


def of_report(report, root, under):
    lines = {}
    for entry in report["files"]:
        path = os.path.realpath(os.path.join(report["current_working_directory"], entry["file"]))
        source = os.path.relpath(path, root)
        if not source.startswith(under + "/"):
            continue
        counts = {}
        functions = functions_of(path)
        for line in entry["lines"]:
            number = line["line_number"]
            before = counts.get(str(number), (0,))[0]
            counts[str(number)] = [before + line["count"], functions[number]]
        add(lines, {source: counts})
    return lines


def collect(args):
    root = os.path.realpath(args.root)
    lines = {}
    objects = 0
    for folder in args.dirs:
        for place, _, names in os.walk(folder):
            for name in sorted(names):
                if name.endswith(".gcno"):
                    notes = os.path.abspath(os.path.join(place, name))
                    add(lines, of_object(args.gcov, notes, root, args.under))
                    objects += 1
    if not lines:
        sys.exit(f"lines.py: {objects} objects, and none is of {args.under}/")
    with open(args.out + ".tmp", "w", encoding="utf-8") as file:
        json.dump(lines, file)
    os.replace(args.out + ".tmp", args.out)


# ---- tables ----

def load(paths):
    lines = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            add(lines, json.load(file))
    return lines


def chosen(lines, only, but):
    return {source: counts for source, counts in lines.items()
            if fnmatch.fnmatch(source, only) and not (but and fnmatch.fnmatch(source, but))}


def percent(covered, total):
    """Rounded down, so that 100 % is all."""
    return f"{covered * 1000 // total / 10:.1f}" if total else "-"


def figures(lines):
    rows = []
    for source in sorted(lines):
        counts = lines[source].values()
        rows.append((source, len(counts), sum(1 for count, _ in counts if count)))
    rows.append((TOTAL, sum(row[1] for row in rows), sum(row[2] for row in rows)))
    return rows


def table(lines):
    rows = [("file", "lines", "covered", "percent")]
    rows += [(name, str(total), str(covered), percent(covered, total))
             for name, total, covered in figures(lines)]
    return rst.table(rows)


def check(args):
    lines = chosen(load(args.files), args.only, args.but)
    print(table(lines))
    _, total, covered = figures(lines)[-1]
    good = total and covered * 100 >= args.least * total
    print(f"{'ok' if good else 'not ok'} - {args.name}: {percent(covered, total)} % of {total} lines,"
          f" at least {args.least} %")
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    return 0 if good else 1


# ---- what is left ----

def ranges(numbers):
    """1 2 3 7 as "1-3 7"."""
    parts = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def left(lines):
    """Of each source and function the lines that were not executed."""
    result = {}
    for source, counts in lines.items():
        for number, (count, function) in counts.items():
            if not count:
                result.setdefault(source, {}).setdefault(function, []).append(int(number))
    return result


def uncovered(args):
    names = set()
    if args.explained:
        with open(args.explained, encoding="utf-8") as file:
            names = set(re.findall(r"\b[a-z_][a-z0-9_]+\b", file.read()))
    for source, functions in sorted(left(load(args.files)).items()):
        for function, numbers in sorted(functions.items(), key=lambda item: min(item[1])):
            if function not in names:
                print(f"{source}: {function or '(no function)'}: {ranges(numbers)}")


def update(args):
    texts = {}
    for word in args.tables:
        name, _, paths = word.partition("=")
        texts[name] = table(load(paths.split(",")))
    asked = rst.update(args.rst, "coverage", texts)
    for name in set(texts) - set(asked):
        sys.exit(f"lines.py: {args.rst} has no place for the table {name}")


# ---- the command line ----

def arguments():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    parser = argparse.ArgumentParser(prog="lines.py", usage="see lines.py --help")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("collect")
    for option in ("--gcov", "--root", "--under", "--out"):
        command.add_argument(option, required=True)
    command.add_argument("dirs", nargs="+")
    command = commands.add_parser("check")
    command.add_argument("--name", required=True)
    command.add_argument("--least", type=float, required=True)
    command.add_argument("--only", default="*")
    command.add_argument("--but")
    command.add_argument("files", nargs="+")
    command = commands.add_parser("uncovered")
    command.add_argument("--explained")
    command.add_argument("files", nargs="+")
    command = commands.add_parser("update")
    command.add_argument("rst")
    command.add_argument("tables", nargs="+")
    return parser.parse_args()


def main():
    args = arguments()
    commands = {"collect": collect, "check": check, "uncovered": uncovered, "update": update}
    return commands[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
