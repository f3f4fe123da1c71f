"""Counts and scores of a run."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Counts, Ending, Statistics
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report import report
from agentv_ci.report.outcomes import CaseOutcome
from agentv_ci.report.statistics import count, describe
from tests.report.builders import Verdict, case, outcomes_of, plan, row, rows_of

VERDICTS: list[Verdict] = ["pass", "borderline", "fail", "error"]

scores = st.floats(0, 1)


def outcome(verdict: Verdict, score: float) -> CaseOutcome:
    return CaseOutcome(case(), "default", verdict, score, trials=())


def graded(*scores: float) -> Statistics:
    return describe([outcome("fail", score) for score in scores])


def test_every_case_is_counted_once_by_its_verdict() -> None:
    cases = [case(name, trials=2) for name in "abcde"]
    rows = [
        *rows_of(cases[0], "pass", "pass"),
        *rows_of(cases[1], "pass", "fail"),
        *rows_of(cases[2], "borderline", "borderline"),
        *rows_of(cases[3], "error", "error"),
        *rows_of(cases[4], "fail"),
    ]
    found = report(plan(*cases), rows, Ending())[0]
    assert found.counts == Counts(cases=5, passed=1, failed=3, errored=1, not_run=0, flaky=1, rows=9)


def test_borderline_counts_as_failed() -> None:
    assert count([outcome("borderline", 0.7), outcome("fail", 0.1)], rows=2).failed == 2


def test_figures_describe_the_scores() -> None:
    assert graded(0.5, 1.0, 0.75) == Statistics(
        mean=0.75, median=0.75, min=0.5, max=1.0, stdev=round(math.sqrt(0.125 / 3), 12), histogram=(0, 0, 1, 1, 1)
    )


def test_median_of_an_even_number_lies_between() -> None:
    assert graded(0.0, 0.25, 0.75, 1.0).median == 0.5


def test_errored_cases_are_not_described() -> None:
    found = describe([outcome("pass", 1.0), outcome("error", 0.0)])
    assert (found.mean, found.min, found.histogram) == (1.0, 1.0, (0, 0, 0, 0, 1))


@pytest.mark.parametrize("outcomes", [[], [outcome("error", 0.9)]], ids=["no-case", "only-errors"])
def test_nothing_is_described_when_nothing_was_graded(outcomes: list[CaseOutcome]) -> None:
    assert describe(outcomes) == Statistics(
        mean=None, median=None, min=None, max=None, stdev=None, histogram=(0, 0, 0, 0, 0)
    )


@pytest.mark.parametrize("score", [0.0, 0.3, 0.8, 1.0])
def test_standard_deviation_of_one_case_is_zero(score: float) -> None:
    assert graded(score).stdev == 0.0


def test_standard_deviation_of_equal_scores_is_zero() -> None:
    assert graded(*[0.1] * 7).stdev == 0.0


def test_mean_has_no_float_noise() -> None:
    assert graded(*[0.1] * 10, *[0.7] * 10).mean == 0.4


@pytest.mark.parametrize(
    ("score", "index"),
    [
        (0.0, 0),
        (0.199999, 0),
        (0.2, 1),
        (0.1 + 0.1, 1),
        (0.399999, 1),
        (0.4, 2),
        (0.599999, 2),
        (0.6, 3),
        (0.1 * 6, 3),
        (1 - 0.4, 3),
        (0.799999, 3),
        (0.8, 4),
        (0.1 + 0.7, 4),
        (0.999, 4),
        (1.0, 4),
    ],
)
def test_bin_begins_at_its_lower_bound(score: float, index: int) -> None:
    assert graded(score).histogram == tuple(int(each == index) for each in range(5))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(scores, min_size=1, max_size=20))
def test_standard_deviation_is_the_populations(values: list[float]) -> None:
    assert graded(*values).stdev == pytest.approx(statistics.pstdev(values), abs=1e-9)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(scores, min_size=1, max_size=20))
def test_figures_stand_in_their_order(values: list[float]) -> None:
    found = graded(*values)
    assert found.min is not None
    assert found.mean is not None
    assert found.median is not None
    assert found.max is not None
    assert found.min - 1e-11 <= found.mean <= found.max + 1e-11
    assert found.min <= found.median <= found.max
    assert sum(found.histogram) == len(values)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Plan, list[ResultRow], list[ResultRow]]:
    """A plan, its rows, and the same rows in another order."""
    cases = [
        case(
            f"case-{number}", trials=draw(st.integers(1, 4)), require=draw(st.sampled_from(["majority", "all", "any"]))
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    rows = [
        row(draw(st.sampled_from(VERDICTS)), draw(scores), of=each, trial=number)
        for each in cases
        for number in range(1, draw(st.integers(0, each.trials)) + 1)
    ]
    return plan(*cases), rows, draw(st.permutations(rows))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(runs())
def test_report_does_not_depend_on_the_order_of_the_rows(run: tuple[Plan, list[ResultRow], list[ResultRow]]) -> None:
    of, rows, shuffled = run
    assert report(of, shuffled, Ending()) == report(of, rows, Ending())


@settings(deadline=None, derandomize=True, max_examples=50)
@given(runs())
def test_counts_of_verdicts_add_up_to_the_cases(run: tuple[Plan, list[ResultRow], list[ResultRow]]) -> None:
    of, rows, _ = run
    counts = report(of, rows, Ending())[0].counts
    assert counts.passed + counts.failed + counts.errored == counts.cases == len(of.cases)
    assert counts.rows == len(rows)


def test_rows_are_looked_at_one_by_one() -> None:
    one = case(trials=1000)
    generator = (row(of=one, trial=number) for number in range(1, 1001))
    (found,) = outcomes_of(plan(one), generator)
    assert (found.verdict, len(found.trials)) == ("pass", 1000)


def test_many_scores_are_described_exactly() -> None:
    values: Sequence[float] = [round(random.Random(7).random(), 3) for _ in range(1000)]
    assert graded(*values).mean == round(statistics.fmean(values), 12)
