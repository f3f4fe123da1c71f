"""JUnit files as those show them who read them: the same libraries, asked for what these programs ask them for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from tests.report.builders import NASTY, case, plan, row, rows_of, well_formed
from tests.support import REPOSITORY

NODE_MODULES = "AGENTV_CI_NODE_MODULES"
INSTALL = "npm install --no-save xml-js@1.6.11 xml2js@0.6.2 fast-xml-parser@5.12.1 junit2json@4.0.0"
READERS = REPOSITORY / "tests" / "external" / "junit_readers.mjs"

A, B = "evals/a.yaml", "evals/two words & <more>.yaml"


@dataclass(frozen=True)
class Run:
    """A run to tell of."""

    plan: Plan
    rows: Sequence[ResultRow]
    ending: Ending = field(default_factory=Ending)


def hostile() -> Run:
    cases = [
        case(f"{number}{well_formed(text)}", suite=A if number % 2 else B, line=number + 3)
        for number, text in enumerate(NASTY)
    ]
    texts = [f"a{text}b\n{text}" for text in NASTY]
    found = [
        row(
            ("fail", "error", "pass", "borderline")[number % 4],
            of=of,
            candidate_answer=text,
            misses=(text, f"{text}\nx"),
            error=text,
        )
        for number, (of, text) in enumerate(zip(cases, texts, strict=True))
    ]
    return Run(plan(*cases), found)


def mixed() -> Run:
    """What people have every day."""
    good, bad, broken, flaky = (case(name, suite=A, line=line) for line, name in enumerate(DAILY, 7))
    flaky = flaky.model_copy(update={"trials": 3})
    rows = [
        row("pass", of=good, duration_ms=1234),
        row("fail", of=bad, misses=("it does not greet", "too <long>\n& rude"), candidate_answer="Go away\n"),
        row("error", of=broken, error="no answer\nwithin 9 s", error_kind="timeout", candidate_answer=""),
        *rows_of(flaky, "pass", "fail", "pass"),
    ]
    return Run(plan(good, bad, broken, flaky), rows)


DAILY = ("greets", "refuses", "breaks", "flakes")


def stopped() -> Run:
    of = plan(case("ran"), case("left", line=9), case("some", line=12, trials=5))
    rows = [*rows_of(of.cases[0], "pass"), *rows_of(of.cases[2], "pass")]
    return Run(of, rows, Ending(stopped="budget"))


def gated() -> Run:
    of = plan(case())
    return Run(of, rows_of(of.cases[0], "pass"), Ending(incomplete=("shard 2/2 missing",)))


RUNS: Mapping[str, Run] = {
    "hostile": hostile(),
    "mixed": mixed(),
    "stopped": stopped(),
    "gated": gated(),
    "none": Run(plan(), []),
}


def rendered(each: Run) -> bytes:
    found, outcomes = report(each.plan, each.rows, each.ending)
    return b"".join(junit.render(RunView(found, outcomes, lambda: each.rows)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("junit")
    paths = {name: folder / f"{name}.xml" for name in RUNS}
    for name, path in paths.items():
        path.write_bytes(rendered(RUNS[name]))
    return paths


@dataclass(frozen=True)
class Shown:
    """What a test looks like to people."""

    classname: str
    name: str
    file: str
    line: int
    time: float
    result: str
    message: str
    text: str
    answer: str


def written(path: Path) -> list[Shown]:
    """What stands in a file, as the standard library reads it."""
    return [_shown(each) for each in ET.parse(path).iter("testcase")]


def _shown(test: ET.Element) -> Shown:
    blame = next((each for each in test if each.tag in ("failure", "error", "skipped")), None)
    return Shown(
        classname=test.get("classname", ""),
        name=test.get("name", ""),
        file=test.get("file", ""),
        line=int(test.get("line", "0")),
        time=float(test.get("time", "nan")),
        result="passed" if blame is None else blame.tag,
        message="" if blame is None else blame.get("message", ""),
        text="" if blame is None else blame.text or "",
        answer=test.findtext("system-out") or "",
    )


# --- EnricoMi/publish-unit-test-result-action, which reads with junitparser ---


def published(test: TestCase) -> Shown:
    """A test as that action takes it, which looks at elements for file and line."""
    blame = test.result[0] if test.result else None
    return Shown(
        classname=test.classname or "",
        name=test.name or "",
        file=test._elem.get("file") or "",  # noqa: SLF001  # as the action does
        line=int(test._elem.get("line") or "0"),  # noqa: SLF001
        time=test.time,
        result=str(blame._tag) if blame is not None else "passed",  # noqa: SLF001
        message=(blame.message if blame is not None else "") or "",
        text=(blame.text if blame is not None else "") or "",
        answer=test.system_out or "",
    )


@pytest.mark.parametrize("name", RUNS)
def test_results_that_are_published_are_those_that_were_written(files: Mapping[str, Path], name: str) -> None:
    found = JUnitXml.fromfile(str(files[name]))
    assert [published(test) for suite in found for test in suite] == written(files[name])
    assert all(len(test.result) <= 1 for suite in found for test in suite)
    # It counts what suites say, not what stands in them.
    for suite in found:
        results = [published(test).result for test in suite]
        said = (suite.tests, suite.failures, suite.errors, suite.skipped)
        assert said == (len(results), *map(results.count, ("failure", "error", "skipped")))
    assert (found.tests or 0) == len(written(files[name]))


# --- What npm has: mikepenz/action-junit-report, dorny/test-reporter, datadog-ci, junit2json ---


@pytest.fixture(scope="module")
def shown(files: Mapping[str, Path]) -> Mapping[str, Any]:
    """What every reader makes of every file."""
    folder = os.environ.get(NODE_MODULES)
    if not folder or shutil.which("node") is None:
        pytest.skip(f"{NODE_MODULES} names no folder of node_modules with readers of JUnit files: {INSTALL}")
    done = subprocess.run(
        ["node", READERS, folder, *files.values()], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(zip(files, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", RUNS)
def test_annotations_are_those_that_were_written(
    files: Mapping[str, Path], shown: Mapping[str, Any], name: str
) -> None:
    found = [
        Shown(**{**each, "line": int(each["line"] or 0), "time": float(each["time"])})
        for each in ({"file": each.pop("path"), **each} for each in shown[name]["annotations"])
    ]
    assert found == written(files[name])


@pytest.mark.parametrize("name", RUNS)
def test_reports_by_suite_are_those_that_were_written(
    files: Mapping[str, Path], shown: Mapping[str, Any], name: str
) -> None:
    groups = shown[name]["groups"]
    tests = [each for suite in groups["suites"] for each in suite["tests"]]
    words = {"passed": "success", "skipped": "skipped", "failure": "failed", "error": "failed"}
    for each, known in zip(tests, written(files[name]), strict=True):
        assert (each["group"], each["name"], each["result"]) == ("", known.name, words[known.result])
        assert each["milliseconds"] == pytest.approx(known.time * 1000)
        assert each["details"].strip() == ("" if known.result == "skipped" else known.text.strip())
    assert groups["milliseconds"] == pytest.approx(sum(each["milliseconds"] for each in groups["suites"]))


@pytest.mark.parametrize("name", RUNS)
def test_readers_that_check_files_accept_them(files: Mapping[str, Path], shown: Mapping[str, Any], name: str) -> None:
    known = written(files[name])
    assert shown[name]["validated"]["valid"] is True
    assert shown[name]["validated"]["names"] == [each.name for each in known]
    typed = shown[name]["typed"]
    assert [(each["classname"], each["name"], each["time"], each["line"]) for each in typed["cases"]] == [
        (each.classname, each.name, each.time, each.line) for each in known
    ]
    for part in (typed["counts"], *typed["suites"]):
        own = [each.result for each in known if part.get("name") in (None, each.classname)]
        assert [part[each] for each in ("tests", "failures", "errors", "skipped")] == [
            len(own),
            *map(own.count, ("failure", "error", "skipped")),
        ]


# --- What people see ---


def test_what_people_see_of_an_ordinary_run(files: Mapping[str, Path]) -> None:
    found = {each.name: each for each in written(files["mixed"])}
    assert [(each.file, each.line) for each in found.values()] == [(A, 7), (A, 8), (A, 9), *[(A, 10)] * 3]
    bad, broken = found["refuses [default]"], found["breaks [default]"]
    assert bad.message == "score 0.200; it does not greet; too <long> & rude"
    assert (bad.text, bad.answer) == ("score 0.200\nit does not greet\ntoo <long>\n& rude", "Go away\n")
    assert (broken.result, broken.message, broken.text) == ("error", "no answer within 9 s", "no answer\nwithin 9 s")
    assert [each.result for name, each in found.items() if name.startswith("flakes")] == ["passed"] * 3


def test_what_people_see_of_a_stopped_run(files: Mapping[str, Path]) -> None:
    found = written(files["stopped"])
    assert [(each.name, each.result) for each in found] == [
        ("ran [default]", "passed"),
        ("left [default]", "skipped"),
        ("some [default]", "passed"),
        ("some [default] #2", "skipped"),
        ("gate", "error"),
    ]
    assert found[3].message == "4 of 5 trials never ran: the budget is used up"


def test_what_people_see_of_a_gate(files: Mapping[str, Path]) -> None:
    assert [(each.classname, each.result, each.message) for each in written(files["gated"])] == [
        ("evals/a.yaml", "passed", ""),
        (junit.GATE, "failure", "shard 2/2 missing"),
    ]


RAILS_TYPES = frozenset(("array", "boolean", "date", "datetime", "file", "float", "integer", "symbol", "yaml"))
"""Words for which GitLab, which reads with Rails, takes the content of an element for something else than text."""


@pytest.mark.parametrize("name", RUNS)
def test_gitlab_and_jenkins_find_what_they_need(files: Mapping[str, Path], name: str) -> None:
    root = ET.parse(files[name]).getroot()
    known = written(files[name])
    # GitLab leaves out tests that it has seen, and shows the content; Jenkins needs a name, and takes suites by theirs.
    assert len({(each.classname, each.name) for each in known}) == len(known)
    assert all(each.name and each.classname for each in known)
    assert all(each.text.strip() for each in known if each.result != "passed")
    assert not RAILS_TYPES & {each.get("type") for each in root.iter()}
    assert files[name].stat().st_size < 30_000_000
    suites = [each.get("name") for each in root]
    assert len(set(suites)) == len(suites)
    assert {each.tag for each in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped", "system-out",
        "system-err",
    }  # fmt: skip
