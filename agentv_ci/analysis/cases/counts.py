"""Counts and scores of a run."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.quarantine import gating
from agentv_ci.analysis.cases.spending import Spending, dollars, recorded
from agentv_ci.analysis.statistics.inference import (
    pass_at,
    pass_hat,
    rate_interval,
    sum_of_squares,
)
from agentv_ci.contracts.report import Counts, Group, RepeatedCase, Statistics, TagFigures
from agentv_ci.contracts.results import PRECISION

BINS = 5
MAX_DRAWS = 20
"""The largest k of pass@k and pass^k."""
CONFIDENCE = 0.95
"""Of the interval of a case's pass rate."""
REPEATED_FIELDS = {*RepeatedCase.model_fields}
"""Shared by all repeated cases: a set for each would be most of their memory."""
MOST_MS = 10**15
"""The longest time that is added up; rows of other programs may have any number."""


def count(
    outcomes: Sequence[CaseOutcome],
    *,
    rows: int,
    cached: int = 0,
    cases: int = 0,
    leaves_cases: bool = False,
) -> Counts:
    """Count cases by verdict, of `cases` in total.

    `leaves_cases`: whether those without an outcome did not run.
    """
    unknown = max(0, cases - len(outcomes))
    not_run = sum(outcome.not_run for outcome in outcomes)
    if leaves_cases:
        not_run += unknown
    counting = gating(outcomes)
    verdicts: Counter[str] = Counter()
    flaky = crashed = 0
    for outcome in counting:
        verdicts[outcome.verdict] += 1
        flaky += outcome.flaky
        crashed += outcome.crashed
    return Counts(
        cases=len(outcomes) + unknown,
        passed=verdicts["pass"],
        failed=verdicts["fail"] + verdicts["borderline"],
        errored=verdicts["error"] + unknown - not_run,
        not_run=not_run,
        skipped=verdicts["skipped"],
        quarantined=len(outcomes) - len(counting),
        flaky=flaky,
        rows=rows,
        crashed=crashed,
        cached=cached,
    )


def describe(outcomes: Sequence[CaseOutcome]) -> Statistics:
    """Describe the scores of graded cases that gate, with the population standard deviation."""
    scores = _scores(outcomes)
    if not scores:
        return Statistics(
            mean=None, median=None, min=None, max=None, stdev=None, histogram=(0,) * BINS
        )
    bins = [0] * BINS
    # Few scores differ.
    for score, number in Counter(scores).items():
        bins[bin_of(score)] += number
    return Statistics(
        mean=round(statistics.fmean(scores), PRECISION),
        median=statistics.median(scores),
        min=min(scores),
        max=max(scores),
        stdev=round(math.sqrt(sum_of_squares(scores) / len(scores)), PRECISION),
        histogram=tuple(bins),
    )


def mean_score(outcomes: Sequence[CaseOutcome]) -> float | None:
    """Return the mean score of graded cases that gate; None without any."""
    scores = _scores(outcomes)
    if not scores:
        return None
    return round(statistics.fmean(scores), PRECISION)


def _scores(outcomes: Sequence[CaseOutcome]) -> list[float]:
    return [outcome.score for outcome in gating(outcomes) if outcome.is_graded]


def bin_of(score: float) -> int:
    """Return the bin of a score in the histogram."""
    return min(BINS - 1, math.floor(round(score * BINS, PRECISION)))


def cost_per_pass(cost_usd: float | None, passed: int) -> float | None:
    """Return what each passed case costs when all cases are paid.

    None without a cost or a passed case.
    """
    if not cost_usd or not passed:
        return None
    return round(cost_usd / passed, PRECISION)


def group(name: str, outcomes: Sequence[CaseOutcome], spent: Spending) -> Group:
    """Describe the cases of one suite or target."""
    figures = _figures(name, outcomes)
    return Group(
        **figures,
        cost_per_pass_usd=cost_per_pass(spent.cost_usd, figures["passed"]),
        lacks_costs=spent.is_partial and spent.cost_usd is not None,
        usage=recorded(spent.usage),
        judge_usage=recorded(spent.judge_usage),
        cost_usd=dollars(spent.answers),
        judge_cost_usd=dollars(spent.judges),
        duration_s=min(sum(outcome.total_ms for outcome in outcomes), MOST_MS) / 1000,
    )


def figures_by_tag(outcomes: Iterable[CaseOutcome]) -> tuple[TagFigures, ...]:
    """Describe the cases of each tag, sorted by name."""
    by_tag: dict[str, list[CaseOutcome]] = {}
    for outcome in outcomes:
        for tag in dict.fromkeys(outcome.case.tags or ()):
            by_tag.setdefault(tag, []).append(outcome)
    return tuple(TagFigures(**_figures(tag, by_tag[tag])) for tag in sorted(by_tag))


def _figures(name: str, outcomes: Sequence[CaseOutcome]) -> dict[str, Any]:
    counts = count(outcomes, rows=0).model_dump(exclude={"rows", "cached"})
    return {"name": name, **counts, "mean": mean_score(outcomes)}


def repeated(outcome: CaseOutcome) -> RepeatedCase:
    """Describe the trials of a case."""
    graded, passed = len(outcome.graded), outcome.passed
    return RepeatedCase.model_construct(
        REPEATED_FIELDS,
        suite=outcome.suite,
        id=outcome.key[1],
        target=outcome.target,
        verdict=outcome.verdict,
        flaky=outcome.flaky,
        trials=outcome.ran,
        graded=graded,
        crashed=outcome.crashed,
        passed=passed,
        mean=outcome.score,
        **_rates(passed, graded),
    )


@cache
def _rates(passed: int, graded: int) -> Mapping[str, Any]:
    """Return the pass rate of a repeated case, which few others do not share."""
    low, high = rate_interval(passed, graded, CONFIDENCE)
    draws = range(1, min(graded, MAX_DRAWS) + 1)
    return {
        "pass_rate_low": low,
        "pass_rate_high": high,
        "pass_at_k": tuple(pass_at(k, passed, graded) for k in draws),
        "pass_hat_k": tuple(pass_hat(k, passed, graded) for k in draws),
    }


def apart(reached: float, threshold: float, form: str, *, least: int) -> tuple[str, str]:
    """Format two different figures with enough digits to show the difference."""
    for digits in range(least, PRECISION):
        texts = format(reached, form.format(digits)), format(threshold, form.format(digits))
        if texts[0] != texts[1]:
            return texts
    return repr(reached), repr(threshold)


def p_text(value: float) -> str:
    """Format a p-value; smaller ones than 0.001 are not distinguished."""
    if value < 0.001:
        return "p < 0.001"
    return f"p = {value:.2g}"
