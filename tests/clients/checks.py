"""A list of named checks that all run, whatever the others say, and a plain summary. Standard library only."""

import sys
import traceback


class Checks:
    def __init__(self, title):
        self._title = title
        self._passed = 0
        self._failed = []

    def run(self, name, check, *arguments):
        """Calls `check`; an exception is its failure, what it returns a note for the line."""
        try:
            note = check(*arguments)
        except Exception as error:  # whatever a client library raises is this check's failure
            self._failed.append(name)
            print(f"FAILED  {name}")
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"        {type(error).__name__}: {error} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})")
        else:
            self._passed += 1
            print(f"ok      {name}" + (f": {note}" if note else ""))

    def finish(self):
        """Prints the summary and ends the program."""
        for name in self._failed:
            print(f"failed: {self._title}: {name}")
        print(f"{self._title}: {self._passed} passed, {len(self._failed)} failed")
        sys.exit(1 if self._failed or not self._passed else 0)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def expect_equal(got, expected, what):
    expect(got == expected, f"{what}: got {got!r}, expected {expected!r}")
