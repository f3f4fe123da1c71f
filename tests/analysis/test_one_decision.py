"""The printed verdict, the run report, JUnit, the other reports and the exit code never disagree."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side
from agentv_ci.analysis.run_report import report
from agentv_ci.app.run import conclude as app_run
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    RunReport,
    ScenarioAggregates,
    ScenarioReport,
    ShardRecord,
    Stop,
    Validation,
    ValidatorIssue,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.report.lines import MAX_SHOWN
from agentv_ci.report.renderers import junit, markdown, sarif, terminal
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.view import GATE, RunView
from tests.support import NOW
from tests.support.evals import FINDS, mock, tool
from tests.support.projects import Project
from tests.support.runs import case, outcomes_of, plan, row, suite

PATHS = ("evals/a.yaml", "evals/b.yaml", "evals/c.yaml")
ENDS: dict[str, tuple[int, str | None]] = {
    "pass": (0, None),
    "nothing": (0, "skipped"),
    "dry-run": (0, "skipped"),
    "fail": (1, "failure"),
    "error": (4, "error"),
    "budget": (5, "error"),
    "interrupted": (130, "error"),
}
"""Exit codes and elements of JUnit by verdict."""
VERDICTS: st.SearchStrategy[Verdict | None] = st.sampled_from(
    ["pass", "pass", "pass", "borderline", "fail", "error", None]
)
COSTS = st.sampled_from([None, 0.0, 0.01, 0.5, 3.0])


@dataclass(frozen=True)
class Run:
    """All that a decision depends on."""

    plan: Plan
    rows: tuple[ResultRow, ...]
    ending: Ending
    scenarios: tuple[ScenarioReport, ...]
    against: BaselineComparison | None

    def report(self) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
        return report(self.plan, self.rows, self.ending, scenarios=self.scenarios, against=self.against)


GATES = st.fixed_dictionaries(
    {
        "min_pass_rate": st.sampled_from([0.0, 0.5, 2 / 3, 1.0]),
        "max_errors": st.integers(0, 4),
        "validators": st.sampled_from(["error", "warn"]),
    },
    optional={"min_mean_score": st.sampled_from([0.0, 0.6, 1.0]), "max_cost_usd": st.sampled_from([0.0, 0.5, 100.0])},
)
TRIALS = st.fixed_dictionaries(
    {
        "trials": st.integers(1, 4),
        "require": st.sampled_from(["majority", "all", "any"]),
        "stop_when": st.sampled_from([None, "decided"]),
        "target": st.sampled_from(["default", "other"]),
    }
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cases: list[PlanCase] = []
    paths = PATHS[: draw(st.integers(1, 3))]
    for path in paths:
        numbers = range(draw(st.integers(0 if cases else 1, 3)))
        cases += [case(f"case-{number}", suite=path, line=3 + 7 * number, **draw(TRIALS)) for number in numbers]
    targets = {name: MockTarget(name=name, provider="mock") for name in ("default", "other")}
    suites = [suite(path, **draw(GATES)) for path in paths]
    return plan(*cases, suites=suites).model_copy(update={"targets": targets})


@st.composite
def rows_of(draw: st.DrawFn, of: Plan) -> tuple[ResultRow, ...]:
    found = []
    for each in of.cases:
        for number in range(1, each.trials + 1):
            verdict = draw(VERDICTS)
            costs = {"cost_usd": draw(COSTS), "judge_cost_usd": draw(COSTS)}
            if verdict is not None:
                found.append(row(verdict, of=each, trial=number, target=each.target, **costs))
    return tuple(draw(st.permutations(found)))


ENDINGS = st.builds(
    Ending,
    dry_run=st.sampled_from([False, False, False, True]),
    write_error=st.sampled_from([None, None, "r.jsonl: disk full"]),
    stopped=st.sampled_from([None, None, *get_args(Stop)]),
    incomplete=st.sampled_from([(), (), ("shard 2/2 missing",)]),
    unrecorded=st.sampled_from([0, 0, 0, 1, 2]),
    shard=st.sampled_from([None, None, ShardRecord(index=1, total=2, cases=18)]),
    max_cost_usd=st.sampled_from([None, None, 0.0, 0.7, 1000.0]),
    unpriced_models=st.sampled_from([(), (), ("no-price",)]),
)
ISSUES = st.builds(
    ValidatorIssue,
    id=st.just("found"),
    severity=st.sampled_from(["info", "warning", "error"]),
    message=st.sampled_from(["it is off", "it is off\nin two lines", "x" * 400]),
)
VALIDATIONS = st.builds(
    Validation, validator=st.just("own"), issues=st.lists(ISSUES, max_size=3).map(tuple), summary=st.just({})
) | st.builds(FailedValidation, validator=st.just("own"), error=st.just("unexpected"))
AGGREGATES = st.lists(VALIDATIONS, min_size=1, max_size=2).map(
    lambda found: ScenarioAggregates(runs=1, errors=0, validations=tuple(found))
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run with any end."""
    of = draw(plans())
    against = None
    if draw(st.booleans()):
        older = outcomes_of(of, draw(rows_of(of)))
        against = BaselineComparison(Side("main.json", older), "r.jsonl", NOW)
    ending = draw(ENDINGS)
    rows = tuple(each.model_copy(update={"dry_run": ending.dry_run}) for each in draw(rows_of(of)))
    validated = [path for path in sorted({each.suite for each in of.cases}) if draw(st.booleans())]
    scenarios = tuple(ScenarioReport(scenario_key=path, aggregates=draw(AGGREGATES)) for path in validated)
    return Run(of, rows, ending, scenarios, against)


