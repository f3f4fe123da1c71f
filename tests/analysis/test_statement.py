"""What a comparison states as a whole: limits of increases, and sides that are not comparable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agentv_ci.analysis.comparison import Side, compare_sides
from agentv_ci.analysis.metric_changes import Limit, limits_of
from agentv_ci.analysis.metric_texts import metric_text
from agentv_ci.analysis.statement import Terms
from agentv_ci.analysis.tally import Tally
from agentv_ci.contracts.comparison import Comparison, MetricChange, Statement
from agentv_ci.contracts.report import GateSettings
from agentv_ci.contracts.results import InputMessageRecord, ResultRow, Usage
from tests.support import NOW
from tests.support.runs import case, finding, row

CASES = 12


def side(name: str, rows: Sequence[ResultRow]) -> Side:
    tally = Tally(compares=True)
    for each in rows:
        tally.add(each)
    return Side(name, tally.outcomes())


def run(cases: int = CASES, trials: int = 3, **given: Any) -> list[ResultRow]:
    """Rows of cases that pass; a field that is a list has a value for each row in turn."""
    rows = []
    for number in range(cases):
        of = case(f"case-{number}", trials=trials, line=number + 1)
        for trial in range(1, trials + 1):
            place = number * trials + trial - 1
            own = {name: each[place % len(each)] if isinstance(each, list) else each for name, each in given.items()}
            rows.append(row("pass", of=of, trial=trial, **own))
    return rows


def compared(base: Sequence[ResultRow], head: Sequence[ResultRow], *limits: Limit, **given: Any) -> Comparison:
    return compare_sides(side("main.jsonl", base), side("head", head), Terms(0.95, limits, **given), now=NOW)


def stated(*given: Any, **terms: Any) -> Statement:
    statement = compared(*given, **terms).statement
    assert statement is not None
    return statement


def limited(*given: Any, **terms: Any) -> MetricChange:
    (found,) = (each for each in stated(*given, **terms).metrics if each.allowed is not None)
    return found


NOISE = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.97]


def noisy(value: float, *, shift: int = 0) -> list[float]:
    return [value * each for each in (*NOISE[shift:], *NOISE[:shift])]


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "within"), (1.5, "worse"), (0.5, "within"), (1.11, "undecided")])
def test_an_increase_of_costs_is_worse_if_its_whole_interval_is_above_the_limit(factor: float, verdict: str) -> None:
    found = limited(run(cost_usd=noisy(0.01)), run(cost_usd=noisy(0.01 * factor, shift=2)), Limit("cost", 0.1))
    assert (found.verdict, found.cases) == (verdict, CASES)
    assert found.change == pytest.approx(factor - 1, abs=0.05)
    assert found.low is not None
    assert found.high is not None
    assert found.change is not None
    assert found.low < found.change < found.high
    assert (found.low > 0.1) == (verdict == "worse")
    assert (found.high < 0.1) == (verdict == "within")


def test_a_limit_makes_the_comparison_worse() -> None:
    found = compared(run(cost_usd=noisy(0.01)), run(cost_usd=noisy(0.02, shift=2)), Limit("cost", 0.1))
    assert found.statement is not None
    assert found.statement.verdict == "worse"
    (reason,) = found.reasons
    assert reason.startswith("cost $0.009986 → $0.01992, +99.4% (+")
    assert reason.endswith(", at most 10% allowed")


@pytest.mark.parametrize("metric", ["mean_latency", "p95_latency"])
def test_times_are_limited_by_their_mean_and_by_a_quantile(metric: Any) -> None:
    base, head = run(duration_ms=[1000, 1100, 900, 1050]), run(duration_ms=[2000, 2200, 1800, 2100])
    assert limited(base, head, Limit(metric, 0.2)).verdict == "worse"
    found = limited(base, base, Limit(metric, 0.2))
    assert (found.verdict, found.change) == ("within", 0.0)


def test_tokens_of_few_cases_are_compared_trial_by_trial() -> None:
    few = {"cases": 2, "trials": 8}
    base = run(usage=[Usage(total_tokens=round(each)) for each in noisy(100)], **few)
    head = run(usage=[Usage(total_tokens=round(each)) for each in noisy(200, shift=2)], **few)
    assert limited(base, head, Limit("tokens", 0.1)).verdict == "worse"
    one, other = (run(1, 1, usage=Usage(total_tokens=number)) for number in (1, 9))
    single = limited(one, other, Limit("tokens", 0.1))
    assert (single.verdict, single.low) == ("undecided", None)
    assert single.reason is not None
    assert single.reason.startswith("1 case, too few for a mean: compare at least ")


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        ({}, {}, "cost: no costs from target default"),
        ({"cost_usd": 0.1}, {}, "cost: no costs now from target default"),
        ({}, {"cost_usd": 0.1}, "cost: no costs before from target default"),
        ({"cost_usd": 0.1}, {"cost_usd": 0.0, "cached": True}, "cost: no costs now from target default"),
    ],
)
def test_costs_that_are_not_measured_are_named_and_never_0(
    base: dict[str, Any], head: dict[str, Any], text: str
) -> None:
    found = limited(run(**base), run(**head), Limit("cost", 0.1))
    assert (found.verdict, found.base, found.head, metric_text(found)) == ("not compared", None, None, text)


def test_cases_without_a_cost_are_counted() -> None:
    base, head = run(cost_usd=noisy(0.01)), run(cost_usd=noisy(0.01))
    head = [each.model_copy(update={"cost_usd": None}) if each.eval_id == "case-3" else each for each in head]
    found = limited(base, head, Limit("cost", 0.5))
    assert (found.cases, found.reason) == (CASES - 1, "1 of 12 cases not measured on both sides")


def test_suites_with_the_same_limit_are_judged_together() -> None:
    settings = [
        GateSettings(suite="a", cases=1, max_increases={"cost": 0.1}),
        GateSettings(suite="b", cases=1, max_increases={"cost": 0.1, "tokens": 0.2}),
    ]
    assert limits_of(settings) == (Limit("cost", 0.1), Limit("tokens", 0.2, ("b",)))


def test_other_models_and_judges_are_named_and_the_statement_is_withheld() -> None:
    base, head = run(model="gpt-5-0807"), run(model="gpt-5-1101")
    reason = "questions to target default were answered by gpt-5-0807 in main.jsonl, and by gpt-5-1101 now"
    found = stated(base, head)
    assert (found.verdict, found.withheld) == ("withheld", (reason,))
    assert stated(base, head, allows_changes=True).withheld == ()
    assert stated(run(model=None), head).withheld == ()
    judged = [[finding("judged", judge=judge)] for judge in ("strict", "mild")]
    before, now = (run(evaluator_results=tuple(each)) for each in judged)
    assert stated(before, now).withheld == ("main.jsonl was judged by strict, this run by mild",)


def test_cases_with_another_question_are_left_out() -> None:
    def asked(text: str) -> tuple[InputMessageRecord, ...]:
        return (InputMessageRecord(role="user", content=text),)

    base = run(input_messages=asked("May I?"))
    changed = [
        each.model_copy(update={"input_messages": asked("May I, please?")}) if each.eval_id == "case-0" else each
        for each in base
    ]
    found = compared(base, changed)
    assert found.statement is not None
    assert (found.statement.verdict, found.statement.cases) == ("undecided", CASES - 1)
    assert found.warnings[1].startswith("1 case with a changed question or evaluators left out: case-0; ")
    everywhere = stated(base, run(input_messages=asked("Might I?")))
    assert everywhere.withheld == ("the question or the evaluators of all 12 cases changed since main.jsonl",)
    assert stated(base, changed, allows_changes=True).cases == CASES
    assert (found.left_out, sum(found.counts.values())) == (1, CASES - 1)


def test_a_case_cannot_get_worse_by_another_question() -> None:
    base, other = run(), {"expected_outcome": "Anything", "verdict": "fail"}
    changed = [each.model_copy(update=other) if each.eval_id == "case-0" else each for each in base]
    reason = "1 case with a changed question or evaluators and a worse verdict than in main.jsonl: case-0"
    found = compared(base, changed)
    assert found.statement is not None
    assert (found.statement.verdict, found.statement.withheld, found.reasons) == ("withheld", (reason,), ())
    assert stated(base, changed, allows_changes=True).withheld == ()


def test_files_of_evaluators_may_change() -> None:
    def judged(path: str, digest: str, **more: Any) -> list[ResultRow]:
        settings = json.dumps({"golden": {"path": path, "sha256": digest}, "ignore": ["*.lock"], **more})
        return run(evaluator_results=(finding("x", settings=settings),))

    before = judged("fix.patch", "1")
    assert stated(before, judged("patches/fix.patch", "2")).cases == CASES
    assert stated(before, judged("fix.patch", "1", least=0.5)).cases == 0


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([1000, 1000], [1000, 1000, 90_000], "worse"),
        ([1000, 1000, 90_000], [1000, 1000], "within"),
        ([1000, 90_000], [1000, 90_000, 1000, 90_000], "within"),
        ([1000, 1000], [1000, 1000, 1000], "within"),
    ],
)
def test_all_answers_count_for_a_quantile(base: list[int], head: list[int], verdict: str) -> None:
    sides = (run(trials=len(each), duration_ms=each) for each in (base, head))
    assert limited(*sides, Limit("p95_latency", 0.2)).verdict == verdict


def test_few_cases_are_worse_all_together_among_many() -> None:
    def broken(cases: int) -> Statement:
        head = [
            each.model_copy(update={"verdict": "fail"}) if each.eval_id in ("case-0", "case-1", "case-2") else each
            for each in run(cases)
        ]
        return stated(run(cases), head)

    for cases in (9, 10, 20):
        found = broken(cases)
        assert found.verdict == "worse"
        assert [(each.low, each.high) for each in found.metrics if each.verdict == "worse"] == [(None, None)]


@pytest.mark.parametrize(
    ("passes", "now", "maybe"),
    [
        (5, 0, 5),  # no drop of five trials is beyond chance
        (5, 5, 0),
        (7, 6, 0),  # a drop of all seven would be
        (12, 11, 0),
    ],
)
def test_a_worse_verdict_counts_if_no_drop_could_be_shown(passes: int, now: int, maybe: int) -> None:
    base = run(passes, 1)
    head = [*base[:now], *(each.model_copy(update={"verdict": "fail", "score": 0.0}) for each in base[now:])]
    found = compared(base, head)
    assert found.statement is not None
    assert (found.statement.verdict, len(found.statement.maybe_worse_cases)) == ("undecided", maybe)
    assert bool(found.reasons) == bool(maybe)


def test_rates_and_scores_of_too_few_cases_say_what_is_needed() -> None:
    texts = [metric_text(each) for each in stated(run(3, 1), run(3, 1)).metrics]
    assert texts == [
        "pass rate 100.0% → 100.0%; 3 cases with so few trials cannot show any drop: use --repeat 5",
        "mean score 1.000 → 1.000; 3 cases, too few for a mean: compare at least 8",
    ]
