#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of this folder, or those named: one line each, and how many passed."""

import pathlib
import sys
import unittest


class Result(unittest.TestResult):
    """Says what became of each test."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.bad = 0

    @staticmethod
    def name(test):
        return test.id().replace("test_", "")

    def addSuccess(self, test):
        self.passed += 1
        print(f"ok - {self.name(test)}", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"ok - {self.name(test)} # SKIP {reason}", flush=True)

    def _bad(self, test, err):
        self.bad += 1
        print(f"not ok - {self.name(test)}")
        for line in self._exc_info_to_string(err, test).splitlines():
            print(f"# {line}")
        sys.stdout.flush()

    def addFailure(self, test, err):
        self._bad(test, err)

    def addError(self, test, err):
        self._bad(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._bad(subtest, err)


def main():
    here = pathlib.Path(__file__).resolve().parent
    sys.path[:0] = [str(here.parent), str(here)]
    if sys.argv[1:]:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
    else:
        suite = unittest.defaultTestLoader.discover(str(here))
    result = Result()
    suite.run(result)
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"{result.passed} passed, {result.bad} failed{skipped}", flush=True)
    return 1 if result.bad or not result.passed else 0


if __name__ == "__main__":
    sys.exit(main())
