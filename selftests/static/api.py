#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results and time-outs of public functions, as Documentation/abi.rst promises them.

  api.py INCLUDE TEST

INCLUDE: the library's headers. TEST: the program that calls everything with NULL that may be.
Of each public function: what it returns is described, with errnos that exist; those that wait
have a time-out in nanoseconds, and say what they return when it is over; -ENODATA is the end of
a stream or channel; what ends an object takes NULL, says so, and is tested. One line for each
that is not so.
"""

import errno
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "libhamlyn/man"))
import kerneldoc                        # noqa: E402

ENDS = re.compile(r"h_(\w+_)?(destroy|close|free|leave|exit|remove|unwatch)$")
AFTER_THE_TIME = {"EAGAIN", "ETIMEDOUT"}
OF_STREAMS = re.compile(r"h_(stream|channel|subscriber|worker)_")
NOTHING = "or NULL: nothing"


def text_of(entry):
    return "\n".join(line for lines in entry.texts.values() for line in lines)


class Api:
    """All public functions of some headers."""

    def __init__(self, include):
        headers = [kerneldoc.Header(path, str(path.relative_to(include)))
                   for path in sorted(include.rglob("*.h")) if path.name != "uapi.h"]
        self.entries = [entry for header in headers for entry in header.entries]
        self.functions = {entry.name: entry for entry in self.entries if entry.kind == "function"}
        self.faults = 0

    def fault(self, entry, text):
        print(f"{entry.header.path}:{entry.line}: {entry.name}: {text}")
        self.faults += 1

    def errors(self, entry, seen):
        """Of a function, with those of the functions that its text refers to."""
        seen.add(entry.name)
        text = " ".join(entry.texts.get("return", []))
        found = set(re.findall(r"-(E[A-Z0-9]+)", text))
        for names in re.findall(r"\bas ((?:\w+\(\)(?:, or |, and | or | and |, )?)+)", text):
            for name in re.findall(r"\w+(?=\(\))", names):
                if name in self.functions and name not in seen:
                    found |= self.errors(self.functions[name], seen)
        return found

    def check_errnos(self, entry):
        for name in re.findall(r"-(E[A-Z0-9]+)\b", text_of(entry)):
            if not isinstance(getattr(errno, name, None), int):
                self.fault(entry, f"there is no -{name}")
        if "ENODATA" in " ".join(entry.texts.get("return", [])) and \
                not OF_STREAMS.match(entry.name):
            self.fault(entry, "-ENODATA is the end of a stream or channel, and nothing else")

    def check_result(self, entry):
        if entry.result not in (None, "void") and not " ".join(entry.texts.get("return", [])):
            self.fault(entry, "what it returns is not described")
        if entry.result == "void" and "return" in entry.texts:
            self.fault(entry, "it returns nothing, and that is described")

    def check_time(self, entry):
        if entry.name == "h_deadline":
            return                      # for those that wait
        times = [text for text in entry.arguments if "timeout" in text]
        for text in times:
            if text != "int64_t timeout_ns" or text is not entry.arguments[-1]:
                self.fault(entry, f"{text}: a time-out is int64_t timeout_ns, and the last")
        missing = AFTER_THE_TIME - self.errors(entry, set())
        if times and missing:
            self.fault(entry, "it can wait, and never returns " +
                       " or ".join("-" + name for name in sorted(missing)))

    def check_end(self, entry, test):
        if not ENDS.match(entry.name):
            return
        if NOTHING not in " ".join(text_of(entry).split()):
            self.fault(entry, f'it ends something, and does not say "{NOTHING}"')
        if not re.search(rf"\b{entry.name}\((?:[^;]*, )?NULL\b", test):
            self.fault(entry, "it ends something, and is not tested with NULL")

    def check(self, test):
        for entry in self.entries:
            self.check_errnos(entry)
        for entry in self.functions.values():
            self.check_result(entry)
            self.check_time(entry)
            self.check_end(entry, test)
        if len(self.functions) < 100:
            print(f"only {len(self.functions)} functions were found")
            self.faults += 1
        return self.faults


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1].strip())
    try:
        sys.exit(Api(pathlib.Path(sys.argv[1])).check(pathlib.Path(sys.argv[2]).read_text()) != 0)
    except kerneldoc.Trouble as trouble:
        sys.exit(str(trouble))
