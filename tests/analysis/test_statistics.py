"""Counts and scores of a run."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.run_report import report
from agentv_ci.analysis.statistics import count, describe
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Counts, Ending, EvaluatorFigures, RunReport, Statistics
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, Usage
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.report.lines import group_lines
from tests.report.builders import Verdict, case, outcomes_of, plan, row, rows_of, whole

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


# --- By suite, target and evaluator -----------------------------------------------------------------------------------

SUITES = ("evals/a.yaml", "evals/b.yaml")
TARGETS = ("left", "right")
NOTHING = Usage()

dollars = st.none() | st.floats(0, 10) | st.sampled_from([0.1, 0.2, 0.3, 1e-7])
tokens = st.none() | st.integers(0, 10**6)
usages = st.none() | st.builds(
    Usage, input_tokens=tokens, output_tokens=tokens, total_tokens=tokens, cached_tokens=tokens
)


def judged(
    name: str = "c",
    kind: str = "contains",
    status: Literal["ok", "error", "skipped"] = "ok",
    score: float = 1.0,
    verdict: Literal["pass", "borderline", "fail", "error", "skipped"] = "pass",
) -> EvaluatorResult:
    """What an evaluator found."""
    return EvaluatorResult(
        name=name,
        type=kind,
        status=status,
        score=score,
        weight=1.0,
        required=False,
        verdict=verdict,
        hits=(),
        misses=(),
        reasoning="",
    )


evaluated = st.builds(
    judged,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["contains", "regex"]),
    st.sampled_from(["ok", "error", "skipped"]),
    scores,
    st.sampled_from(["pass", "borderline", "fail"]),
)


@st.composite
def spending_runs(draw: st.DrawFn) -> tuple[Plan, list[ResultRow], list[ResultRow]]:
    """A plan of several suites and targets, its rows, and the same rows in another order."""
    cases = [
        case(
            f"case-{number}",
            suite=draw(st.sampled_from(SUITES)),
            target=draw(st.sampled_from(TARGETS)),
            trials=draw(st.integers(1, 3)),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    rows = [
        row(
            draw(st.sampled_from(VERDICTS)),
            draw(scores),
            of=each,
            trial=number,
            target=each.target,
            usage=draw(usages),
            judge_usage=draw(usages),
            cost_usd=draw(dollars),
            judge_cost_usd=draw(dollars),
            evaluator_results=tuple(draw(st.lists(evaluated, max_size=2))),
        )
        for each in cases
        for number in range(1, draw(st.integers(0, each.trials)) + 1)
    ]
    targets = {name: MockTarget(name=name, provider="mock") for name in TARGETS}
    return plan(*cases).model_copy(update={"targets": targets}), rows, draw(st.permutations(rows))


SpendingRun = tuple[Plan, list[ResultRow], list[ResultRow]]


def summed(amounts: Iterable[float | None]) -> float | None:
    """What is known of a sum; None when nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return math.fsum(known) if known else None


def all_tokens(records: Iterable[Usage | None]) -> Usage:
    known = [record for record in records if record is not None]
    return Usage(
        **{
            name: sum(numbers) if (numbers := [n for each in known if (n := getattr(each, name)) is not None]) else None
            for name in Usage.model_fields
        }
    )


@settings(derandomize=True, max_examples=60)
@given(spending_runs())
def test_groups_are_the_same_for_any_order_of_rows(run: SpendingRun) -> None:
    of, rows, shuffled = run
    assert report(of, shuffled, Ending()) == report(of, rows, Ending())


@settings(derandomize=True, max_examples=60)
@given(spending_runs())
def test_the_same_without_a_plan(run: SpendingRun) -> None:
    _, rows, shuffled = run
    one, other = whole(rows)[0], whole(shuffled)[0]
    assert (one.suites, one.targets, one.evaluators) == (other.suites, other.targets, other.evaluators)
    assert (one.usage, one.cost_usd, one.statistics, one.repeated) == (
        other.usage,
        other.cost_usd,
        other.statistics,
        other.repeated,
    )


@settings(derandomize=True, max_examples=60)
@given(spending_runs())
def test_every_suite_and_target_has_what_its_rows_took_answers_and_judges_apart(run: SpendingRun) -> None:
    of, rows, _ = run
    found = report(of, rows, Ending())[0]
    by_suite: Callable[[ResultRow], str] = lambda each: each.suite  # noqa: E731  # a key, like those of sorted
    by_target: Callable[[ResultRow], str] = lambda each: each.target  # noqa: E731
    for groups, own in ((found.suites, by_suite), (found.targets, by_target)):
        for each in groups:
            ours = [one for one in rows if own(one) == each.name]
            assert each.cost_usd == pytest.approx(summed(one.cost_usd for one in ours), abs=1e-9)
            assert each.judge_cost_usd == pytest.approx(summed(one.judge_cost_usd for one in ours), abs=1e-9)
            assert each.usage == all_tokens(one.usage for one in ours)
            assert each.judge_usage == all_tokens(one.judge_usage for one in ours)


@settings(derandomize=True, max_examples=60)
@given(spending_runs())
def test_groups_come_to_the_whole(run: SpendingRun) -> None:
    of, rows, _ = run
    found = report(of, rows, Ending())[0]
    for groups in (found.suites, found.targets):
        assert [each.name for each in groups] == sorted({each.name for each in groups})
        for name in ("cases", "passed", "failed", "errored", "flaky"):
            assert sum(getattr(each, name) for each in groups) == getattr(found.counts, name)
        costs = [cost for each in groups for cost in (each.cost_usd, each.judge_cost_usd)]
        assert found.cost_usd == pytest.approx(summed(costs), abs=1e-9)
        assert found.usage == all_tokens(used for each in groups for used in (each.usage, each.judge_usage))