def agree(found: RunReport, line: str, reasons: Sequence[str], root: ET.Element) -> None:
    """Check that the terminal and JUnit have the decision of the run report."""
    gate = found.gate
    code, element = ENDS[gate.verdict]
    assert (line == "gate: passed") == (gate.verdict == "pass")
    assert (line == "gate: not applied to a dry run") == (gate.verdict == "dry-run")
    assert line.startswith("gate: nothing ran") == (gate.verdict == "nothing")
    if gate.verdict in ("fail", "error", "budget", "interrupted"):
        assert line.partition(" (not enforced")[0] == f"gate: {GATE[gate.verdict]}"
        # Sentences are folded at the terminal's edge.
        more = len(gate.reasons) - MAX_SHOWN
        told = [*gate.reasons[:MAX_SHOWN], *([f"… and {more} more"] if more > 0 else [])]
        assert " ".join(reasons).split() == " ".join(told).split()
        assert ("not enforced" in line) == (gate.exit_code == 0)
    if found.shard is None:
        assert gate.exit_code == code
    else:
        assert gate.exit_code in (code, 0, 4)
        assert gate.exit_code == code or gate.verdict in ("fail", "error")
    assert bool(gate.reasons) == (gate.verdict not in ("pass", "dry-run"))
    blamed = {suite: [each for each in suite.iter() if each.tag in ("failure", "error")] for suite in root}
    if gate.exit_code:
        assert any(blamed.values()), "the file of a failed run is not green"
    for part in root:
        values = {each.get("name"): each.get("value") for each in part.findall("properties/property")}
        costs = {"cost_usd", "cost_per_pass_usd"}
        shown = {name: value for name, value in values.items() if name not in costs}
        assert shown == {"gate": gate.verdict, "exit_code": str(gate.exit_code)}
        if part.get("name") == junit.GATE:
            assert gate.exit_code != 0
            assert [each.tag for each in blamed[part]] == [element]
            assert not any(found for other, found in blamed.items() if other is not part)
            assert (blamed[part][0].get("message") or "").split()[:3] == "; ".join(gate.reasons).split()[:3]
    for holder in [root, *root]:
        cases = list(holder.iter("testcase"))
        assert int(holder.get("tests", "")) == len(cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(holder.get(name, "")) == sum(each.find(tag) is not None for each in cases)


@settings(max_examples=70)
@given(runs())
def test_terminal_run_report_and_junit_have_one_decision(each: Run) -> None:
    found, outcomes = each.report()
    lines = [line.text for line in terminal.render(RunView(found, outcomes))]
    (place,) = [number for number, text in enumerate(lines) if text.startswith("gate: ")]
    root = ET.fromstring(b"".join(junit.render(RunView(found, outcomes, lambda: each.rows))))
    agree(found, lines[place], lines[place + 1 :], root)
    # Every row has a test, and every case with missing trials has a skipped one.
    own = sum(each.get("name") == junit.GATE for each in root)
    skipped = sum(1 for _ in root.iter("skipped"))
    assert skipped == sum(outcome.missing > 0 for outcome in outcomes)
    names = [(test.get("classname"), test.get("name")) for test in root.iter("testcase")]
    assert len(names) == len(set(names)) == len(each.rows) + skipped + own
    assert RunReport.model_validate(json.loads(json.dumps(found.model_dump(by_alias=True)))) == found


@settings(max_examples=30)
@given(runs())
def test_markdown_html_and_sarif_have_the_verdict(each: Run) -> None:
    found, outcomes = each.report()
    run = RunView(found, outcomes, lambda: each.rows)
    verdict = GATE[found.gate.verdict]
    assert b"".join(markdown.render(run)).decode().splitlines()[0].endswith(f"Evaluations: {verdict}")
    title = re.search(r'<h1 id="gate-title">(.*?)</h1>', b"".join(html.render(run)).decode(), re.DOTALL)
    assert title is not None
    assert title[1].endswith(f" {verdict.capitalize()}")
    (log_run,) = json.loads(b"".join(sarif.render(run)))["runs"]
    (ended,) = log_run["invocations"]
    assert (ended["exitCode"], ended["exitCodeDescription"]) == (found.gate.exit_code, found.gate.verdict)
    is_red = any(result["level"] == "error" for result in log_run["results"])
    assert is_red or found.gate.exit_code == 0, "the log of a failed run has an error"


@settings(max_examples=100)
@given(runs())
def test_run_that_passes_meets_all_requirements(each: Run) -> None:
    limit, models = each.ending.max_cost_usd, each.ending.unpriced_models
    rows = tuple(found.model_copy(update={"dry_run": False}) for found in each.rows)
    found, outcomes = replace(each, rows=rows, ending=Ending(max_cost_usd=limit, unpriced_models=models)).report()
    if found.gate.verdict != "pass":
        return
    for limits in found.gate.settings:
        own = [outcome for outcome in outcomes if outcome.case.suite == limits.suite]
        graded = [outcome for outcome in own if outcome.verdict != "error"]
        assert graded, "a suite without grades does not pass"
        assert sum(outcome.errors for outcome in own) <= limits.max_errors
        assert sum(outcome.verdict == "pass" for outcome in graded) / len(graded) >= limits.min_pass_rate - 1e-9
        costs = [cost for row in rows if row.suite == limits.suite for cost in (row.cost_usd, row.judge_cost_usd)]
        assert limits.max_cost_usd is None or not models
        assert limits.max_cost_usd is None or sum(cost or 0 for cost in costs) <= limits.max_cost_usd + 1e-9
        if limits.validator_errors == "error":
            issues = [v for s in each.scenarios if s.scenario_key == limits.suite for v in s.aggregates.validations]
            assert not any(isinstance(v, Validation) and v.errors for v in issues)
    assert limit is None or not models
    assert found.comparison is None or not found.comparison.reasons
    assert (each.against is None) == (found.comparison is None)


BALANCED = {"key": "fairness_balance", "group": "case_id", "metric_path": "metrics.score"}
GOOD: dict[str, Any] = {}
WORSE = {"evaluators": [{"name": "more", "type": "contains", "value": "43"}]}
BREAKS = {"execution": {"target": "broken", "evaluators": [FINDS], "max_retries": 0}}
WARNS = {"min_pass_rate": 0, "validators": "warn"}

PROJECTS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], list[str], int]] = {
    "passes": ([GOOD, GOOD], {}, [], 0),
    "fails": ([GOOD, WORSE], {}, [], 1),
    "an error": ([GOOD, BREAKS], {}, [], 4),
    "a crash that is allowed": ([GOOD, BREAKS], {}, ["--max-errors", "1"], 1),
    "a crash that is allowed to fail": ([GOOD, BREAKS], {}, ["--max-errors", "1", "--min-pass-rate", "0.5"], 0),
    "nothing graded": ([BREAKS], {}, ["--max-errors", "1"], 1),
    "a shard without a grade": ([BREAKS, BREAKS], {}, ["--max-errors", "5", "--shard", "1/2"], 4),
    "fail-fast": ([WORSE, GOOD], {}, ["--fail-fast"], 1),
    "fail-fast at an error": ([BREAKS, GOOD], {}, ["--fail-fast"], 4),
    "dry run": ([WORSE], {}, ["--dry-run"], 0),
    "several trials": ([GOOD], {"repeat": {"max": 5, "stop_when": "decided"}}, [], 0),
    "a validator": ([GOOD, WORSE], {"validators": [BALANCED], "gate": {"min_pass_rate": 0}}, [], 1),
    "a validator that warns": ([GOOD, WORSE], {"validators": [BALANCED], "gate": WARNS}, [], 0),
}
"""Cases, `execution`, flags and the exit code."""
RESCORED = ("fails", "a validator")


