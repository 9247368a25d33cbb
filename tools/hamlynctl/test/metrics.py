#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks what "hamlynctl metrics" prints, as strictly as the formats can be read: lines
"# open TEXT" and "# text TEXT" of a log (OpenMetrics; Prometheus's text format), blank TEXT ends
one; and that the alerts and the dashboard use nothing else than what it can print. With --families
prints the names of all metrics in the source."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent / "health" / "metrics.c"
PROMETHEUS = HERE.parent / "prometheus"

# Nothing that an unprivileged user can make as often as it likes
LABELS = {"nic", "peer", "host", "engine", "fabric", "state", "reason", "address", "version"}
NAME = r"hamlyn_[a-z][a-z_]*[a-z]"
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\}})? (\d+(?:\.\d+)?)$')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
SUFFIX = {"counter": "_total", "info": "_info"}


def families():
    """Name with suffix: type, of the source."""
    text = SOURCE.read_text(encoding="utf-8")
    found = {}
    for name, _, kind in re.findall(r'PLAIN\("(\w+)", (NULL|"\w+"), (\w+)', text):
        found["hamlyn_" + name + {"COUNTER": "_total", "NIC_INFO": "_info",
                                  "PEER_INFO": "_info"}.get(kind, "")] = kind
    for name, kind in re.findall(r'\{ "(hamlyn_\w+)", NULL, (\w+),', text):
        found[name + ("_total" if kind == "REASONS" else "")] = kind
    return found


class Reader:
    """One exposition."""

    def __init__(self, is_open):
        self.is_open = is_open
        self.family = self.type = self.unit = None
        self.seen, self.series = set(), set()
        self.stage = 0          # HELP, TYPE, UNIT have come
        self.ended = False

    def fail(self, line, why):
        raise ValueError(f"{why}: {line}")

    def comment(self, line):
        if line == "# EOF" and self.is_open:
            self.ended = True
            return
        match = re.fullmatch(rf"# (HELP|TYPE|UNIT) ({NAME}) (\S.*)", line)
        if not match:
            self.fail(line, "is no comment that has a meaning")
        kind, name, rest = match.groups()
        if kind == "HELP":
            if name in self.seen:
                self.fail(line, "the family is there twice")
            if not rest.endswith("."):
                self.fail(line, "help is a sentence")
            self.seen.add(name)
            self.family, self.type, self.unit, self.stage = name, None, None, 1
        elif name != self.family:
            self.fail(line, "is about another family")
        elif kind == "TYPE" and self.stage == 1:
            if rest not in ({"gauge", "counter", "info"} if self.is_open else
                            {"gauge", "counter"}):
                self.fail(line, "has no such type")
            self.type, self.stage = rest, 2
            if (rest == "counter") != name.endswith("_total") and not self.is_open:
                self.fail(line, "counters, and nothing else, end with _total")
            if self.is_open and name.endswith(("_total", "_info")):
                self.fail(line, "a family's name is without the suffix")
        elif kind == "UNIT" and self.stage == 2 and self.is_open:
            if not name.endswith("_" + rest) or rest not in ("bytes", "seconds"):
                self.fail(line, "the name ends with its base unit")
            self.unit, self.stage = rest, 3
        else:
            self.fail(line, "comes at the wrong place")

    def sample(self, line):
        match = SAMPLE.fullmatch(line)
        if not match:
            self.fail(line, "is no sample")
        name, labels, _ = match.groups()
        want = self.family + (SUFFIX.get(self.type, "") if self.is_open else "")
        if self.stage < 2 or name != want:
            self.fail(line, "is not of the family above it")
        if re.search(r"_(bytes|seconds)(_total)?$", name) and self.is_open and not self.unit:
            self.fail(line, "has a unit that is not told")
        pairs = LABEL.findall(labels or "")
        if "".join(f'{key}="{value}",' for key, value in pairs) != (labels or "") + "," * bool(labels):
            self.fail(line, "has labels that are none")
        if len(dict(pairs)) != len(pairs) or set(dict(pairs)) - LABELS:
            self.fail(line, "has labels twice, or others than are allowed")
        if (name, labels) in self.series:
            self.fail(line, "is there twice")
        self.series.add((name, labels))

    def line(self, line):
        if self.ended:
            self.fail(line, "comes after the end")
        if line.startswith("#"):
            self.comment(line)
        else:
            self.sample(line)


def problem(is_open, lines):
    reader = Reader(is_open)
    try:
        for line in lines:
            reader.line(line)
        if is_open and not reader.ended:
            raise ValueError("there is no # EOF")
        names = {name for name, _ in reader.series}
        if "hamlyn_up" not in names:
            raise ValueError("there is no hamlyn_up")
        if names - set(families()):
            raise ValueError(f"not in the source: {sorted(names - set(families()))}")
    except ValueError as error:
        return str(error)
    return None


def unknown_names(text):
    return sorted(set(re.findall(rf"\b{NAME}\b", text)) - set(families()))


def check(name, wrong):
    print(f"{'not ok' if wrong else 'ok'} - {name}" + (f"\n# | {wrong}" if wrong else ""))
    return bool(wrong)


def main():
    if sys.argv[1:] == ["--families"]:
        print("\n".join(families()))
        return 0
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(f"usage: {sys.argv[0]} LOG | --families\n\n{__doc__}")
        return 0 if len(sys.argv) == 2 else 2
    results, texts = [], {"open": [], "text": []}
    for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"# (open|text)(?: (.*))?", line)
        if match and match[2]:
            texts[match[1]].append(match[2])
        elif match and texts[match[1]]:
            results.append(check(f"{match[1]} metrics of {len(texts[match[1]])} lines are well-formed",
                                 problem(match[1] == "open", texts[match[1]])))
            texts[match[1]] = []
    for path in sorted(PROMETHEUS.glob("*")):
        text = path.read_text(encoding="utf-8")
        results.append(check(f"{path.name} uses what there is", unknown_names(text)))
        if path.suffix == ".json":
            json.loads(text)
    failed = sum(results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or len(results) < 4 else 0


if __name__ == "__main__":
    sys.exit(main())
