"""JUnit XML of any test runner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from agentv_ci.adopt.json_texts import MAX_BYTES
from agentv_ci.contracts.adopted import AdoptedFile, AdoptedResult
from agentv_ci.left_files import read_regular
from agentv_ci.text import counted, on_one_line, shortened

NOT_RUN = frozenset({"notrun", "not_run", "not run", "notrunnable", "disabled", "ignored", "pending", "skipped"})
"""Values of `status` and `result` of tests that were not run."""
FAILED = frozenset({"fail", "failed", "failure"})
ERRORED = frozenset({"error", "errored", "broken", "crashed"})
BAD = ("failure", "error")
RERUNS = ("flakyFailure", "flakyError")
"""Failed attempts of tests that passed in the end."""
MAX_REASON = 200

Suites = tuple[ET.Element, ...]


class _Case(NamedTuple):
    element: ET.Element
    suites: Suites
    """The suites that it is in, the outermost first."""


def results(path: Path) -> AdoptedFile:
    """Return the test cases of a file; raises OSError and ValueError for a file that is none."""
    try:
        # expat refuses entities that expand without end, and the standard library loads none from outside.
        root = ET.fromstring(read_regular(path, MAX_BYTES))  # noqa: S314
    except ET.ParseError as error:
        raise ValueError(f"not XML: {error}") from error
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    cases = list(_cases(root))
    return AdoptedFile(tuple(_result(case) for case in cases), tuple(_lost(root, cases)))


def _cases(root: ET.Element) -> Iterator[_Case]:
    waiting: list[_Case] = [_Case(root, ())]
    while waiting:
        element, suites = waiting.pop()
        if element.tag == "testcase":
            yield _Case(element, suites)
            continue
        inner = (*suites, element) if element.tag == "testsuite" else suites
        waiting += [_Case(child, inner) for child in reversed(element)]


def _result(found: _Case) -> AdoptedResult:
    """Return the result of a test case.

    Runners that repeat a test write it several times, failed attempts of some without their failure: it passes only if
    nothing in the file says that it failed.
    """
    case = found.element
    name, group = case.get("name") or "test", case.get("classname") or ""
    states = {(case.get(key) or "").strip().lower() for key in ("status", "result")}
    failure, error, skipped = (case.find(tag) for tag in ("failure", "error", "skipped"))
    is_error = error is not None or bool(states & ERRORED)
    is_failure = failure is not None or bool(states & FAILED)
    is_skipped = skipped is not None or case.find("disabled") is not None or bool(states & NOT_RUN)
    reruns = [child for child in case if child.tag in RERUNS]
    marks = [each for each in (error, failure, skipped, case.find("disabled"), *reruns) if each is not None]
    why = next(filter(None, map(_text, marks)), "")
    line = case.get("line") or ""
    return AdoptedResult(
        name=f"{group}.{name}" if group else name,
        distinctions=(
            " > ".join(filter(None, (suite.get("name") for suite in found.suites))),
            next((host for suite in reversed(found.suites) if (host := suite.get("hostname"))), ""),
            f"{group}::{name}",
        ),
        passed=None if is_error or (is_skipped and not is_failure) else not is_failure,
        answer=(case.findtext("system-out") or "").strip(),
        outcome=name,
        suite=case.get("file"),
        line=max(1, int(line)) if line.isdecimal() and len(line) < 10 else 1,
        require="all",
        reasoning=f"passed after {counted(len(reruns), 'failed attempt')}: {why}" if reruns and not is_failure else why,
        error=(why or "error") if is_error else None,
        error_kind="process",
        skip=(why or "not run") if is_skipped and not is_error and not is_failure else None,
        duration_ms=_milliseconds(case.get("time")),
        definition={"name": name, "group": group},
    )


def _lost(root: ET.Element, cases: Sequence[_Case]) -> Iterator[str]:
    """Yield failures beside the test cases, and what suites count without having it."""
    for suite in root.iter():
        if suite.tag not in ("testsuite", "testsuites"):
            continue
        name = f"suite '{shortened(on_one_line(suite.get('name') or suite.tag), MAX_REASON)}'"
        beside = [child for child in suite if child.tag in BAD]
        for mark in beside:
            yield f"{name}: {shortened(on_one_line(_text(mark)), MAX_REASON) or mark.tag}"
        yield from (f"{name} {sentence}" for sentence in _miscounted(suite))
    if not cases and not any(child.tag in BAD for suite in root.iter() for child in suite):
        yield "it has no test cases"


def _miscounted(suite: ET.Element) -> Iterator[str]:
    """Yield the counts of a suite that are larger than what is in it; runners count repeated tests in several ways."""
    bad = sum(element.tag in BAD for element in suite.iter())
    tests = sum(max(1, sum(child.tag in (*BAD, "skipped") for child in case)) for case in suite.iter("testcase"))
    tests += sum(child.tag in BAD for inner in suite.iter() if inner.tag != "testcase" for child in inner)
    if (declared := _count(suite, "tests")) > tests:
        yield f"counts {counted(declared, 'test')}, and {tests} are in the file"
    declared_bad = _count(suite, "failures") + _count(suite, "errors")
    states = sum((case.get("status") or "").lower() in FAILED | ERRORED for case in suite.iter("testcase"))
    if declared_bad > max(bad, states):
        kinds = f"{_count(suite, 'failures')} failed and {_count(suite, 'errors')} with errors"
        yield f"counts {kinds}, and {bad} are in the file"


def _count(suite: ET.Element, name: str) -> int:
    written = (suite.get(name) or "").strip()
    return int(written) if written.isdecimal() and len(written) < 10 else 0


def _text(element: ET.Element) -> str:
    return "\n".join(filter(None, [element.get("message"), (element.text or "").strip()]))


def _milliseconds(seconds: str | None) -> int:
    try:
        return max(0, round(float((seconds or "0").replace(",", "")) * 1000))
    except (ValueError, OverflowError):
        return 0
