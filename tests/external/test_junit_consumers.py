"""JUnit files as programs show them that read them: with the same libraries, used in the same way."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml, TestCase

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers import junit
from agentv_ci.report.view import RunView
from tests.external.tools import node_modules, run
from tests.support import REPOSITORY
from tests.support.runs import NASTY, case, plan, row, rows_of, well_formed

PACKAGES = ("xml-js@1.6.11", "xml2js@0.6.2", "fast-xml-parser@5.12.1", "junit2json@4.0.0")
READERS = REPOSITORY / "tests" / "external" / "junit_readers.mjs"
RAILS_TYPES = {"array", "boolean", "date", "datetime", "file", "float", "integer", "symbol", "yaml"}
"""Types whose elements GitLab, which reads with Rails, does not take for text."""
ELEMENTS = {
    "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped", "system-out",
    "system-err",
}  # fmt: skip
KINDS = ("failure", "error", "skipped")
A, B = "evals/a.yaml", "evals/two words & <more>.yaml"

Run = tuple[Plan, Sequence[ResultRow], Ending]
Shown = dict[str, Any]
"""A test as people see it."""


def with_special_texts() -> Run:
    texts = list(map(well_formed, NASTY))
    cases = [case(f"{n}{text}", suite=A if n % 2 else B, line=n + 3) for n, text in enumerate(texts)]
    verdicts = cycle(("fail", "error", "pass", "borderline"))
    rows = [
        row(verdict, of=of, candidate_answer=text, misses=(text, f"{text}\nx"), error=text)  # type: ignore[arg-type]
        for verdict, of, text in zip(verdicts, cases, (f"a{text}b\n{text}" for text in NASTY), strict=False)
    ]
    return plan(*cases), rows, Ending()


def stopped() -> Run:
    of = plan(case("ran"), case("left", line=9), case("some", line=12, trials=5))
    return of, [*rows_of(of.cases[0], "p"), *rows_of(of.cases[2], "p")], Ending(stopped="budget")


RUNS: Mapping[str, Run] = {
    "special": with_special_texts(),
    "stopped": stopped(),
    "gated": (plan(case()), rows_of(case(), "p"), Ending(incomplete=("shard 2/2 missing",))),
    "empty": (plan(), [], Ending()),
}
CORPUS = {path.parent.parent.name: path for path in REPOSITORY.glob("tests/corpus/valid/*/expected/junit.xml")}
all_runs = pytest.mark.parametrize("name", [*RUNS, *sorted(CORPUS)])


def written(path: Path) -> list[Shown]:
    """The tests of a file, as the standard library reads it."""
    return [
        {
            **{name: test.get(name, "") for name in ("classname", "name", "file")},
            "line": int(test.get("line", "0")),
            "time": float(test.get("time", "nan")),
            "result": blame.tag,
            "message": blame.get("message", ""),
            "text": blame.text or "",
            "answer": test.findtext("system-out") or "",
        }
        for test in ET.parse(path).iter("testcase")
        for blame in [next((each for each in test if each.tag in KINDS), ET.Element("passed"))]
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("junit")
    for name, each in RUNS.items():
        view = RunView(*report(*each), lambda rows=each[1]: rows)  # type: ignore[misc]
        (folder / f"{name}.xml").write_bytes(b"".join(junit.render(view)))
    return CORPUS | {name: folder / f"{name}.xml" for name in RUNS}


@pytest.fixture(scope="module")
def shown(files: Mapping[str, Path]) -> Mapping[str, Any]:
    """Every file as npm's readers show it."""
    done = run(["node", READERS, node_modules(*PACKAGES), *files.values()], codes=(0,))
    assert done.stderr == ""
    return dict(zip(files, json.loads(done.stdout), strict=True))


def counted(tests: Sequence[Shown]) -> tuple[int, ...]:
    results = [each["result"] for each in tests]
    return (len(results), *map(results.count, KINDS))


def published(test: TestCase) -> Shown:
    """A test as EnricoMi/publish-unit-test-result-action shows it, which reads with junitparser."""
    element = test._elem  # noqa: SLF001  # as the action does
    blame = test.result[0] if test.result else None
    return {
        "classname": test.classname or "",
        "name": test.name or "",
        "file": element.get("file") or "",
        "line": int(element.get("line") or "0"),
        "time": test.time,
        "answer": test.system_out or "",
        "result": str(blame._tag) if blame is not None else "passed",  # noqa: SLF001
        "message": (blame.message if blame is not None else "") or "",
        "text": (blame.text if blame is not None else "") or "",
    }


@all_runs
def test_publish_unit_test_result_action(files: Mapping[str, Path], name: str) -> None:
    found = JUnitXml.fromfile(str(files[name]))
    assert [published(test) for suite in found for test in suite] == written(files[name])
    assert all(len(test.result) <= 1 for suite in found for test in suite)
    # It shows the counts of suites.
    for suite in found:
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == counted([*map(published, suite)])
    assert (found.tests or 0) == len(written(files[name]))


@all_runs
def test_action_junit_report(files: Mapping[str, Path], shown: Mapping[str, Any], name: str) -> None:
    assert shown[name]["annotations"] == written(files[name])


@all_runs
def test_test_reporter(files: Mapping[str, Path], shown: Mapping[str, Any], name: str) -> None:
    groups = shown[name]["groups"]
    tests = [each for suite in groups["suites"] for each in suite["tests"]]
    results = {"passed": "success", "skipped": "skipped", "failure": "failed", "error": "failed"}
    for each, known in zip(tests, written(files[name]), strict=True):
        assert (each["group"], each["name"], each["result"]) == ("", known["name"], results[known["result"]])
        assert each["milliseconds"] == pytest.approx(known["time"] * 1000)
        assert each["details"].strip() == ("" if known["result"] == "skipped" else known["text"].strip())
    # The corpus has no real times.
    assert name in CORPUS or groups["milliseconds"] == pytest.approx(
        sum(each["milliseconds"] for each in groups["suites"])
    )


@all_runs
def test_datadog_and_junit2json(files: Mapping[str, Path], shown: Mapping[str, Any], name: str) -> None:
    known, typed = written(files[name]), shown[name]["typed"]
    assert shown[name]["validated"] == {"valid": True, "names": [each["name"] for each in known]}
    assert typed["cases"] == [{key: each[key] for key in ("classname", "name", "time", "line")} for each in known]
    for part in (typed["counts"], *typed["suites"]):
        own = [each for each in known if part.get("name") in (None, each["classname"])]
        assert tuple(part[each] for each in ("tests", "failures", "errors", "skipped")) == counted(own)


@all_runs
def test_gitlab_and_jenkins(files: Mapping[str, Path], name: str) -> None:
    root = ET.parse(files[name]).getroot()
    known = written(files[name])
    # GitLab ignores duplicates and shows the content; Jenkins needs names, and identifies suites by theirs.
    assert len({(each["classname"], each["name"]) for each in known}) == len(known)
    assert all(each["name"] and each["classname"] for each in known)
    assert all(each["text"].strip() for each in known if each["result"] != "passed")
    assert not RAILS_TYPES & {each.get("type") for each in root.iter()}
    suites = [each.get("name") for each in root]
    assert len(set(suites)) == len(suites)
    assert {each.tag for each in root.iter()} <= ELEMENTS