@settings(derandomize=True, max_examples=60)
@given(spending_runs())
def test_evaluators_are_counted_over_all_rows_by_name_and_type(run: SpendingRun) -> None:
    of, rows, _ = run
    results = [each for one in rows for each in one.evaluator_results]
    found = {(each.name, each.type): each for each in report(of, rows, Ending())[0].evaluators}
    assert list(found) == sorted({(each.name, each.type) for each in results})
    for key, figures in found.items():
        own = [each for each in results if (each.name, each.type) == key]
        graded = [each.score for each in own if each.status == "ok"]
        assert figures.scored + figures.errors + figures.skipped == len(own)
        assert (figures.scored, figures.errors) == (len(graded), sum(each.status == "error" for each in own))
        assert figures.passed == sum(each.status == "ok" and each.verdict == "pass" for each in own)
        assert figures.mean == pytest.approx(statistics.fmean(graded) if graded else None, abs=1e-9)


def test_members_of_a_composite_are_part_of_it() -> None:
    both = judged("both", "composite").model_copy(update={"evaluator_results": (judged("member"),)})
    (figures,) = whole([row(evaluator_results=(both,))])[0].evaluators
    assert (figures.name, figures.type, figures.scored) == ("both", "composite", 1)


def test_cost_that_nobody_knows_is_none_and_not_nothing() -> None:
    unknown, free = whole([row()])[0].suites[0], whole([row(cost_usd=0.0)])[0].suites[0]
    assert (unknown.cost_usd, unknown.judge_cost_usd, unknown.usage) == (None, None, NOTHING)
    assert (free.cost_usd, free.judge_cost_usd) == (0.0, None)


def test_small_costs_add_up_without_noise() -> None:
    rows = [row(trial=number, cost_usd=0.1, judge_cost_usd=0.2) for number in range(1, 11)]
    found = whole(rows)[0]
    assert (found.suites[0].cost_usd, found.suites[0].judge_cost_usd, found.cost_usd) == (1.0, 2.0, 3.0)


def test_suite_without_any_row_is_there_all_the_same() -> None:
    found = report(plan(case("a"), case("b", suite="evals/b.yaml")), [row(of=case("a"))], Ending())[0]
    assert [(each.name, each.cases, each.errored, each.mean) for each in found.suites] == [
        ("evals/a.yaml", 1, 0, 1.0),
        ("evals/b.yaml", 1, 1, None),
    ]


# --- Cases with several trials ----------------------------------------------------------------------------------------


def repeated_of(*verdicts: Verdict, trials: int | None = None, **given: Any) -> RunReport:
    one = case(trials=trials or len(verdicts), **given)
    return report(plan(one), rows_of(one, *verdicts), Ending())[0]


def test_only_cases_with_several_trials_that_ran_are_repeated() -> None:
    assert repeated_of("pass").repeated == repeated_of("pass", trials=3).repeated == ()
    assert len(repeated_of("pass", "pass", trials=3).repeated) == 1


def test_repeated_case_tells_how_often_it_passes_and_how_sure_that_is() -> None:
    (found,) = repeated_of("pass", "fail", "pass", "error", "pass").repeated
    assert (found.trials, found.graded, found.passed, found.flaky, found.verdict) == (5, 4, 3, True, "pass")
    assert (found.pass_rate_low, found.pass_rate_high) == pytest.approx((0.300642, 0.954413), abs=1e-6)
    assert found.pass_at_k == pytest.approx((0.75, 1.0, 1.0, 1.0))
    assert found.pass_hat_k == pytest.approx((0.75, 0.5, 0.25, 0.0))
    assert found.mean == 0.8


def test_nothing_is_known_of_a_repeated_case_that_only_broke() -> None:
    (found,) = repeated_of("error", "error").repeated
    assert (found.graded, found.passed, found.pass_at_k, found.pass_hat_k) == (0, 0, (), ())
    assert (found.pass_rate_low, found.pass_rate_high, found.verdict) == (0.0, 1.0, "error")


def test_decided_case_is_described_by_the_trials_that_ran() -> None:
    found = repeated_of("pass", "pass", "pass", trials=5, stop_when="decided")
    (one,) = found.repeated
    assert (one.trials, one.graded, one.passed, one.verdict, len(one.pass_at_k)) == (3, 3, 3, "pass", 3)
    assert found.gate.verdict == "pass"


def test_open_case_with_trials_missing_does_not_pass() -> None:
    found = repeated_of("pass", "pass", trials=5, stop_when="decided")
    assert found.repeated[0].verdict == "borderline"
    assert found.gate.verdict != "pass"


def test_repeated_cases_stand_in_the_plans_order() -> None:
    cases = [case(name, trials=2) for name in "cab"]
    rows = [each for one in reversed(cases) for each in rows_of(one, "pass", "fail")]
    assert [each.id for each in report(plan(*cases), rows, Ending())[0].repeated] == ["c", "a", "b"]


def test_of_many_evaluators_those_that_fail_are_shown() -> None:
    failing = EvaluatorFigures(name="z", type="contains", scored=4, passed=1, errors=0, skipped=0, mean=0.25)
    passing = [failing.model_copy(update={"name": f"a-{number}", "passed": 4, "mean": 1.0}) for number in range(12)]
    found, _ = whole([row()])
    told = [line.text for line in group_lines(found.model_copy(update={"evaluators": (*passing, failing)}))]
    assert told[1].startswith("  z (contains)")
    assert told[-1] == "  … and 3 more"
