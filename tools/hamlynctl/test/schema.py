#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks JSON that hamlynctl printed: lines "# json SCHEMA TEXT" of a log."""

import json
import pathlib
import sys

import jsonschema

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "schema"
MARK = "# json "


def no_duplicates(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def problem(schemas, name, text):
    """What is wrong with a line, or None."""
    if name not in schemas:
        return "no such schema"
    try:
        value = json.loads(text, object_pairs_hook=no_duplicates)
        jsonschema.validate(value, schemas[name])
    except jsonschema.ValidationError as error:
        return f"{error.json_path}: {error.message}"
    except ValueError as error:
        return str(error)
    return None


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(f"usage: {sys.argv[0]} LOG\n\n{__doc__}")
        return 0 if len(sys.argv) == 2 else 2
    schemas = {}
    for path in sorted(FOLDER.glob("*.json")):
        schemas[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schemas[path.stem])
    passed = failed = 0
    seen = set()
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            if not line.startswith(MARK):
                continue
            name, _, text = line[len(MARK):].partition(" ")
            seen.add(name)
            wrong = problem(schemas, name, text)
            if wrong:
                failed += 1
                print(f"not ok - JSON of {name}: {wrong}\n# | {text}", end="")
            else:
                passed += 1
    for name in schemas:
        if name in seen:
            print(f"ok - JSON of {name} was seen")
            passed += 1
        else:
            print(f"not ok - no JSON of {name}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
