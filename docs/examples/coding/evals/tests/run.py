"""Run the tests in test_it.py, and write JUnit XML: python3 run.py REPORT."""

import sys
import unittest
from pathlib import Path
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path.cwd()))


class Result(unittest.TestResult):
    """Collects the tests with what became of them."""

    def __init__(self) -> None:
        super().__init__()
        self.cases: list[str] = []

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802  # unittest's
        """Take in a test that passed."""
        self._add(test, "")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: ARG002, N802
        """Take in a test that failed."""
        self._add(test, "<failure/>")

    def addError(self, test: unittest.TestCase, err: object) -> None:  # noqa: ARG002, N802
        """Take in a test that broke."""
        self._add(test, "<error/>")

    def _add(self, test: unittest.TestCase, child: str) -> None:
        _, case, name = test.id().rsplit(".", 2)
        self.cases.append(f"<testcase classname={quoteattr(case)} name={quoteattr(name)}>{child}</testcase>")


result = Result()
unittest.defaultTestLoader.loadTestsFromName("test_it").run(result)
Path(sys.argv[1]).write_text(f"<testsuite>{''.join(result.cases)}</testsuite>", "utf-8")
sys.exit(any("<failure/>" in case or "<error/>" in case for case in result.cases))
