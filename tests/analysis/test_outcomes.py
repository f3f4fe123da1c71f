"""Outcomes of cases from their trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome, FullOutcome, PassedOutcome
from agentv_ci.analysis.cases.provenance import NO_MAKEUP
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.cases.trial_outcomes import MAX_FINDING
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.results import ResultRow, RowSource, Usage
from tests.support.runs import SUITE, case, finding, outcomes_of, plan, row, rows_of


def outcome(trials: int, require: str, ended: str) -> CaseOutcome:
    one = case(trials=trials, require=require)
    (found,) = outcomes_of(plan(one), rows_of(one, ended))
    return found


def only(found: ResultRow) -> CaseOutcome:
    (outcome,) = outcomes_of(plan(case()), [found])
    return outcome


@pytest.mark.parametrize(
    ("trials", "require", "ended", "verdict", "score", "errors", "flaky"),
    [
        (1, "majority", "p", "pass", 1.0, 0, False),
        (1, "any", "b", "borderline", 0.7, 0, False),
        (1, "majority", "e", "error", 0.0, 1, False),
        (1, "majority", "", "error", 0.0, 1, False),
        (3, "majority", "ppf", "pass", 0.733333333333, 0, True),
        (3, "majority", "pff", "fail", 0.466666666667, 0, True),
        (2, "majority", "pf", "borderline", 0.6, 0, True),
        (3, "majority", "pee", "borderline", 1.0, 2, False),
        (3, "majority", "ppe", "pass", 1.0, 1, False),
        (3, "majority", "pp", "pass", 1.0, 1, False),
        (5, "majority", "pp", "borderline", 1.0, 3, False),
        (3, "majority", "pbb", "borderline", 0.8, 0, True),
        (3, "majority", "eee", "error", 0.0, 3, False),
        (3, "majority", "ccc", "error", 0.0, 3, False),
        (3, "majority", "pcc", "fail", 0.333333333333, 2, True),
        (3, "majority", "ppc", "pass", 0.666666666667, 1, True),
        (3, "majority", "bce", "fail", 0.35, 2, False),
        (3, "all", "ppp", "pass", 1.0, 0, False),
        (3, "all", "ppe", "borderline", 1.0, 1, False),
        (3, "any", "pff", "pass", 0.466666666667, 0, True),
        (3, "any", "bfe", "fail", 0.45, 1, False),
    ],
)
def test_outcome_follows_from_the_trials(
    trials: int, require: str, ended: str, verdict: Verdict, score: float, errors: int, flaky: bool
) -> None:
    found = outcome(trials, require, ended)
    assert (found.verdict, found.score, found.errors, found.flaky) == (verdict, score, errors, flaky)


def test_single_trial_keeps_its_verdict() -> None:
    assert (only(row("fail", 0.95)).verdict, only(row("error", 0.9)).score) == ("fail", 0.0)


@pytest.mark.parametrize(("score", "mean"), [((0.1, 0.2), 0.15), ((0.1,) * 10, 0.1), ((0.8,) * 3, 0.8)])
def test_score_is_the_mean_without_rounding_errors(score: tuple[float, ...], mean: float) -> None:
    one = case(trials=len(score))
    (found,) = outcomes_of(plan(one), [row("fail", each, of=one, trial=n) for n, each in enumerate(score, 1)])
    assert found.score == mean


@pytest.mark.parametrize(
    ("stop_when", "ended", "missing", "is_open"),
    [
        (None, "pp", 1, False),
        (None, "p", 2, True),
        (None, "pppf", 0, False),
        ("decided", "pp", 0, False),
        ("decided", "p", 2, True),
    ],
)
def test_trials_that_are_not_needed_are_not_missing(
    stop_when: str | None, ended: str, missing: int, is_open: bool
) -> None:
    one = case(trials=3, stop_when=stop_when)
    (found,) = outcomes_of(plan(one), rows_of(one, ended))
    assert (found.missing, found.is_open) == (missing, is_open)


@pytest.mark.parametrize(
    ("found", "summary"),
    [
        (row("fail", misses=("one", "two"), reasoning="why"), "one; two"),
        (row("fail", reasoning="why"), "why"),
        (row("error", error="no answer", error_kind="timeout"), "timeout: no answer"),
        (row("error", error="evaluator 'j': gone", error_kind="evaluator"), "evaluator 'j': gone"),
        (row("pass", misses=("one",)), ""),
    ],
)
def test_summary_explains_why_a_case_did_not_pass(found: ResultRow, summary: str) -> None:
    assert only(found).summary == summary
    assert outcome(1, "majority", "").summary == "no result"
    assert outcome(3, "majority", "pee").summary == "server: it broke"


def test_summary_and_findings_are_those_of_the_worst_trial() -> None:
    one = case(trials=4)
    rows = [
        row("pass", of=one, trial=1, reasoning="passed"),
        row("error", of=one, trial=2, error="gone"),
        row("borderline", of=one, trial=3, misses=("nearly",)),
        row("fail", of=one, trial=4, misses=("failed",), evaluator_results=(finding("late" * MAX_FINDING),)),
    ]
    (found,) = outcomes_of(plan(one), rows)
    (late,) = found.findings
    assert (found.summary, late.text[:4], len(late.text)) == ("failed", "late", MAX_FINDING)
    (errored,) = outcomes_of(plan(one), rows[1:2])
    assert errored.summary == "server: gone"


def test_outcomes_are_in_the_order_of_the_plan_and_distinguish_suites() -> None:
    cases = [case("b"), case("a"), case("a", suite="evals/b.yaml")]
    rows = [row("pass" if each.suite == "evals/a.yaml" else "fail", of=each) for each in reversed(cases)]
    assert [(each.case.suite, each.case.id, each.verdict) for each in outcomes_of(plan(*cases), rows)] == [
        ("evals/a.yaml", "b", "pass"),
        ("evals/a.yaml", "a", "pass"),
        ("evals/b.yaml", "a", "fail"),
    ]


def test_rows_of_another_plan_are_ignored() -> None:
    tally = Tally.of(plan(case("a")))
    tally.add(row(of=case("b")))
    tally.add(row(of=case("a", suite="evals/b.yaml")))
    assert (tally.rows, [each.verdict for each in tally.outcomes()]) == (0, ["error"])


def test_without_a_plan_outcomes_are_in_the_order_of_suites_and_lines() -> None:
    places = [("evals/b.yaml", 1, "a"), ("evals/a.yaml", 9, "a"), ("evals/a.yaml", 3, "c"), ("evals/a.yaml", 3, "b")]
    tally = Tally()
    for suite, line, name in places:
        tally.add(row(of=case(name, suite=suite, line=line)))
    assert [(each.case.suite, each.case.source.line, each.case.id) for each in tally.outcomes()] == sorted(places)


def test_without_a_plan_the_row_that_expects_most_describes_the_case() -> None:
    tally = Tally()
    rows: list[tuple[int, Any]] = [(1, None), (3, "decided"), (3, None), (2, None), (3, "decided")]
    for trial, (trials, stop_when) in enumerate(rows, 1):
        tally.add(row(of=case("a", trials=trials), trial=trial, stop_when=stop_when))
    (found,) = tally.outcomes()
    assert (found.case.trials, found.case.stop_when) == (3, None)
    assert [trial.number for trial in found.trials] == [1, 2, 3, 4, 5]


def test_findings_of_the_worst_trials_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv_ci.analysis.cases.tally.MAX_FINDINGS", 4)
    one = case(trials=6)
    tally = Tally.of(plan(one))
    for number, score in enumerate((0.5, 0.1, 0.4, 0.2), 1):
        tally.add(row("fail", score, of=one, trial=number, evaluator_results=(finding(f"{score}"),)))
    tally.add(row("error", 0.9, of=one, trial=5, evaluator_results=(finding("error"),)))
    tally.add(row(of=one, trial=6, evaluator_results=(finding("passed"),)))
    (found,) = tally.outcomes()
    assert [[each.text for each in trial.findings] for trial in found.trials] == [[], ["0.1"], [], [], ["error"], []]


ODD: Mapping[str, Sequence[Any]] = {
    "score": (0.8, None),
    "trial": (3, 2**16),
    "trials": (1, 3),
    "require": ("all", "any"),
    "stop_when": ("decided",),
    "digest": ("f" * 64, "F" * 64, f"{'0' * 63} ", "00", "x", ""),
    "source": [RowSource(path=SUITE, line=line) for line in (4, 0, -1, 2**32 - 1, 2**32)],
    "duration_ms": (0, 7, 2**32 - 1, 2**32),
    "usage": [Usage(total_tokens=tokens) for tokens in (0, 7, -1, -2, 2**32 - 2, 2**32 - 1)],
    "cost_usd": (0.0, 1e-9, 0.25),
    "cached": (True,),
    "tags": (("x",), ("x", "y")),
    "arm": ("a",),
}
"""Values of rows that are unlike those of most."""
EXCEPT = ("case", "makeup", "in_full")
"""What is known only of comparisons, and what is compared on its own."""


@pytest.mark.parametrize("verdict", ["pass", "fail", "error", "skipped"])
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ODD.items() for value in values])
def test_outcomes_that_are_packed_say_the_same(verdict: Verdict, name: str, value: Any) -> None:
    usual = row(cost_usd=0.5, trials=2)
    odd = row(verdict, **{"cost_usd": 0.5, "trials": 2, "trial": 2, name: value})
    names = [each for each in dir(FullOutcome) if not each.startswith("_") and each not in EXCEPT]
    for rows in ([odd], [usual, odd], [odd, usual], [odd.model_copy(update={"trials": 1})]):
        packed, full = Tally(), Tally(compares=True)
        for each in rows:
            packed.add(each)
            full.add(each)
        added = [each.trial for each in rows if each.case_key == odd.case_key]
        assert list(packed.numbers(odd.case_key)) == added
        for one, other in zip(packed.outcomes(), full.outcomes(), strict=True):
            assert one.case == other.case
            assert {each: getattr(one, each) for each in names} == {each: getattr(other, each) for each in names}
            assert one.in_full == replace(other.in_full, makeup=NO_MAKEUP)


def test_case_whose_trials_all_passed_is_packed() -> None:
    tally = Tally()
    for trial in (2, 1, 3):
        tally.add(row(of=case(trials=3), trial=trial))
    (found,) = tally.outcomes()
    assert isinstance(found, PassedOutcome)
    assert [each.number for each in found.trials] == [1, 2, 3]
