"""Trials become the outcome of a case."""

from __future__ import annotations

import pytest

from agentv_ci.analysis.outcomes import CaseOutcome, Tally
from agentv_ci.contracts.results import ResultRow, Usage
from tests.report.builders import Verdict, case, outcomes_of, plan, row, rows_of

LETTERS: dict[str, Verdict] = {"p": "pass", "b": "borderline", "f": "fail", "e": "error"}


def outcome(trials: int, require: str, ended: str) -> CaseOutcome:
    """What becomes of a case whose trials ended so: p(ass), b(orderline), f(ail), e(rror)."""
    one = case(trials=trials, require=require)
    (found,) = outcomes_of(plan(one), rows_of(one, *(LETTERS[letter] for letter in ended)))
    return found


def scored(*scores: float) -> CaseOutcome:
    one = case(trials=len(scores))
    rows = [row("pass" if score >= 0.8 else "fail", score, of=one, trial=n) for n, score in enumerate(scores, 1)]
    (found,) = outcomes_of(plan(one), rows)
    return found


def only(found: ResultRow, trials: int = 1) -> CaseOutcome:
    (outcome,) = outcomes_of(plan(case(trials=trials)), [found])
    return outcome


@pytest.mark.parametrize(
    ("trials", "require", "ended", "passes"),
    [
        (1, "majority", "p", True),
        (1, "majority", "f", False),
        (1, "all", "p", True),
        (1, "any", "b", False),
        (3, "majority", "ppf", True),
        (3, "majority", "pff", False),
        (3, "majority", "ppp", True),
        (2, "majority", "pf", False),
        (4, "majority", "ppff", False),
        (4, "majority", "pppf", True),
        (3, "majority", "pee", False),
        (3, "majority", "ppe", True),
        (4, "majority", "ppee", False),
        (3, "majority", "pp", True),
        (5, "majority", "pp", False),
        (3, "majority", "pbb", False),
        (3, "all", "ppp", True),
        (3, "all", "ppf", False),
        (3, "all", "ppb", False),
        (3, "all", "ppe", False),
        (3, "all", "pp", False),
        (3, "any", "pff", True),
        (3, "any", "pee", True),
        (3, "any", "p", True),
        (3, "any", "bfe", False),
    ],
)
def test_case_passes_when_enough_of_all_its_trials_pass(trials: int, require: str, ended: str, passes: bool) -> None:
    assert (outcome(trials, require, ended).verdict == "pass") == passes


@pytest.mark.parametrize("require", ["majority", "all", "any"])
@pytest.mark.parametrize("ended", ["e", "ee", "eee", ""])
def test_case_is_an_error_when_no_trial_was_graded(require: str, ended: str) -> None:
    found = outcome(3, require, ended)
    assert (found.verdict, found.score, found.flaky) == ("error", 0.0, False)


@pytest.mark.parametrize(("ended", "verdict"), [("p", "pass"), ("b", "borderline"), ("f", "fail"), ("e", "error")])
def test_verdict_of_one_trial_is_the_cases(ended: str, verdict: Verdict) -> None:
    assert outcome(1, "majority", ended).verdict == verdict


def test_verdict_of_one_trial_stays_when_its_score_says_otherwise() -> None:
    assert only(row("fail", 0.95)).verdict == "fail"


@pytest.mark.parametrize("ended", ["pff", "pee", "ppff", "ffe", "bbb"])
def test_case_that_does_not_pass_is_no_error_when_a_trial_was_graded(ended: str) -> None:
    assert outcome(len(ended), "majority", ended).verdict in ("borderline", "fail")


@pytest.mark.parametrize(
    ("scores", "mean"), [((1.0, 0.0), 0.5), ((0.9,), 0.9), ((0.1, 0.2), 0.15), ((0.1,) * 10, 0.1), ((0.8,) * 3, 0.8)]
)
def test_score_is_the_mean_of_the_trials(scores: tuple[float, ...], mean: float) -> None:
    assert scored(*scores).score == mean


def test_errored_trials_do_not_pull_the_score_down() -> None:
    one = case(trials=3)
    rows = [row("pass", 0.9, of=one), row("error", of=one, trial=2), row("fail", 0.5, of=one, trial=3)]
    (found,) = outcomes_of(plan(one), rows)
    assert found.score == 0.7


def test_partial_score_of_an_errored_trial_does_not_count() -> None:
    assert only(row("error", 0.9)).score == 0.0


