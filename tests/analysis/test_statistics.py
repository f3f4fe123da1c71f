"""Counts, scores, groups and repeated cases of a run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.cases.counts import apart, count, describe, p_text
from agentv_ci.analysis.cases.outcomes import CaseOutcome, FullOutcome
from agentv_ci.analysis.run_report import report
from agentv_ci.analysis.statistics.significance import mean_score_change, pass_rate_change
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Counts, Ending, RunReport, Statistics
from agentv_ci.contracts.results import ResultRow, Usage
from agentv_ci.contracts.targets import MockTarget
from tests.support.runs import VERDICTS, case, finding, plan, row, rows_of, whole

TARGETS = ("left", "right")
SCORES = st.floats(0, 1)
DOLLARS = st.none() | st.floats(0, 10) | st.sampled_from([0.1, 0.2, 0.3, 1e-7])
TOKENS = st.none() | st.integers(0, 10**6)
USAGES = st.none() | st.builds(
    Usage, input_tokens=TOKENS, output_tokens=TOKENS, total_tokens=TOKENS, cached_tokens=TOKENS
)


def outcome(verdict: Verdict, score: float) -> CaseOutcome:
    return FullOutcome(case(), "default", verdict, score, trials=())


def graded(*scores: float) -> Statistics:
    return describe([outcome("fail", score) for score in scores])


def test_every_case_is_counted_by_its_verdict() -> None:
    cases = [case(name, trials=2) for name in "abcdef"]
    letters = ("pp", "pf", "bb", "ee", "f", "")
    rows = [found for each, word in zip(cases, letters, strict=True) for found in rows_of(each, word)]
    common = {"cases": 6, "passed": 1, "failed": 3, "flaky": 1}
    for ending, errored in (
        (Ending(), 2),
        (Ending(stopped="budget"), 1),
        (Ending(stopped="budget", write_error="disk full"), 2),
    ):
        found = report(plan(*cases), rows, ending)[0]
        counted = {**common, "errored": errored, "not_run": 2 - errored}
        assert found.counts == Counts(**counted, rows=9)
        assert found.targets[0].model_dump(include=set(counted)) == counted
    for leaves_cases, errored in ((True, 0), (False, 2)):
        known = count([outcome("borderline", 0.7)], rows=2, cases=3, leaves_cases=leaves_cases)
        assert (known.cases, known.failed, known.errored, known.not_run) == (3, 1, errored, 2 - errored)


def test_statistics_describe_the_scores_of_graded_cases() -> None:
    stdev = round(math.sqrt(0.125 / 3), 12)
    expected = Statistics(mean=0.75, median=0.75, min=0.5, max=1.0, stdev=stdev, histogram=(0, 0, 1, 1, 1))
    assert graded(0.5, 1.0, 0.75) == expected
    assert describe([outcome("fail", each) for each in (0.5, 1.0, 0.75)] + [outcome("error", 0.0)]) == expected
    assert graded(0.0, 0.25, 0.75, 1.0).median == 0.5
    assert (graded(*[0.1] * 10, *[0.7] * 10).mean, graded(*[0.1] * 7).stdev) == (0.4, 0.0)


@pytest.mark.parametrize("outcomes", [[], [outcome("error", 0.9)]], ids=["no-case", "only-errors"])
def test_without_graded_cases_there_are_no_statistics(outcomes: list[CaseOutcome]) -> None:
    nothing = Statistics(mean=None, median=None, min=None, max=None, stdev=None, histogram=(0, 0, 0, 0, 0))
    assert describe(outcomes) == nothing


@pytest.mark.parametrize(
    ("score", "bin_"), [(0.199999, 0), (0.1 + 0.1, 1), (0.399999, 1), (0.4, 2), (0.1 * 6, 3), (0.1 + 0.7, 4), (1.0, 4)]
)
def test_bin_begins_at_its_lower_bound(score: float, bin_: int) -> None:
    assert graded(score).histogram == tuple(int(each == bin_) for each in range(5))


@pytest.mark.parametrize(
    ("cases", "worse", "falls", "detectable"),
    [(5, 5, False, None), (6, 6, True, 1.0), (20, 6, True, 0.3), (20, 5, False, 0.3), (100, 0, False, 0.06)],
)
def test_change_of_the_pass_rate(cases: int, worse: int, falls: bool, detectable: float | None) -> None:
    figure = pass_rate_change([True] * cases, [number >= worse for number in range(cases)])
    assert figure is not None
    assert (figure.base, figure.head) == (1.0, round(1 - worse / cases, 12))
    assert (figure.falls, figure.detectable) == (falls, detectable)
    better = pass_rate_change([number >= worse for number in range(cases)], [True] * cases)
    assert better is not None
    assert (better.falls, better.p_value) == (False, figure.p_value)
    assert pass_rate_change([], []) is None


@pytest.mark.parametrize(
    ("changes", "falls", "has_detectable"),
    [
        ([-0.1, -0.2, -0.3, -0.1, -0.2], False, False),
        ([-0.1, -0.2, -0.3, -0.1, -0.2, -0.1], True, True),
        ([-0.1] * 6, True, False),
        ([0.1, 0.2, 0.3, 0.1, 0.2, 0.1], False, True),
        ([0.0] * 9, False, False),
        ([-0.5, 0.5] * 20, False, True),
    ],
)
def test_change_of_the_mean_score(changes: list[float], falls: bool, has_detectable: bool) -> None:
    figure = mean_score_change([0.5] * len(changes), [0.5 + change for change in changes])
    assert figure is not None
    assert [figure.base, figure.head] == pytest.approx([0.5, 0.5 + statistics.fmean(changes)])
    assert (figure.falls, figure.detectable is not None) == (falls, has_detectable)
    assert mean_score_change([], []) is None


@pytest.mark.parametrize(
    ("reached", "threshold", "form", "texts"),
    [
        (0.5, 1.0, ".{}%", ("50.0%", "100.0%")),
        (0.9995, 1.0, ".{}%", ("99.95%", "100.00%")),
        (0.7, 0.700001, ".{}f", ("0.700000", "0.700001")),
    ],
)
def test_different_figures_are_formatted_differently(
    reached: float, threshold: float, form: str, texts: tuple[str, str]
) -> None:
    assert apart(reached, threshold, form, least=1) == texts


@pytest.mark.parametrize(("value", "text"), [(0.0009, "p < 0.001"), (0.001, "p = 0.001"), (0.0312, "p = 0.031")])
def test_small_p_values_are_not_distinguished(value: float, text: str) -> None:
    assert p_text(value) == text


EVALUATED = st.builds(
    finding,
    st.just(""),
    name=st.sampled_from("ab"),
    type=st.sampled_from(["contains", "regex"]),
    status=st.sampled_from(["ok", "error", "skipped"]),
    score=SCORES,
    verdict=st.sampled_from(["pass", "borderline", "fail"]),
)
Run = tuple[Plan, list[ResultRow], list[ResultRow]]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A plan of several suites and targets, its rows, and the same rows in another order."""
    cases = [
        case(
            f"case-{number}",
            suite=draw(st.sampled_from(["evals/a.yaml", "evals/b.yaml"])),
            target=draw(st.sampled_from(TARGETS)),
            trials=draw(st.integers(1, 3)),
            require=draw(st.sampled_from(["majority", "all", "any"])),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    rows = [
        row(
            VERDICTS[draw(st.sampled_from("pbfe"))],
            draw(SCORES),
            of=each,
            trial=number,
            target=each.target,
            usage=draw(USAGES) or Usage(),
            judge_usage=draw(USAGES),
            cost_usd=draw(DOLLARS),
            judge_cost_usd=draw(DOLLARS),
            evaluator_results=tuple(draw(st.lists(EVALUATED, max_size=2))),
        )
        for each in cases
        for number in range(1, draw(st.integers(0, each.trials)) + 1)
    ]
    targets = {name: MockTarget(name=name, provider="mock") for name in TARGETS}
    return plan(*cases).model_copy(update={"targets": targets}), rows, draw(st.permutations(rows))


def summed(amounts: Iterable[float | None]) -> Any:
    """The sum of known amounts, None without any."""
    known = [amount for amount in amounts if amount is not None]
    return pytest.approx(math.fsum(known), abs=1e-9) if known else None


def all_tokens(usages: Iterable[Usage | None]) -> Usage:
    known = [each for each in usages if each is not None]
    counts = {name: [n for each in known if (n := getattr(each, name)) is not None] for name in Usage.model_fields}
    return Usage(**{name: sum(numbers) if numbers else None for name, numbers in counts.items()})


@settings(max_examples=50)
@given(runs())
def test_report_does_not_depend_on_the_order_of_rows(run: Run) -> None:
    of, rows, shuffled = run
    assert report(of, shuffled, Ending()) == report(of, rows, Ending())
    one, other = whole(rows)[0], whole(shuffled)[0]
    for field in ("suites", "targets", "evaluators", "usage", "cost_usd", "statistics", "repeated"):
        assert getattr(one, field) == getattr(other, field)


@settings(max_examples=50)
@given(runs())
def test_groups_have_the_figures_of_their_rows_and_add_up_to_the_whole(run: Run) -> None:
    of, rows, _ = run
    found = report(of, rows, Ending())[0]
    for groups, field in ((found.suites, "suite"), (found.targets, "target")):
        assert len({each.name for each in groups}) == len(groups)
        for each in groups:
            own = [one for one in rows if getattr(one, field) == each.name]
            assert each.cost_usd == summed(one.cost_usd for one in own)
            assert each.judge_cost_usd == summed(one.judge_cost_usd for one in own)
            assert each.usage == all_tokens(one.usage for one in own)
            assert each.duration_s == sum(one.duration_ms for one in own) / 1000
            assert each.judge_usage == all_tokens(one.judge_usage for one in own)
        for name in ("cases", "passed", "failed", "errored", "not_run", "flaky"):
            assert sum(getattr(each, name) for each in groups) == getattr(found.counts, name)
        assert found.cost_usd == summed(cost for each in groups for cost in (each.cost_usd, each.judge_cost_usd))
        assert found.usage == all_tokens(used for each in groups for used in (each.usage, each.judge_usage))
    counts = found.counts
    assert counts.passed + counts.failed + counts.errored == counts.cases == len(of.cases)
    assert counts.rows == len(rows)


@settings(max_examples=50)
@given(runs())
def test_evaluators_are_counted_by_name_and_type(run: Run) -> None:
    of, rows, _ = run
    results = [each for one in rows for each in one.evaluator_results]
    found = {(each.name, each.type): each for each in report(of, rows, Ending())[0].evaluators}
    assert list(found) == sorted({(each.name, each.type) for each in results})
    for key, figures in found.items():
        own = [each for each in results if (each.name, each.type) == key]
        graded_ = [each.score for each in own if each.status == "ok"]
        assert figures.scored + figures.errors + figures.skipped == len(own)
        assert (figures.scored, figures.errors) == (len(graded_), sum(each.status == "error" for each in own))
        assert figures.passed == sum(each.status == "ok" and each.verdict == "pass" for each in own)
        assert figures.mean == pytest.approx(statistics.fmean(graded_) if graded_ else None, abs=1e-9)


def test_members_of_a_composite_are_not_counted() -> None:
    both = finding("", name="both", type="composite", evaluator_results=(finding("", name="member"),))
    (figures,) = whole([row(evaluator_results=(both,))])[0].evaluators
    assert (figures.name, figures.type, figures.scored) == ("both", "composite", 1)


def test_unknown_costs_are_none_and_known_ones_exact() -> None:
    unknown, free = (whole([row(cost_usd=cost)])[0].suites[0] for cost in (None, 0.0))
    assert (unknown.cost_usd, unknown.judge_cost_usd, unknown.usage) == (None, None, Usage())
    assert (free.cost_usd, free.judge_cost_usd) == (0.0, None)
    found = whole([row(trial=number, cost_usd=0.1, judge_cost_usd=0.2) for number in range(1, 11)])[0]
    assert (found.suites[0].cost_usd, found.suites[0].judge_cost_usd, found.cost_usd) == (1.0, 2.0, 3.0)


def repeated_of(letters: str, **given: Any) -> RunReport:
    one = case(**{"trials": len(letters), **given})
    return report(plan(one), rows_of(one, letters), Ending())[0]


def test_cases_with_several_trials_are_repeated() -> None:
    assert repeated_of("p").repeated == repeated_of("p", trials=3).repeated == ()
    (found,) = repeated_of("pfpep").repeated
    assert (found.trials, found.graded, found.passed, found.flaky, found.verdict) == (5, 4, 3, True, "pass")
    assert (found.pass_rate_low, found.pass_rate_high) == pytest.approx((0.300642, 0.954413), abs=1e-6)
    assert found.pass_at_k == pytest.approx((0.75, 1.0, 1.0, 1.0))
    assert found.pass_hat_k == pytest.approx((0.75, 0.5, 0.25, 0.0))
    assert found.mean == 0.8
    (crashing,) = repeated_of("pcccc").repeated
    assert (crashing.graded, crashing.crashed, crashing.passed, crashing.verdict) == (5, 4, 1, "fail")
    assert (crashing.pass_at_k[0], crashing.pass_hat_k[1], crashing.mean) == (0.2, 0.0, 0.2)
    (broken,) = repeated_of("ee").repeated
    assert (broken.graded, broken.passed, broken.pass_at_k, broken.pass_hat_k) == (0, 0, (), ())
    assert (broken.pass_rate_low, broken.pass_rate_high, broken.verdict) == (0.0, 1.0, "error")


@pytest.mark.parametrize(("letters", "verdict", "gate"), [("ppp", "pass", "pass"), ("pp", "borderline", "fail")])
def test_case_that_stops_when_decided_is_described_by_the_trials_that_ran(
    letters: str, verdict: str, gate: str
) -> None:
    found = repeated_of(letters, trials=5, stop_when="decided")
    (one,) = found.repeated
    assert (one.trials, one.graded, one.verdict, len(one.pass_at_k)) == (*[len(letters)] * 2, verdict, len(letters))
    assert found.gate.verdict == gate