def documents(project: Project, cases: Sequence[dict[str, Any]], **execution: Any) -> None:
    targets = mock(), tool("false {PROMPT}", name="broken")
    project.documents(*cases, targets=targets, **{"evaluators": [FINDS], "max_retries": 0, **execution})


def decided(project: Project, *command: str, beside: str) -> tuple[int, tuple[str, ...]]:
    """Run a command and return its exit code and reasons, which all its files have."""
    done = project.run(*command, "--junit", "j.xml")
    lines = done.out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("gate: ")]
    found = RunReport.model_validate_json(project.text(f"{beside}.report.json"))
    reasons = [*takewhile(lambda line: line.startswith("  "), lines[place + 1 :])]
    told = reasons if found.gate.exit_code else found.gate.reasons
    agree(found, lines[place], told, ET.parse(project.path("j.xml")).getroot())
    assert found.gate.exit_code == done.code
    return done.code, found.gate.reasons


@pytest.mark.parametrize("name", PROJECTS)
def test_commands_exit_as_their_reports_say(repository: Path, name: str) -> None:
    cases, execution, flags, code = PROJECTS[name]
    project = Project(repository)
    documents(project, cases, **execution)
    first = decided(project, "eval", "evals", "--out", "r.jsonl", *flags, beside="r")
    assert first[0] == code
    if "--shard" not in flags:
        assert decided(project, "report", "r.jsonl", "--out", "all.jsonl", beside="all") == first
    if name in RESCORED:
        assert decided(project, "rescore", "r.jsonl", "evals", beside="r.rescored") == first


def test_run_without_a_run_report_does_not_pass(repository: Path) -> None:
    project = Project(repository)
    documents(project, [GOOD])
    project.path(f".r.report.json.{os.getpid()}.new").mkdir()
    done = project.eval("--junit", "j.xml")
    assert (done.code, "gate: no verdict" in done.out) == (4, True)
    properties = ET.parse(project.path("j.xml")).iter("property")
    assert {each.get("value") for each in properties if each.get("name") == "exit_code"} == {"4"}


def test_run_that_loses_rows_does_not_pass(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, whole = Project(repository), app_run.conclude
    documents(project, [GOOD])

    def torn(*given: Any, **named: Any) -> Any:
        project.write({"r.jsonl": project.text("r.jsonl")[:50]})
        return whole(*given, **named)

    monkeypatch.setattr("agentv_ci.app.run.run.conclude", torn)
    assert decided(project, "eval", "evals", "--out", "r.jsonl", beside="r")[0] == 4
