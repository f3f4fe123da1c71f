"""JUnit XML of any test runner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from agentv_ci.base.canonical import canonical
from agentv_ci.base.left_files import read_regular
from agentv_ci.base.mappings import present
from agentv_ci.base.text import counted, listed, on_one_line, shortened
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import AdoptedFile, AdoptedResult
from agentv_ci.other_tools.adopt.json_texts import MAX_BYTES

PASSED = frozenset(
    {
        *(
            "pass",
            "passed",
            "ok",
            "success",
            "successful",
            "succeeded",
            "fixed",
            "expected",
            "true",
        ),
        *("run", "executed", "complete", "completed", "finished", "done"),
    }
)
"""Values of `status` and `result` of tests that passed, or that their elements decide; in small
letters alone.
"""
NOT_RUN = frozenset(
    {
        "notrun",
        "notrunnable",
        "disabled",
        "ignored",
        "pending",
        "skip",
        "skipped",
        "suppressed",
        "todo",
    }
)
FAILED = frozenset({"fail", "failed", "failure", "regression"})
BAD = ("failure", "error")
SKIPPED = ("skipped", "disabled")
FLAKY = ("flakyfailure", "flakyerror")
"""Failed attempts of tests that passed in the end."""
RERUNS = ("rerunfailure", "rerunerror")
"""Failed attempts of tests that failed in the end."""
NEUTRAL = frozenset(
    {
        *("system-out", "system-err", "output", "stdout", "stderr", "log", "logs"),
        *(
            "properties",
            "property",
            "attachments",
            "attachment",
            "metadata",
            "requirements",
            "requirement",
        ),
        *("tags", "tag", "traits", "trait", "labels", "label", "categories", "category"),
        *("description", "comment", "comments", "steps", "step", "perf", "time"),
    }
)
"""Elements that say nothing about whether a test passed."""
OF_THE_RUN = frozenset(
    {
        *(
            "tests",
            "failures",
            "errors",
            "skipped",
            "skips",
            "disabled",
            "ignored",
            "passed",
            "warnings",
            "assertions",
        ),
        *(
            "status",
            "result",
            "time",
            "duration",
            "timestamp",
            "started-at",
            "finished-at",
            "run-id",
        ),
    }
)
"""Attributes that differ between the times a test runs."""
EACH_ONCE = frozenset({"jest tests", "vitest tests"})
"""Names of files whose tests are written once: those with equal names are different tests."""
PYTEST = frozenset({"pytest", "pytest tests"})
"""The names of its suites, of which users can choose the inner one."""
MAX_REASON = 200
MAX_DEPTH = 100
"""Suites within each other: those of known runners are as deep as the folders of a project."""

Suites = tuple[ET.Element, ...]


class _Case(NamedTuple):
    element: ET.Element
    suites: Suites
    """The suites that it is in, the outermost first."""
    places: tuple[int, ...] = ()
    """The place of each suite among those beside it with its name."""


def results(path: Path) -> AdoptedFile:
    """Return the test cases of a file; raises OSError and ValueError for a file that is none."""
    try:
        # expat refuses entities that expand without end, and the standard library loads none from
        # outside.
        root = ET.fromstring(read_regular(path, MAX_BYTES))  # noqa: S314
    except (ET.ParseError, LookupError, ValueError) as error:
        # The last two are encodings that Python does not know, or expat cannot read.
        raise ValueError(f"not XML: {error}") from error
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2].lower()
    cases = list(_cases(root))
    return AdoptedFile(tuple(map(_result, cases)), tuple(_lost(root, cases)))


def _cases(root: ET.Element) -> Iterator[_Case]:
    is_each_once = root.get("name") in EACH_ONCE
    waiting: list[_Case] = [_Case(root, ())]
    while waiting:
        case = waiting.pop()
        element, suites, places = case
        if element.tag == "testcase":
            yield case
            continue
        inner = (*suites, element) if element.tag == "testsuite" else suites
        if len(inner) > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} suites are within each other")
        names = Counter[str | None]()
        children = []
        for child in element:
            name = child.get("name")
            if child.tag == "testcase" and is_each_once:
                name = f"{child.get('classname')}::{name}"
            elif child.tag != "testsuite":
                # Ids of suites without a name have always counted what is beside them.
                names[None] += 1
                children.append(_Case(child, inner, places))
                continue
            names[name] += 1
            children.append(_Case(child, inner, (*places, names[name])))
        waiting += reversed(children)


def _result(found: _Case) -> AdoptedResult:
    """Return the result of a test case.

    Runners that repeat a test write it several times, failed attempts of some without their
    failure: it passes only if nothing in the file says that it failed.
    """
    case = found.element
    name, group = case.get("name") or "test", case.get("classname") or ""
    kinds, unknown = _kinds(case), _unknown(case)
    is_error, is_failure = "error" in kinds, "failure" in kinds
    is_skipped = "skipped" in kinds and not is_error and not is_failure
    flaky = [child for child in case if child.tag in FLAKY]
    marks = list(map(case.find, ("error", "failure", *SKIPPED, *RERUNS)))
    why = next(
        filter(None, map(_text, [*present(marks), *flaky])),
        unknown or "",
    )
    line = case.get("line") or ""
    reasoning = why
    if flaky and not is_failure:
        reasoning = f"passed after {counted(len(flaky), 'failed attempt')}: {why}"
    return AdoptedResult(
        name=f"{group}.{name}" if group else name,
        distinctions=_distinctions(found, f"{group}::{name}"),
        passed=None if is_error or is_skipped else not is_failure,
        answer=(case.findtext("system-out") or "").strip(),
        outcome=name,
        suite=case.get("file"),
        line=max(1, int(line)) if line.isdecimal() and len(line) < 10 else 1,
        require="all",
        reasoning=reasoning,
        error=(why or "error") if is_error else None,
        error_kind="process",
        skip=(why or "not run") if is_skipped else None,
        duration_ms=_milliseconds(case.get("time")),
        definition={"name": name, "group": group},
    )


def _distinctions(found: _Case, full_name: str) -> tuple[str, ...]:
    suites = found.suites

    def nearest(attribute: str) -> str:
        return next((value for suite in reversed(suites) if (value := suite.get(attribute))), "")

    definitions: list[JsonValue] = list(map(_definition, (found.element, *suites)))
    return (
        " > ".join(filter(None, (suite.get("name") for suite in suites))),
        nearest("hostname"),
        full_name,
        *map(nearest, ("file", "package", "id")),
        listed(found.places),
        canonical(definitions),
    )


def _definition(element: ET.Element) -> JsonObject:
    return {name: value for name, value in element.items() if name.lower() not in OF_THE_RUN}


def _kinds(case: ET.Element) -> set[str]:
    """Return which of `failure`, `error` and `skipped` a test case is.

    None of them if it passed.
    """
    tags, states = {child.tag for child in case}, _states(case)
    kinds = tags & {*BAD}
    if tags & {*RERUNS} or states & FAILED:
        kinds.add("failure")
    if tags & {*SKIPPED} or states & NOT_RUN:
        kinds.add("skipped")
    if not kinds & {*BAD} and _unknown(case):
        kinds.add("error")
    return kinds


def _states(case: ET.Element) -> set[str]:
    """Return what the attributes say, without the separators of several spellings."""
    written = ("".join(filter(str.isalnum, case.get(key) or "")) for key in ("status", "result"))
    return {*map(str.lower, filter(None, written))}


def _unknown(case: ET.Element) -> str | None:
    """Return what is not known to let a test pass or be skipped."""
    if states := _states(case) - PASSED - NOT_RUN - FAILED:
        return f"its status is {listed(sorted(states))}, which is not known to be a pass"
    if tags := {child.tag for child in case} - NEUTRAL - {*BAD, *SKIPPED, *FLAKY, *RERUNS}:
        return f"it has <{min(tags)}>, which is not known to be a pass"
    skipped = case.find("skipped")
    message = _text(skipped) if skipped is not None else ""
    # CTest skips tests that it cannot start; those that are meant to be skipped begin so.
    if (
        "notrun" in _states(case)
        and message
        and not message.lower().startswith(("skip", "disabled"))
    ):
        return message
    return None


def _lost(root: ET.Element, cases: Sequence[_Case]) -> Iterator[str]:
    """Yield failures beside the test cases, and what suites count without having it."""
    is_pytest = root.get("name") in PYTEST
    for suite in root.iter():
        if suite.tag not in ("testsuite", "testsuites"):
            continue
        name = f"suite '{shortened(on_one_line(suite.get('name') or suite.tag), MAX_REASON)}'"
        beside = [child for child in suite if child.tag in BAD]
        for mark in beside:
            yield f"{name}: {shortened(on_one_line(_text(mark)), MAX_REASON) or mark.tag}"
        for sentence in _miscounted(suite, is_pytest=is_pytest):
            yield f"{name} {sentence}"
    if not cases and not any(child.tag in BAD for child in chain.from_iterable(root.iter())):
        yield "it has no test cases"


def _miscounted(suite: ET.Element, *, is_pytest: bool) -> Iterator[str]:
    """Yield the counts of a suite that are larger than what is in it."""
    cases = [*suite.iter("testcase")]
    kinds = Counter(chain.from_iterable(map(_kinds, cases)))
    beside = sum(
        child.tag in BAD
        for child in chain.from_iterable(inner for inner in suite.iter() if inner.tag != "testcase")
    )
    bad = kinds["failure"] + kinds["error"] + beside
    if is_pytest or suite.get("name") in PYTEST or _counts_assertions(suite):
        # Each failure of a test is an element. Subtests that pass are counted, and not written.
        bad = max(bad, sum(element.tag in BAD for element in suite.iter()))
    elif (declared := _count(suite, "tests")) > len(cases) + beside:
        yield f"counts {counted(declared, 'test')}, and {len(cases) + beside} are in the file"
    if _count(suite, "failures") + _count(suite, "errors") > bad:
        written = f"{_count(suite, 'failures')} failed and {_count(suite, 'errors')} with errors"
        yield f"counts {written}, and {bad} are in the file"
    skipped = max(kinds["skipped"], sum(element.tag in SKIPPED for element in suite.iter()))
    if (declared := _count(suite, "skipped")) > skipped:
        yield f"counts {declared} skipped, and {skipped} are in the file"


def _counts_assertions(suite: ET.Element) -> bool:
    """Whether a suite is of Catch2, whose name of the machine is "tbd", or of doctest.

    Their `tests` are assertions.
    """
    is_of_them = suite.get("hostname") == "tbd" or suite.get("doctest_version") is not None
    return is_of_them and suite.find("testcase") is not None


def _count(suite: ET.Element, name: str) -> int:
    written = (suite.get(name) or "").strip()
    if written.isdecimal() and len(written) < 10:
        return int(written)
    return 0


def _text(element: ET.Element) -> str:
    return "\n".join(filter(None, [element.get("message"), (element.text or "").strip()]))


def _milliseconds(seconds: str | None) -> int:
    try:
        return max(0, round(float((seconds or "0").replace(",", "")) * 1000))
    except (ValueError, OverflowError):
        return 0
