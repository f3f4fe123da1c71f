"""The printed verdict, the run report, the JUnit file and the exit code never disagree."""

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

from agentv_ci.analysis.comparison import BaselineComparison, Side
from agentv_ci.analysis.merging import Part, merge
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.run_report import report
from agentv_ci.app import run as app_run
from agentv_ci.cli import run
from agentv_ci.contracts.plan import Plan, PlanCase, PlanSuite
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
from agentv_ci.execute.shard import Shard, part_of
from agentv_ci.report.lines import MAX_SHOWN
from agentv_ci.report.renderers import junit, markdown, sarif, terminal
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.view import GATE, RunView
from tests.report.builders import DIGEST, Verdict, case, outcomes_of, plan, row, suite
from tests.support import NOW, CommandResult, run_process, write

A, B, C = "evals/a.yaml", "evals/b.yaml", "evals/c.yaml"
CODES = {"pass": 0, "nothing": 0, "dry-run": 0, "fail": 1, "error": 4, "budget": 5, "interrupted": 130}
ELEMENTS = {
    "pass": None,
    "nothing": "skipped",
    "dry-run": "skipped",
    "fail": "failure",
    "error": "error",
    "budget": "error",
    "interrupted": "error",
}
VERDICTS: st.SearchStrategy[Verdict | None] = st.sampled_from(
    ["pass", "pass", "pass", "borderline", "fail", "error", None]
)
COSTS = st.sampled_from([None, 0.0, 0.01, 0.5, 3.0])


@dataclass(frozen=True)
class Run:
    """All that a verdict is made of."""

    plan: Plan
    rows: tuple[ResultRow, ...]
    ending: Ending
    scenarios: tuple[ScenarioReport, ...]
    against: BaselineComparison | None

    def report(self) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
        return report(self.plan, self.rows, self.ending, scenarios=self.scenarios, against=self.against)


@st.composite
def gates(draw: st.DrawFn) -> dict[str, Any]:
    given: dict[str, Any] = {
        "min_pass_rate": draw(st.sampled_from([0.0, 0.5, 2 / 3, 1.0])),
        "max_errors": draw(st.integers(0, 4)),
        "validators": draw(st.sampled_from(["error", "warn"])),
    }
    mean = draw(st.sampled_from([None, 0.0, 0.6, 1.0]))
    cost = draw(st.sampled_from([None, 0.0, 0.5, 100.0]))
    return {
        **given,
        **({} if mean is None else {"min_mean_score": mean}),
        **({} if cost is None else {"max_cost_usd": cost}),
    }


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cases: list[PlanCase] = []
    suites: list[PlanSuite] = []
    for path in draw(st.sampled_from([[A], [A, B], [A, B, C]])):
        suites.append(suite(path, **draw(gates())))
        for number in range(draw(st.integers(0 if cases else 1, 3))):
            trials = draw(st.integers(1, 4))
            given = {
                "trials": trials,
                "require": draw(st.sampled_from(["majority", "all", "any"])),
                "stop_when": draw(st.sampled_from([None, "decided"])),
                "target": draw(st.sampled_from(["default", "other"])),
                "seeds": tuple(range(draw(st.integers(0, trials)))),
            }
            cases.append(case(f"case-{number}", suite=path, line=3 + 7 * number, **given))
    targets = {name: MockTarget(name=name, provider="mock") for name in ("default", "other")}
    return plan(*cases, suites=suites).model_copy(update={"targets": targets})


@st.composite
def rows_of(draw: st.DrawFn, of: Plan) -> tuple[ResultRow, ...]:
    found = []
    for each in of.cases:
        for number in range(1, each.trials + 1):
            verdict = draw(VERDICTS)
            if verdict is None:
                continue
            given: dict[str, Any] = {
                "cost_usd": draw(COSTS),
                "judge_cost_usd": draw(COSTS),
                "target": of.targets[each.target].name,
            }
            found.append(row(verdict, of=each, trial=number, **given))
    return tuple(draw(st.permutations(found)))


