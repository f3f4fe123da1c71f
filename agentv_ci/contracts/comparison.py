"""Comparisons of two runs, and baselines."""

from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import (
    GradedVerdict,
    Items,
    Name,
    NonNegative,
    Recorded,
    Share,
    Verdict,
)
from agentv_ci.contracts.gate import IncreasingMetric, WhenUndecided
from agentv_ci.contracts.plan_parts import Sha256
from agentv_ci.contracts.results import Dollars, OfCase, is_none, is_zero

BASELINE_SCHEMA = "agentv-baseline-v1"

Change = Literal[
    "regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"
]


class Rate(Recorded):
    """Pass rate of a case on one side."""

    verdict: Verdict = Field(description="Verdict of the case.")
    passed: int = Field(description="Trials that passed.")
    graded: int = Field(
        description="Trials with a verdict, and crashed ones, which count as failed."
    )
    mean: float | None = Field(description="Mean score of the graded trials.")


class ShownAnswer(Recorded):
    """An answer of a case that got worse."""

    trial: int = Field(description="Number of the trial.")
    answer: str = Field(description="The answer, shortened.")
    error: str | None = Field(
        None, exclude_if=is_none, description="Why there is no verdict; absent with one."
    )
    tool_calls: Items[str] = Field(
        (), exclude_if=not_, description="The tools it called, in order; absent without a call."
    )


class ComparedCase(OfCase):
    """A case of both sides or of one of them."""

    change: Change = Field(description="How the case changed.")
    base: Rate | None = Field(None, description="Pass rate on the older side.")
    head: Rate | None = Field(None, description="Pass rate on the newer side.")
    low: float | None = Field(None, description="Lower bound of the change of its pass rate.")
    high: float | None = Field(None, description="Upper bound.")
    single: bool = Field(
        False, description="Whether each side has only one trial, so the change may be noise."
    )
    stale: bool = Field(False, description="Whether the case or its target changed, by its digest.")
    left_out: bool = Field(
        False,
        description="Whether its question or evaluators changed, so that it does not count for the "
        "statement.",
    )
    answer_before: ShownAnswer | None = Field(
        None,
        exclude_if=is_none,
        description="An answer of the older side that passed, if the case got worse; absent if "
        "that side has no rows.",
    )
    answer_now: ShownAnswer | None = Field(
        None, exclude_if=is_none, description="An answer of the newer side that did not pass."
    )


class Figure(Recorded):
    """A figure over all cases graded on both sides, and the significance of its change."""

    base: float = Field(description="Before.")
    head: float = Field(description="Now.")
    p_value: Share = Field(description="Probability of a change this large by chance (two-sided).")
    falls: bool = Field(description="Whether it drops significantly.")
    detectable: float | None = Field(
        description="Approximate smallest significant drop; null if none or unknown."
    )


MetricName = Literal["pass rate", "mean score"] | IncreasingMetric
MetricVerdict = Literal["worse", "better", "within", "undecided", "not compared"]


class MetricChange(Recorded):
    """The change of a metric over the cases of both sides. Each case weighs the same."""

    metric: MetricName = Field(
        description="Rate of passing trials, mean score, or what answers cost and take."
    )
    target: str | None = Field(None, description="The only target it is about; null for all.")
    suites: Items[str] = Field((), description="The only eval files it is about; empty for all.")
    cases: int = Field(description="Cases with a value on both sides.")
    base: float | None = Field(
        None, description="Mean or quantile before; in dollars, tokens or seconds."
    )
    head: float | None = Field(None, description="The same now.")
    change: float | None = Field(
        None,
        description="Estimated change: a difference of rates and scores, else an increase as a "
        "share.",
    )
    low: float | None = Field(None, description="Lower bound of the change.")
    high: float | None = Field(None, description="Upper bound.")
    confidence: Share | None = Field(
        None, description="Confidence of the interval, by which the statement holds."
    )
    allowed: float | None = Field(
        None, description="Largest allowed increase, as a share; null for rates and scores."
    )
    p_value: Share | None = Field(
        None,
        exclude_if=is_none,
        description="Probability that chance alone changes a pass rate this far (one-sided).",
    )
    base_passed: int | None = Field(
        None, exclude_if=is_none, description="Of a pass rate: trials that passed before."
    )
    base_trials: int | None = Field(
        None, exclude_if=is_none, description="Of a pass rate: graded trials before."
    )
    head_passed: int | None = Field(
        None, exclude_if=is_none, description="Of a pass rate: trials that pass now."
    )
    head_trials: int | None = Field(
        None, exclude_if=is_none, description="Of a pass rate: graded trials now."
    )
    verdict: MetricVerdict = Field(
        description="`worse`: the interval is beyond 0, or beyond the allowed increase; `within`: "
        "it is below it."
    )
    reason: str | None = Field(None, description="Why it is not decided, and what would decide it.")


class Statement(Recorded):
    """What a comparison states as a whole; wrong with at most the probability 1 − confidence."""

    verdict: Literal["worse", "better", "undecided", "withheld"] = Field(
        description="`worse`: a metric or a case is; `better`: none is, and a rate or score is "
        "better; `withheld`: the sides are not comparable, or missing trials could change it."
    )
    confidence: Share = Field(description="Confidence of the statement.")
    cases: int = Field(description="Cases that it is about.")
    metrics: Items[MetricChange] = Field(description="Changes of the metrics.")
    worse_cases: Items[OfCase] = Field(
        (), description="Cases that got worse by a test of their own trials."
    )
    maybe_worse_cases: Items[OfCase] = Field(
        (),
        description="Cases that passed in all of their trials and pass in none, or whose own "
        "trials alone would be called worse, but that may be chance.",
    )
    withheld: Items[str] = Field((), description="Why nothing is stated.")
    missing_before: NonNegative = Field(
        0, exclude_if=not_, description="Trials of the older side that have no verdict."
    )
    missing_now: NonNegative = Field(
        0, exclude_if=not_, description="Trials of the newer side that have no verdict."
    )
    missing_decide: bool = Field(
        False,
        exclude_if=not_,
        description="Whether these could change the verdict, which is withheld.",
    )