@pytest.mark.parametrize(
    ("ended", "flaky"),
    [
        ("pf", True),
        ("pb", True),
        ("ppf", True),
        ("pfe", True),
        ("ppp", False),
        ("fff", False),
        ("pee", False),
        ("fee", False),
        ("eee", False),
        ("p", False),
        ("", False),
    ],
)
def test_case_is_flaky_when_its_graded_trials_disagree(ended: str, flaky: bool) -> None:
    assert outcome(max(1, len(ended)), "majority", ended).flaky == flaky


@pytest.mark.parametrize("require", ["majority", "any"])
def test_flaky_is_a_mark_beside_the_verdict(require: str) -> None:
    found = outcome(3, require, "ppf")
    assert (found.verdict, found.flaky) == ("pass", True)


@pytest.mark.parametrize(
    ("trials", "ended", "errors"), [(1, "p", 0), (1, "e", 1), (3, "pee", 2), (3, "eee", 3), (3, "p", 2), (1, "", 1)]
)
def test_trial_without_a_verdict_counts_as_an_error_also_when_it_never_ran(
    trials: int, ended: str, errors: int
) -> None:
    assert outcome(trials, "any", ended).errors == errors


@pytest.mark.parametrize(
    ("found", "summary"),
    [
        (row("fail", misses=("one", "two"), reasoning="why"), "one; two"),
        (row("fail", reasoning="why"), "why"),
        (row("error", error="no answer", error_kind="timeout"), "timeout: no answer"),
        (row("error", error="evaluator 'j': broke", error_kind="evaluator"), "evaluator 'j': broke"),
    ],
)
def test_summary_says_why_a_case_did_not_pass(found: ResultRow, summary: str) -> None:
    assert only(found).summary == summary


def test_summary_says_so_when_a_case_never_ran() -> None:
    assert outcome(1, "majority", "").summary == "it never ran"


def test_summary_is_that_of_the_worst_trial() -> None:
    one = case(trials=4)
    rows = [
        row("pass", of=one, trial=1, reasoning="passed"),
        row("error", of=one, trial=2, error="broke"),
        row("borderline", of=one, trial=3, misses=("nearly",)),
        row("fail", of=one, trial=4, misses=("failed",)),
    ]
    (found,) = outcomes_of(plan(one), rows)
    assert found.summary == "failed"


def test_outcomes_come_in_the_plans_order() -> None:
    cases = [case("b"), case("a"), case("a", suite="evals/b.yaml")]
    rows = [row(of=each) for each in reversed(cases)]
    assert [(each.case.suite, each.case.id) for each in outcomes_of(plan(*cases), rows)] == [
        ("evals/a.yaml", "b"),
        ("evals/a.yaml", "a"),
        ("evals/b.yaml", "a"),
    ]


def test_cases_of_the_same_id_are_told_apart_by_their_suite() -> None:
    first, second = case("a"), case("a", suite="evals/b.yaml")
    found = outcomes_of(plan(first, second), [row("pass", of=first), row("fail", of=second)])
    assert [each.verdict for each in found] == ["pass", "fail"]


def test_row_of_another_plan_does_not_count() -> None:
    tally = Tally.of(plan(case("a")))
    tally.add(row(of=case("b")))
    tally.add(row(of=case("a", suite="evals/b.yaml")))
    assert (tally.rows, [each.verdict for each in tally.outcomes()]) == (0, ["error"])


def test_trials_are_sorted_by_their_number() -> None:
    one = case(trials=3)
    (found,) = outcomes_of(plan(one), [row(of=one, trial=number) for number in (3, 1, 2)])
    assert [trial.number for trial in found.trials] == [1, 2, 3]


def test_tokens_of_answers_and_judges_are_summed() -> None:
    one = case(trials=3)
    tally = Tally.of(plan(one))
    tally.add(row(of=one, usage=Usage(input_tokens=10, output_tokens=2, total_tokens=12)))
    tally.add(row(of=one, trial=2, judge_usage=Usage(input_tokens=5, total_tokens=5, cached_tokens=1)))
    tally.add(row(of=one, trial=3))
    assert tally.spending.all_usage == Usage(input_tokens=15, output_tokens=2, total_tokens=17, cached_tokens=1)


def test_tokens_are_unknown_when_nobody_tells_them() -> None:
    tally = Tally.of(plan(case()))
    tally.add(row())
    assert tally.spending.all_usage == Usage()
