# SPDX-License-Identifier: GPL-2.0-only
"""Tables in reStructuredText, and putting them between markers in a file."""

import re
import sys


def table(rows):
    """A simple table; the first row is the head. Cells are text."""
    rows = [[cell if cell else ("\\" if i == 0 else "") for i, cell in enumerate(row)]
            for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)

    def line(row):
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()

    return "\n".join([rule, line(rows[0]), rule, *(line(row) for row in rows[1:]), rule])


def update(path, kind, texts, optional=True):
    """Replace what stands between ".. BEGIN kind:NAME" and ".. END kind:NAME" by
    texts[NAME]. Without such a text it stays. Returns the names that the file asks for."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    asked = []

    def new(match):
        name = match.group("name")
        asked.append(name)
        text = texts.get(name)
        if text is None:
            return match.group(0)
        return f".. BEGIN {kind}:{name}\n\n{text}\n\n.. END {kind}:{name}\n"

    pattern = re.compile(rf"^\.\. BEGIN {kind}:(?P<name>[\w-]+)\n.*?"
                         rf"^\.\. END {kind}:(?P=name)\n", re.MULTILINE | re.DOTALL)
    text = pattern.sub(new, old)
    begins = re.findall(rf"^\.\. BEGIN {kind}:", old, re.MULTILINE)
    if len(begins) != len(asked):
        sys.exit(f"{path}: a BEGIN {kind} marker has no END")
    if text != old:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return asked