class Comparison(Recorded):
    """One run against another."""

    base: str = Field(description="The older side.")
    head: str = Field(description="The newer side.")
    confidence: Share = Field(description="Confidence of the intervals per case.")
    is_part: bool = Field(
        description="Whether the newer side has only some of the cases: a filter or a shard."
    )
    by_target: bool = Field(
        False,
        description="Whether each target is compared with itself, because several answer the same "
        "case.",
    )
    compared: int = Field(description="Cases graded on both sides.")
    lost: int = Field(description="Cases that lost their verdict.")
    quarantined: int = Field(
        0, description="Cases of the newer side in quarantine, which are not compared."
    )
    left_out: int = Field(
        0, description="Cases with a changed question or evaluators, which do not count."
    )
    counts: dict[Change, int] = Field(description="Change → number of cases that count.")
    statement: Statement | None = Field(None, description="What the comparison states as a whole.")
    pass_rate: Figure | None = Field(
        description="Share of cases that pass (exact McNemar test). For programs of earlier "
        "versions: `statement` decides."
    )
    mean_score: Figure | None = Field(
        description="Mean of the cases' scores (Wilcoxon's signed-rank test). For programs of "
        "earlier versions: `statement` decides."
    )
    unmeasured: Items[str] = Field((), description="Limits that could not be checked, and why.")
    undecided: Items[str] = Field(
        (), description="What too few trials leave open, and what decides it."
    )
    when_undecided: WhenUndecided | None = Field(
        None, exclude_if=is_none, description="What it counts as if it is undecided; null: neither."
    )
    trial_correlation: Share | None = Field(
        None,
        exclude_if=is_none,
        description="Correlation of trials of the same case and run in a ledger: with 0.05 or "
        "more, more verdicts are wrong than the confidence says. Absent without a ledger, and if "
        "it has too few runs.",
    )
    warnings: Items[str] = Field(description="Reasons not to trust the older side.")
    reasons: Items[str] = Field(description="Why this is a regression; empty otherwise.")
    cases: Items[ComparedCase] = Field(description="All cases except unchanged ones, worst first.")

    @property
    def shares_cases(self) -> bool:
        """Whether any case is on both sides, even if one of them skips it."""
        shared = (
            number for change, number in self.counts.items() if change not in ("new", "removed")
        )
        is_skipped = any(case.base and case.head for case in self.cases)
        return self.left_out > 0 or any(shared) or is_skipped


def is_empty(value: object) -> bool:
    """Whether a list has no entries."""
    return value == ()


TrialNumber = Annotated[int, Field(ge=1)]


class BaselineCase(OfCase):
    """A case and the results of its trials."""

    id: Name = Field(description="The case's id.")
    target: str = Field(description="The target's name.")
    verdict: GradedVerdict = Field(description="Verdict of the case.")
    mean: Share = Field(description="Mean score of its graded trials.")
    passed: Items[TrialNumber] = Field(description="Numbers of the trials that passed, from 1.")
    missed: Items[TrialNumber] = Field(
        description="Numbers of the graded trials that did not pass."
    )
    crashed: Items[TrialNumber] = Field(
        (),
        exclude_if=is_empty,
        description="Numbers of those that did not pass because the agent crashed.",
    )
    without_verdict: NonNegative = Field(
        0,
        exclude_if=is_zero,
        description="Number of trials without a verdict, which say nothing about the agent.",
    )
    digest: Sha256 = Field(description="The case's digest in its plan.")
    threshold: Share | None = Field(
        None,
        exclude_if=is_none,
        description="Minimum score to pass, to which newer runs are held; absent in baselines of "
        "earlier versions.",
    )
    costs_usd: Items[Dollars | None] | None = Field(
        None,
        exclude_if=is_none,
        description="Cost of the answer of each graded trial; null if unknown.",
    )
    tokens: Items[NonNegative | None] | None = Field(
        None, exclude_if=is_none, description="Tokens of each answer."
    )
    durations_ms: Items[NonNegative | None] | None = Field(
        None, exclude_if=is_none, description="Duration of each answer."
    )
    task: str | None = Field(
        None,
        exclude_if=is_none,
        description="Digest of the question and of how answers are scored.",
    )
    models: Items[str] | None = Field(
        None, exclude_if=is_none, description="Models that answered, as reported by the provider."
    )
    judges: Items[str] | None = Field(
        None, exclude_if=is_none, description="Models that judged, or else their targets."
    )


class BaselineDocument(Recorded):
    """A run to compare with."""

    schema_: str = Field(alias="$schema", description=f"`{BASELINE_SCHEMA}` or the schema's $id.")
    measured: str = Field(description="Time of the last answer: ISO 8601, UTC.")
    plan_digest: Sha256 | None = Field(description="Digest of the plan; null for several plans.")
    cases: Items[BaselineCase] = Field(
        min_length=1, description="The cases, by suite and position."
    )
