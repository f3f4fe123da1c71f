"""Counts and scores of a run; the same for any number of workers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from agentv_ci.analysis.inference import pass_at, pass_hat, rate_interval
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.spending import Spending
from agentv_ci.contracts.report import Counts, Group, RepeatedCase, Statistics
from agentv_ci.contracts.results import PRECISION

BINS = 5
MAX_DRAWS = 20
"""The largest k of pass@k and pass^k."""
CONFIDENCE = 0.95
"""Of the interval of a case's pass rate."""


def count(outcomes: Sequence[CaseOutcome], *, rows: int, cases: int = 0) -> Counts:
    """Count cases by verdict; of `cases` that are known, those without an outcome never ran."""
    unknown = max(0, cases - len(outcomes))
    verdicts = [outcome.verdict for outcome in outcomes]
    return Counts(
        cases=len(outcomes) + unknown,
        passed=verdicts.count("pass"),
        failed=verdicts.count("fail") + verdicts.count("borderline"),
        errored=verdicts.count("error") + unknown,
        not_run=sum(not outcome.trials for outcome in outcomes) + unknown,
        flaky=sum(outcome.flaky for outcome in outcomes),
        rows=rows,
    )


def describe(outcomes: Sequence[CaseOutcome]) -> Statistics:
    """Describe the scores of graded cases; the standard deviation is the population's."""
    scores = [outcome.score for outcome in outcomes if outcome.verdict != "error"]
    if not scores:
        return Statistics(mean=None, median=None, min=None, max=None, stdev=None, histogram=(0,) * BINS)
    mean = math.fsum(scores) / len(scores)
    variance = math.fsum((score - mean) ** 2 for score in scores) / len(scores)
    bins = [bin_of(score) for score in scores]
    return Statistics(
        mean=round(mean, PRECISION),
        median=statistics.median(scores),
        min=min(scores),
        max=max(scores),
        stdev=round(math.sqrt(variance), PRECISION),
        histogram=tuple(bins.count(index) for index in range(BINS)),
    )


def bin_of(score: float) -> int:
    """Return in which column of a histogram a score stands."""
    return min(BINS - 1, math.floor(round(score * BINS, PRECISION)))


def group(name: str, outcomes: Sequence[CaseOutcome], spent: Spending) -> Group:
    """Describe the cases of one suite or target."""
    counts = count(outcomes, rows=0)
    return Group(
        name=name,
        cases=counts.cases,
        passed=counts.passed,
        failed=counts.failed,
        errored=counts.errored,
        flaky=counts.flaky,
        mean=describe(outcomes).mean,
        usage=spent.usage,
        judge_usage=spent.judge_usage,
        cost_usd=spent.answers_usd,
        judge_cost_usd=spent.judges_usd,
    )


def repeated(outcome: CaseOutcome) -> RepeatedCase:
    """Describe the trials of a case."""
    graded, passed = len(outcome.graded), outcome.passed
    low, high = rate_interval(passed, graded, CONFIDENCE)
    draws = range(1, min(graded, MAX_DRAWS) + 1)
    return RepeatedCase(
        suite=outcome.case.suite,
        id=outcome.case.id,
        target=outcome.target,
        verdict=outcome.verdict,
        flaky=outcome.flaky,
        trials=len(outcome.trials),
        graded=graded,
        passed=passed,
        mean=outcome.score,
        pass_rate_low=low,
        pass_rate_high=high,
        pass_at_k=tuple(pass_at(k, passed, graded) for k in draws),
        pass_hat_k=tuple(pass_hat(k, passed, graded) for k in draws),
    )


def apart(reached: float, wanted: float, form: str, *, least: int) -> tuple[str, str]:
    """Write two different figures with as many digits as it takes to see that they are."""
    for digits in range(least, PRECISION):
        texts = format(reached, form.format(digits)), format(wanted, form.format(digits))
        if texts[0] != texts[1]:
            return texts
    return repr(reached), repr(wanted)


def p_text(value: float) -> str:
    """Write a p-value; how far it is below one in a thousand says nothing to anybody."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"