@st.composite
def endings(draw: st.DrawFn, of: Plan) -> Ending:
    cases = len(of.cases)
    return Ending(
        dry_run=draw(st.sampled_from([False, False, False, True])),
        write_error=draw(st.sampled_from([None, None, "r.jsonl: disk full"])),
        stopped=draw(st.sampled_from([None, None, *get_args(Stop)])),
        incomplete=draw(st.sampled_from([(), (), ("shard 2/2 missing",)])),
        unrecorded=draw(st.sampled_from([0, 0, 0, 1, 2])),
        shard=draw(st.sampled_from([None, None, ShardRecord(index=1, total=2, cases=cases * 2)])),
        max_cost_usd=draw(st.sampled_from([None, None, 0.0, 0.7, 1000.0])),
        unpriced_models=draw(st.sampled_from([(), (), ("no-price",)])),
    )


ISSUES = st.builds(
    ValidatorIssue,
    id=st.just("found"),
    severity=st.sampled_from(["info", "warning", "error"]),
    message=st.sampled_from(["it is off", "it is off\nin two lines", "x" * 400]),
)
VALIDATIONS = st.builds(
    Validation, validator=st.just("own"), issues=st.lists(ISSUES, max_size=3).map(tuple), summary=st.just({})
) | st.builds(FailedValidation, validator=st.just("own"), error=st.just("it broke"))


