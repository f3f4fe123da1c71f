"""The gate: verdict, exit code and reasons."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    GateResult,
    GateSettings,
    ScenarioAggregates,
    ScenarioReport,
    Validation,
    ValidatorIssue,
)
from tests.support.runs import case, plan, row, rows_of, suite

A, B, C = "evals/a.yaml", "evals/b.yaml", "evals/c.yaml"
VERDICTS = {0: "pass", 1: "fail", 4: "error"}
NO_ERROR = "1 errored case, at most 0 allowed"
NO_ERRORED_TRIAL = "1 errored trial, at most 0 allowed"
HALF, NONE = "pass rate 50.0% is below 100.0%", "pass rate 0.0% is below 100.0%"


def judged(words: str | dict[str, str], ending: Ending | None = None, **gate: Any) -> GateResult:
    """The gate over one suite, or over the suites a, b and c: one case per word, one trial per letter."""
    suites = {"a": words} if isinstance(words, str) else words
    cases = [
        (case(f"case-{number}", suite=f"evals/{name}.yaml", trials=len(word)), word)
        for name, own in suites.items()
        for number, word in enumerate(own.split())
    ]
    of = plan(*(each for each, _ in cases), suites=[suite(f"evals/{name}.yaml", **gate) for name in suites])
    return report(of, [found for each, word in cases for found in rows_of(each, word)], ending or Ending())[0].gate


def decision(gate: GateResult) -> tuple[str, int, tuple[str, ...]]:
    return gate.verdict, gate.exit_code, gate.reasons


@pytest.mark.parametrize(
    ("words", "gate", "code", "reasons"),
    [
        ("p p", {}, 0, []),
        ("p f", {}, 1, [HALF]),
        ("p b", {}, 1, [HALF]),
        ("p f", {"min_pass_rate": 0.5}, 0, []),
        ("p p f", {"min_pass_rate": 2 / 3}, 0, []),
        ("p f f", {"min_pass_rate": 0.5}, 1, ["pass rate 33.3% is below 50.0%"]),
        ("p f f", {"min_pass_rate": 0.3334}, 1, ["pass rate 33.33% is below 33.34%"]),
        ("f f", {"min_pass_rate": 0.0}, 0, []),
        ("p p", {"min_mean_score": 1.0}, 0, []),
        ("p f b", {"min_pass_rate": 0.0, "min_mean_score": 1.9 / 3}, 0, []),
        ("p f", {"min_pass_rate": 0.0, "min_mean_score": 0.75}, 1, ["mean score 0.600 is below 0.750"]),
        ("p f", {"min_pass_rate": 0.0, "min_mean_score": 0.6004}, 1, ["mean score 0.6000 is below 0.6004"]),
        ("p f", {"min_mean_score": 0.75}, 1, [HALF, "mean score 0.600 is below 0.750"]),
        ("p e", {}, 4, [NO_ERROR]),
        ("p e", {"max_errors": 1}, 0, []),
        ("p e e", {"max_errors": 1}, 4, ["2 errored cases, at most 1 allowed"]),
        ("p -", {}, 4, [NO_ERROR]),
        ("pp-", {}, 4, [NO_ERRORED_TRIAL]),
        ("ppe", {}, 4, [NO_ERRORED_TRIAL]),
        ("ppe", {"max_errors": 1}, 0, []),
        ("pppee", {"max_errors": 1}, 4, ["2 errored trials, at most 1 allowed"]),
        ("p c", {}, 4, [HALF, NO_ERROR]),
        ("p c", {"max_errors": 1}, 1, [HALF]),
        ("p c", {"max_errors": 1, "min_pass_rate": 0.5}, 0, []),
        ("p c e", {"max_errors": 2, "min_pass_rate": 0.5}, 0, []),
        ("p c", {"max_errors": 1, "min_pass_rate": 0.5, "min_mean_score": 0.6}, 1, ["mean score 0.500 is below 0.600"]),
        ("p f c", {}, 1, ["pass rate 33.3% is below 100.0%", NO_ERROR]),
        ("ppp ppc", {"max_errors": 3}, 0, []),
        ("ppp pcc", {"max_errors": 3}, 1, [HALF]),
        ("ppp ccc", {"max_errors": 3}, 1, [HALF]),
        ("ppp cee", {"max_errors": 3}, 1, [HALF]),
        ("ppp eee", {"max_errors": 3}, 0, []),
        ("ccc ccc", {"max_errors": 6}, 1, ["all 2 cases crashed"]),
        ("c", {"min_pass_rate": 0.0, "max_errors": 1}, 1, ["the only case crashed"]),
        ("c c", {}, 4, ["2 errored cases, at most 0 allowed", "all 2 cases crashed"]),
        ("c e", {"max_errors": 2}, 1, ["1 of 2 cases crashed, and no other was graded"]),
        ("f e", {}, 1, [NONE, NO_ERROR]),
        ("f e", {"max_errors": 1}, 1, [NONE]),
        ("e -", {}, 4, ["2 errored cases, at most 0 allowed", "no case was graded"]),
        ("e e", {"max_errors": 2}, 1, ["no case was graded"]),
        ("e", {"max_errors": 1, "min_pass_rate": 0.0, "min_mean_score": 0.0}, 1, ["no case was graded"]),
    ],
)
def test_suite_is_judged_by_its_thresholds(words: str, gate: dict[str, Any], code: int, reasons: list[str]) -> None:
    assert decision(judged(words, **gate)) == (VERDICTS[code], code, tuple(reasons))


@pytest.mark.parametrize(
    ("words", "code", "reasons"),
    [
        ({"a": "p", "b": "p"}, 0, []),
        ({"a": "p", "b": "p e"}, 4, [f"{B}: {NO_ERROR}"]),
        ({"a": "p e", "b": "f"}, 1, [f"{A}: {NO_ERROR}", f"{B}: {NONE}"]),
        ({"a": "e", "b": "p", "c": "f p"}, 1, [f"{A}: {NO_ERROR}", f"{A}: no case was graded", f"{C}: {HALF}"]),
    ],
)
def test_worst_suite_decides(words: dict[str, str], code: int, reasons: list[str]) -> None:
    assert decision(judged(words)) == (VERDICTS[code], code, tuple(reasons))


def test_every_suite_has_its_own_thresholds() -> None:
    first, second = case(suite=A), case(suite=B)
    of = plan(first, second, suites=[suite(A, min_pass_rate=0.0), suite(B, max_errors=1), suite(C)])
    found = report(of, [row("fail", of=first), row("error", of=second)], Ending())[0]
    assert decision(found.gate) == ("fail", 1, (f"{B}: no case was graded",))
    kept = (GateSettings(suite=A, cases=1, min_pass_rate=0.0), GateSettings(suite=B, cases=1, max_errors=1))
    assert (found.gate.settings, found.plan_digest) == (kept, of.digest)


@pytest.mark.parametrize("score", [0.1 + 0.7, 0.8])
def test_mean_has_no_rounding_errors(score: float) -> None:
    one = case()
    of = plan(one, suites=[suite(A, min_mean_score=0.8)])
    assert report(of, [row("pass", score, of=one)], Ending())[0].gate.exit_code == 0


WRITTEN = "results could not be written: disk full"
INTERRUPTED = "interrupted: 1 of 2 cases not run"
AT_FIRST = "stopped at the first failure:"
RECORD = "without a recording; run with --record to record"
UNPRICED = "the cost is unknown: m, n without a price; set it under 'prices'"


@pytest.mark.parametrize(
    ("words", "ending", "verdict", "code", "reasons"),
    [
        ("p", {"write_error": "disk full"}, "error", 4, [WRITTEN]),
        ("f", {"write_error": "disk full"}, "fail", 1, [WRITTEN, NONE]),
        ("p", {"incomplete": ("shard 2/2 missing",)}, "fail", 1, ["shard 2/2 missing"]),
        ("p f e -", {"dry_run": True}, "dry-run", 0, []),
        ("f", {"dry_run": True, "write_error": "disk full"}, "error", 4, [WRITTEN]),
        ("f -", {"dry_run": True, "stopped": "interrupted"}, "interrupted", 130, [INTERRUPTED]),
        ("p -", {"stopped": "interrupted"}, "interrupted", 130, [INTERRUPTED]),
        ("p -", {"stopped": "budget"}, "budget", 5, ["the budget is used up: 1 of 2 cases not run"]),
        ("p p-", {"stopped": "budget"}, "budget", 5, ["the budget is used up: every case ran, but not every trial"]),
        ("p f -", {"stopped": "fail-fast"}, "fail", 1, [f"{AT_FIRST} 1 of 3 cases not run", HALF]),
        ("p b -", {"stopped": "fail-fast"}, "fail", 1, [f"{AT_FIRST} 1 of 3 cases not run", HALF]),
        ("p e -", {"stopped": "fail-fast"}, "error", 4, [f"{AT_FIRST} 1 of 3 cases not run", NO_ERROR]),
        ("- -", {"stopped": "fail-fast"}, "error", 4, [f"{AT_FIRST} 2 of 2 cases not run"]),
        ("p e", {"unrecorded": 1}, "error", 4, [f"1 request {RECORD}", NO_ERROR]),
        ("p f", {"unrecorded": 1}, "fail", 1, [f"1 request {RECORD}", HALF]),
        ("e", {"unrecorded": 2}, "error", 4, [f"2 requests {RECORD}", NO_ERROR, "no case was graded"]),
        ("p", {"unpriced_models": ("m",)}, "pass", 0, []),
        ("p", {"unpriced_models": ("m", "n"), "max_cost_usd": 1.0}, "fail", 1, [UNPRICED]),
    ],
)
def test_end_of_a_run_is_judged(
    words: str, ending: dict[str, Any], verdict: str, code: int, reasons: list[str]
) -> None:
    assert decision(judged(words, Ending(**ending))) == (verdict, code, tuple(reasons))


@pytest.mark.parametrize(
    ("suite_limit", "run_limit", "reasons"),
    [
        (0.5, None, []),
        (0.49, None, ["the suite cost $0.5000, at most $0.49 allowed"]),
        (None, 0.5, []),
        (None, 0.49, ["the run cost $0.5000, at most $0.49 allowed"]),
    ],
)
def test_costs_of_answers_and_judges_are_limited(
    suite_limit: float | None, run_limit: float | None, reasons: list[str]
) -> None:
    one = case()
    of = plan(one, suites=[suite(A, **({} if suite_limit is None else {"max_cost_usd": suite_limit}))])
    gate = report(of, [row(of=one, cost_usd=0.3, judge_cost_usd=0.2)], Ending(max_cost_usd=run_limit))[0].gate
    assert (gate.exit_code, list(gate.reasons)) == (5 if reasons else 0, reasons)


@pytest.mark.parametrize(
    ("errors", "warns", "reasons"),
    [(0, False, []), (1, False, ["bad 0"]), (3, False, ["bad 0 (and 2 more)"]), (3, True, [])],
)
def test_errors_of_validators_fail_the_gate(errors: int, warns: bool, reasons: list[str]) -> None:
    one = case()
    of = plan(one, suites=[suite(A, validators="warn" if warns else "error")])
    warning = ValidatorIssue(id="x", severity="warning", message="odd")
    issues = [ValidatorIssue(id="x", severity="error", message=f"bad {number}") for number in range(errors)]
    found = Validation(validator="own", issues=(warning, *issues), summary={})
    aggregates = ScenarioAggregates(runs=1, errors=0, validations=(found, FailedValidation(validator="v", error="e")))
    scenario = ScenarioReport(scenario_key=A, aggregates=aggregates)
    gate = report(of, [row(of=one)], Ending(), scenarios=[scenario])[0].gate
    assert (gate.exit_code, gate.reasons) == (int(bool(reasons)), tuple(f"validator own: {each}" for each in reasons))


def test_empty_run_has_its_own_verdict() -> None:
    gate = report(plan(), [], Ending())[0].gate
    assert decision(gate) == ("nothing", 0, ("nothing ran: no case was left to run",))


def test_missing_recording_of_the_only_case_is_an_error_even_if_one_is_allowed() -> None:
    reasons = (f"1 request {RECORD}", "no case was graded")
    assert decision(judged("e", Ending(unrecorded=1), max_errors=1)) == ("error", 4, reasons)
