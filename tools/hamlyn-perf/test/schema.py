#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks JSON lines of hamlyn-perf: each against schema/TEST.json, TEST being its "test"."""

import json
import pathlib
import sys

import jsonschema

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "schema"


def no_duplicates(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def not_a_number(text):
    raise ValueError(f"{text} is no JSON")


def problem(text):
    """What is wrong with a line, or None; and which test it is of."""
    test = "?"
    try:
        value = json.loads(text, object_pairs_hook=no_duplicates, parse_constant=not_a_number)
        if not isinstance(value, dict):
            return "not an object", test
        test = str(value.get("test", "?"))
        path = FOLDER / f"{test}.json"
        if path.parent != FOLDER or not path.is_file():
            return f"no schema of the test {test}", test
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(value, schema)
    except jsonschema.ValidationError as error:
        return f"{error.json_path}: {error.message}", test
    except ValueError as error:
        return str(error), test
    return None, test


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"usage: {sys.argv[0]} FILE [TEST...]\n\n{__doc__}\nThe TESTs have to be there.")
        return 0 if len(sys.argv) >= 2 else 2
    status = 0
    seen = set()
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            wrong, test = problem(line)
            seen.add(test)
            if wrong:
                print(f"{wrong}\n  {line.rstrip()}")
                status = 1
    for test in sys.argv[2:]:
        if test not in seen:
            print(f"no line of the test {test}")
            status = 1
    return status


sys.exit(main())