@st.composite
def scenario_reports(draw: st.DrawFn, of: Plan) -> tuple[ScenarioReport, ...]:
    return tuple(
        ScenarioReport(
            scenario_key=path,
            aggregates=ScenarioAggregates(
                runs=1, errors=0, validations=tuple(draw(st.lists(VALIDATIONS, min_size=1, max_size=2)))
            ),
        )
        for path in sorted({each.suite for each in of.cases})
        if draw(st.booleans())
    )


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run, however it ended."""
    of = draw(plans())
    against = None
    if draw(st.booleans()):
        older = outcomes_of(of, draw(rows_of(of)))
        against = BaselineComparison(Side("main.json", older), "r.jsonl", NOW)
    ending = draw(endings(of))
    rows = tuple(each.model_copy(update={"dry_run": ending.dry_run}) for each in draw(rows_of(of)))
    return Run(of, rows, ending, draw(scenario_reports(of)), against)


def printed(found: RunReport, outcomes: Sequence[CaseOutcome]) -> tuple[str, list[str]]:
    """What is printed of the gate: its line, and the reasons below."""
    texts = [line.text for line in terminal.render(RunView(found, outcomes))]
    (place,) = [number for number, text in enumerate(texts) if text.startswith("gate: ")]
    return texts[place], texts[place + 1 :]


def xml_of(found: RunReport, outcomes: Sequence[CaseOutcome], rows: Sequence[ResultRow]) -> ET.Element:
    return ET.fromstring(b"".join(junit.render(RunView(found, outcomes, lambda: rows))))


def agree(found: RunReport, word: str, reasons: Sequence[str], root: ET.Element) -> None:
    """Say where the four tell different things."""
    gate = found.gate
    assert (word == "gate: passed") == (gate.verdict == "pass")
    assert (word == "gate: not applied to a dry run") == (gate.verdict == "dry-run")
    assert word.startswith("gate: nothing ran") == (gate.verdict == "nothing")
    assert word.startswith("gate: not passed") == (gate.verdict in ("fail", "error", "budget", "interrupted"))
    if word.startswith("gate: not passed"):
        # Sentences are folded at the terminal's edge.
        more = len(gate.reasons) - MAX_SHOWN
        told = [*gate.reasons[:MAX_SHOWN], *([f"… and {more} more"] if more > 0 else [])]
        assert " ".join(reasons).split() == " ".join(told).split()
        assert ("not enforced" in word) == (gate.exit_code == 0)
    if found.shard is None:
        assert gate.exit_code == CODES[gate.verdict]
    else:
        assert gate.exit_code in (CODES[gate.verdict], 0, 4)
        assert gate.exit_code == CODES[gate.verdict] or gate.verdict in ("fail", "error")
    assert bool(gate.reasons) == (gate.verdict not in ("pass", "dry-run"))
    blamed = {suite: [each for each in suite.iter() if each.tag in ("failure", "error")] for suite in root}
    own = [suite for suite in root if suite.get("name") == junit.GATE]
    if gate.exit_code:
        assert any(blamed.values()), "no file is green whose run is not"
    for part in root:
        values = {each.get("name"): each.get("value") for each in part.findall("properties/property")}
        assert values == {"gate": gate.verdict, "exit_code": str(gate.exit_code)}
    for part in own:
        assert gate.exit_code != 0
        assert [each.tag for each in blamed[part]] == [ELEMENTS[gate.verdict]]
        assert not any(found for other, found in blamed.items() if other is not part)
        assert (blamed[part][0].get("message") or "").split()[:3] == "; ".join(gate.reasons).split()[:3]
    assert_counts(root)


def assert_counts(root: ET.Element) -> None:
    for holder in [root, *root]:
        cases = list(holder.iter("testcase"))
        assert int(holder.get("tests", "")) == len(cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(holder.get(name, "")) == sum(each.find(tag) is not None for each in cases)


def assert_complete(root: ET.Element, rows: Sequence[ResultRow], outcomes: Sequence[CaseOutcome]) -> None:
    """Every row has a test, and every case of which trials are missing has one that is skipped."""
    own = sum(each.get("name") == junit.GATE for each in root)
    skipped = sum(1 for _ in root.iter("skipped"))
    assert skipped == sum(each.missing > 0 for each in outcomes)
    assert len(list(root.iter("testcase"))) == len(rows) + skipped + own
    names = [(each.get("classname"), each.get("name")) for each in root.iter("testcase")]
    assert len(set(names)) == len(names)


def agrees(each: Run) -> RunReport:
    found, outcomes = each.report()
    root = xml_of(found, outcomes, each.rows)
    agree(found, *printed(found, outcomes), root)
    assert_complete(root, each.rows, outcomes)
    assert RunReport.model_validate(json.loads(json.dumps(found.model_dump(by_alias=True)))) == found
    return found


@settings(derandomize=True, max_examples=400)
@given(runs())
def test_what_is_printed_recorded_and_written_is_one_verdict(each: Run) -> None:
    agrees(each)


@settings(derandomize=True, max_examples=80)
@given(runs())
def test_every_report_begins_with_the_gates_word(each: Run) -> None:
    found, outcomes = each.report()
    run = RunView(found, outcomes, lambda: each.rows)
    word = GATE[found.gate.verdict]
    assert b"".join(markdown.render(run)).decode().splitlines()[0].endswith(f"Evaluations: {word}")
    title = re.search(r'<h1 id="gate-title">(.*?)</h1>', b"".join(html.render(run)).decode(), re.DOTALL)
    assert title is not None
    assert title[1].endswith(f" {word.capitalize()}")
    (log_run,) = json.loads(b"".join(sarif.render(run)))["runs"]
    (ended,) = log_run["invocations"]
    assert (ended["exitCode"], ended["exitCodeDescription"]) == (found.gate.exit_code, found.gate.verdict)
    is_red = any(result["level"] == "error" for result in log_run["results"])
    assert is_red or found.gate.exit_code == 0, "no log is green whose run is not"


@settings(derandomize=True, max_examples=400)
@given(runs())
def test_what_passes_has_nothing_against_it(each: Run) -> None:
    found, outcomes = each.report()
    if found.gate.verdict != "pass":
        return
    ending = each.ending
    assert (ending.write_error, ending.unrecorded, ending.stopped, ending.incomplete) == (None, 0, None, ())
    assert not ending.dry_run
    for limits in found.gate.settings:
        own = [outcome for outcome in outcomes if outcome.case.suite == limits.suite]
        graded = [outcome for outcome in own if outcome.verdict != "error"]
        assert graded, "nothing graded never passes"
        assert len(own) - len(graded) <= limits.max_errors
        assert sum(outcome.errors for outcome in own) <= limits.max_errors
        assert sum(outcome.verdict == "pass" for outcome in graded) / len(graded) >= limits.min_pass_rate - 1e-9
        assert limits.max_cost_usd is None or not ending.unpriced_models
        spent = [
            cost
            for row in each.rows
            if row.suite == limits.suite
            for cost in (row.cost_usd, row.judge_cost_usd)
            if cost is not None
        ]
        assert limits.max_cost_usd is None or sum(spent) <= limits.max_cost_usd + 1e-9
        if limits.validator_errors == "error":
            said = [v for s in each.scenarios if s.scenario_key == limits.suite for v in s.aggregates.validations]
            assert not any(isinstance(v, Validation) and v.errors for v in said)
    assert ending.max_cost_usd is None or not ending.unpriced_models
    assert found.comparison is None or not found.comparison.reasons
    assert (each.against is None) == (found.comparison is None)


@settings(derandomize=True, max_examples=200)
@given(runs(), st.randoms(use_true_random=False))
def test_verdict_does_not_depend_on_the_order_of_rows(each: Run, chance: Any) -> None:
    shuffled = list(each.rows)
    chance.shuffle(shuffled)
    assert replace(each, rows=tuple(shuffled)).report()[0] == each.report()[0]


@settings(derandomize=True, max_examples=200)
@given(runs())
def test_counts_are_those_of_the_verdicts(each: Run) -> None:
    found, outcomes = each.report()
    counts = found.counts
    assert counts.cases == counts.passed + counts.failed + counts.errored == len(each.plan.cases)
    assert counts.rows == len(each.rows)
    assert counts.not_run <= counts.errored
    if found.comparison is not None:
        assert sum(found.comparison.counts.values()) == len(outcomes)
    assert [sum(g.cases for g in groups) for groups in (found.suites, found.targets)] == [counts.cases] * 2


@settings(derandomize=True, max_examples=150)
@given(runs(), st.integers(2, 3), st.integers(0, 2))
def test_parts_together_have_the_verdict_of_the_whole_and_a_missing_part_never_passes(
    each: Run, total: int, absent: int
) -> None:
    ending = replace(each.ending, shard=None, incomplete=(), stopped=None, write_error=None, unrecorded=0)
    whole = replace(each, ending=ending, scenarios=())
    parts, rows = [], []
    for index in range(1, total + 1):
        of = part_of(each.plan, Shard(index, total), {})
        keys = {(part.suite, part.id) for part in of.cases}
        own = tuple(found for found in each.rows if (found.suite, found.eval_id) in keys)
        record = ShardRecord(index=index, total=total, cases=len(each.plan.cases))
        shard = Run(of, own, replace(ending, shard=record), (), each.against)
        part = Part(f"{index}.jsonl", agrees(shard))
        parts.append(part)
        rows += [(part, found) for found in own]
    # Without rows nothing tells of a case but its part's report: only how many there are.
    merged, outcomes = merge(parts, rows, total, validate=lambda _: (), against=each.against)
    agree(merged, *printed(merged, outcomes), xml_of(merged, outcomes, [found for _, found in rows]))
    known, _ = whole.report()
    assert (merged.gate.verdict, merged.gate.exit_code) == (known.gate.verdict, known.gate.exit_code)
    kept = [part for number, part in enumerate(parts) if number != absent]
    fewer = [(part, found) for part, found in rows if part in kept]
    if absent >= total:
        return
    lacking, outcomes = merge(kept, fewer, None, validate=lambda _: (), against=each.against)
    agree(lacking, *printed(lacking, outcomes), xml_of(lacking, outcomes, [found for _, found in fewer]))
    assert lacking.gate.exit_code != 0, "a missing shard never passes"
    assert any("missing" in reason for reason in lacking.gate.reasons)
    assert lacking.plan_digest == DIGEST


# --- Through the command line ---


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


HELLO = {"name": "hello", "type": "contains", "value": "Hello"}
ADA = {"name": "ada", "type": "contains", "value": "Ada"}
MOCK = {"name": "default", "provider": "mock", "response": "Hello!"}
BROKEN = {"name": "broken", "provider": "cli", "command_template": "false {PROMPT}"}
BALANCED = {"key": "fairness_balance", "group": "case_id", "metric_path": "metrics.score"}
JUDGE = {"name": "judge", "provider": "mock", "response": '{"score": 1.0, "reasoning": "kind"}'}


def documents(folder: Path, **suites: dict[str, Any]) -> None:
    """Write eval files by their name: `cases` by id, and the rest their `execution`."""
    asked = {
        "expected_outcome": "A greeting",
        "expected_messages": [],
        "input_messages": [{"role": "user", "content": "Greet me"}],
    }
    targets = {"$schema": "agentv-targets-v2.2", "targets": [MOCK, BROKEN, JUDGE]}
    files = {"targets.yaml": json.dumps(targets)}
    for name, own in suites.items():
        cases = own.get("cases", {"one": {}})
        execution = {"evaluators": [HELLO], "max_retries": 0, **{k: v for k, v in own.items() if k != "cases"}}
        evals = {
            "$schema": "agentv-eval-v2",
            "execution": execution,
            "evalcases": [{**asked, "id": key, **case} for key, case in cases.items()],
        }
        files[f"evals/{name}.yaml"] = json.dumps(evals)
    write(folder, files)


GOOD: dict[str, Any] = {}
WORSE = {"evaluators": [ADA]}
BREAKS = {"execution": {"target": "broken", "evaluators": [HELLO], "max_retries": 0}}
CORPORA: dict[str, tuple[dict[str, dict[str, Any]], list[str], int]] = {
    "passes": ({"a": {}, "b": {}}, [], 0),
    "fails": ({"a": {"cases": {"one": {}, "two": WORSE}}, "b": {}}, [], 1),
    "a rate that is enough": ({"a": {"cases": {"one": {}, "two": WORSE}, "gate": {"min_pass_rate": 0.5}}}, [], 0),
    "an error": ({"a": {"cases": {"one": {}, "two": BREAKS}}}, [], 4),
    "an error that is allowed": ({"a": {"cases": {"one": {}, "two": BREAKS}}}, ["--max-errors", "1"], 0),
    "nothing graded": ({"a": {"cases": {"two": BREAKS}}}, ["--max-errors", "1"], 1),
    "an error and a failure": ({"a": {"cases": {"one": WORSE, "two": BREAKS}}}, [], 1),
    "fail-fast": ({"a": {"cases": {"one": WORSE, "two": {}}}}, ["--fail-fast"], 1),
    "fail-fast at an error": ({"a": {"cases": {"one": BREAKS, "two": {}}}}, ["--fail-fast"], 4),
    "dry run": ({"a": {"cases": {"one": WORSE}}}, ["--dry-run"], 0),
    "several trials": ({"a": {"repeat": {"max": 5, "stop_when": "decided"}}}, [], 0),
    "an error of a validator": (
        {"a": {"cases": {"one": {}, "two": WORSE}, "validators": [BALANCED], "gate": {"min_pass_rate": 0}}},
        [],
        1,
    ),
    "a validator that warns": (
        {
            "a": {
                "cases": {"one": {}, "two": WORSE},
                "validators": [BALANCED],
                "gate": {"min_pass_rate": 0, "validators": "warn"},
            }
        },
        [],
        0,
    ),
}


def end(capsys: pytest.CaptureFixture[str], *arguments: str) -> CommandResult:
    """Run a command in this process."""
    code = run(arguments)
    captured = capsys.readouterr()
    return CommandResult(code, captured.out, captured.err)


def assert_one_verdict(ended: CommandResult, report_path: Path | None, junit_path: Path) -> None:
    lines = ended.out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("gate: ")]
    root = ET.fromstring(junit_path.read_bytes())
    for part in root:
        values = {each.get("name"): each.get("value") for each in part.findall("properties/property")}
        assert values["exit_code"] == str(ended.code)
        assert (lines[place] == "gate: passed") == (values["gate"] == "pass")
    assert_counts(root)
    if report_path is None:
        return
    found = RunReport.model_validate_json(report_path.read_bytes())
    reasons = [*takewhile(lambda line: line.startswith("  "), lines[place + 1 :])]
    agree(found, lines[place], reasons if found.gate.exit_code else found.gate.reasons, root)
    assert found.gate.exit_code == ended.code


@pytest.mark.parametrize("name", CORPORA)
def test_commands_end_as_their_report_says(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    suites, flags, code = CORPORA[name]
    documents(folder, **suites)
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl", "--junit", "j.xml", *flags)
    assert ended.code == code
    assert_one_verdict(ended, folder / "r.report.json", folder / "j.xml")
    again = end(capsys, "report", "r.jsonl", "--out", "all.jsonl", "--junit", "all.xml")
    assert again.code == code
    assert_one_verdict(again, folder / "all.report.json", folder / "all.xml")
    gates = [json.loads((folder / each).read_text("utf-8"))["gate"] for each in ("r.report.json", "all.report.json")]
    assert gates[0]["reasons"] == gates[1]["reasons"]


@pytest.mark.parametrize("name", [name for name in CORPORA if "fail-fast" not in name])
def test_rescoring_with_the_same_documents_has_the_same_verdict(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suites, flags, code = CORPORA[name]
    documents(folder, **suites)
    assert end(capsys, "eval", "evals", "--out", "r.jsonl", *flags).code == code
    ended = end(capsys, "rescore", "r.jsonl", "evals", "--target", "default", "--junit", "j.xml", *flags)
    if "target" in ended.err and ended.code in (2, 3):
        pytest.skip("its rows are of two targets")
    assert_one_verdict(ended, folder / "r.rescored.report.json", folder / "j.xml")
    before, after = (
        json.loads((folder / each).read_text("utf-8"))["gate"] for each in ("r.report.json", "r.rescored.report.json")
    )
    if "error" not in name and "graded" not in name:
        assert (ended.code, after["reasons"]) == (code, before["reasons"])


@pytest.mark.parametrize("name", ["passes", "fails", "an error", "a validator that warns", "an error of a validator"])
def test_shards_together_end_as_the_whole(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    suites, flags, code = CORPORA[name]
    documents(folder, **suites)
    for index in (1, 2):
        part = [f"part-{index}.jsonl", "--junit", f"part-{index}.xml"]
        ended = end(capsys, "eval", "evals", "--shard", f"{index}/2", "--out", *part, *flags)
        assert ended.code in (0, 4)
        assert_one_verdict(ended, folder / f"part-{index}.report.json", folder / f"part-{index}.xml")
    merged = end(capsys, "report", "part-1.jsonl", "part-2.jsonl", "--out", "all.jsonl", "--junit", "all.xml")
    assert merged.code == code
    assert_one_verdict(merged, folder / "all.report.json", folder / "all.xml")


def test_junit_is_told_when_the_run_report_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    (folder / f".r.report.json.{os.getpid()}.new").mkdir()
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl", "--junit", "j.xml")
    assert ended.code == 4
    assert "gate: not passed" in ended.out


def test_junit_does_not_say_pass_when_the_run_report_is_lost(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    (folder / f".r.report.json.{os.getpid()}.new").mkdir()
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl", "--junit", "j.xml")
    assert ended.code == 4
    if (folder / "j.xml").exists():
        assert_one_verdict(ended, None, folder / "j.xml")


def test_merged_report_does_not_say_pass_when_junit_is_lost(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 0
    ended = run_process("report", "r.jsonl", "--out", "all.jsonl", "--junit", "r.jsonl/x.xml", cwd=folder)
    assert ended.code == 4
    if (folder / "all.report.json").exists():
        found = RunReport.model_validate_json((folder / "all.report.json").read_bytes())
        assert found.gate.exit_code == ended.code


def test_shard_without_a_grade_has_the_verdict_of_its_exit_status(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={"cases": {"one": BREAKS, "two": BREAKS}})
    ended = end(capsys, "eval", "evals", "--shard", "1/2", "--out", "r.jsonl", "--max-errors", "5")
    assert ended.code == 4
    found = RunReport.model_validate_json((folder / "r.report.json").read_bytes())
    assert CODES[found.gate.verdict] == ended.code


def test_run_whose_rows_are_lost_passes_nowhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={})
    whole = app_run.conclude

    def torn(*given: Any, **named: Any) -> Any:
        path = folder / "r.jsonl"
        path.write_bytes(path.read_bytes()[:50])
        return whole(*given, **named)

    monkeypatch.setattr("agentv_ci.app.run.conclude", torn)
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl", "--junit", "j.xml")
    assert ended.code == 4
    assert_one_verdict(ended, folder / "r.report.json", folder / "j.xml")
