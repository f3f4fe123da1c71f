"""The run report: what a whole run came to. It lies beside the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, JsonObject, Name, Recorded, Share, Verdict
from agentv_ci.contracts.comparison import Comparison
from agentv_ci.contracts.diagnostics import Severity
from agentv_ci.contracts.plan import Sha256
from agentv_ci.contracts.results import Dollars, Usage


class Counts(Recorded):
    """Cases by verdict; rows are trials."""

    cases: int = Field(description="Cases of the plan.")
    passed: int = Field(description="Cases that passed.")
    failed: int = Field(description="Cases that did not (borderline counts here).")
    errored: int = Field(description="Cases without a verdict.")
    not_run: int = Field(description="Of those without a verdict, the ones that never ran.")
    flaky: int = Field(description="Cases whose trials disagree.")
    rows: int = Field(description="Trials.")


class Statistics(Recorded):
    """Scores of graded cases. The standard deviation is the population's."""

    mean: float | None = Field(description="Mean score; null when nothing was graded.")
    median: float | None = Field(description="Median score.")
    min: float | None = Field(description="Lowest score.")
    max: float | None = Field(description="Highest score.")
    stdev: float | None = Field(description="Standard deviation.")
    histogram: Items[int] = Field(description="Cases in [0,.2) [.2,.4) [.4,.6) [.6,.8) [.8,1].")


class Group(Recorded):
    """The cases of one suite, or of one target."""

    name: str = Field(description="The suite's path, or the target's name.")
    cases: int = Field(description="Its cases.")
    passed: int = Field(description="Cases that passed.")
    failed: int = Field(description="Cases that did not (borderline counts here).")
    errored: int = Field(description="Cases without a verdict.")
    flaky: int = Field(description="Cases whose trials disagree.")
    mean: float | None = Field(description="Mean score of graded cases.")
    usage: Usage = Field(description="Tokens of answers.")
    judge_usage: Usage = Field(description="Tokens of judges.")
    cost_usd: Dollars | None = Field(description="Cost of answers, as far as it is known.")
    judge_cost_usd: Dollars | None = Field(description="Cost of judges, as far as it is known.")

    @property
    def total_usd(self) -> float | None:
        """Cost of answers and judges, as far as it is known."""
        known = [each for each in (self.cost_usd, self.judge_cost_usd) if each is not None]
        return sum(known) if known else None


class EvaluatorFigures(Recorded):
    """What evaluators of one name and type found, over all trials."""

    name: str = Field(description="The evaluators' name.")
    type: str = Field(description="Their type.")
    scored: int = Field(description="Answers that they scored.")
    passed: int = Field(description="Of those, the ones that passed.")
    errors: int = Field(description="Answers that they could not score.")
    skipped: int = Field(description="Answers without what they measure.")
    mean: float | None = Field(description="Mean of their scores.")


class RepeatedCase(Recorded):
    """What the trials of a case say of how often it passes."""

    suite: str = Field(description="The eval file.")
    id: str = Field(description="The case's id.")
    target: str = Field(description="The target's name.")
    verdict: Verdict = Field(description="The case's.")
    flaky: bool = Field(description="Whether its graded trials disagree.")
    trials: int = Field(description="Trials that ran.")
    graded: int = Field(description="Of those, the ones with a verdict.")
    passed: int = Field(description="Of those, the ones that passed.")
    mean: float = Field(description="Mean score of graded trials.")
    pass_rate_low: Share = Field(description="Lower end of the 95 % interval of its pass rate (Wilson).")
    pass_rate_high: Share = Field(description="Upper end.")
    pass_at_k: Items[Share] = Field(description="For k from 1 to at most 20: that at least one of k trials passes.")
    pass_hat_k: Items[Share] = Field(description="For k from 1 to at most 20: that all of k trials pass.")

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies it among all cases of a run."""
        return self.suite, self.id, self.target


class ValidatorSettings(Recorded):
    """A check of the finished run."""

    key: Name = Field(description="The validator's name.")
    context: JsonObject = Field(default_factory=dict, description="Its settings.")


SEVERITIES_WORST_FIRST: tuple[Severity, ...] = ("error", "warning", "info")


class ValidatorIssue(Recorded):
    """Something that a validator found."""

    id: str = Field(description="What kind of thing.")
    severity: Severity = Field(description="How bad.")
    message: str = Field(description="What was found.")
    path: Items[str] | None = Field(None, description="Where, as steps into the scenario report.")


class Validation(Recorded):
    """What a validator says of a run."""

    validator: str = Field(description="Its name.")
    issues: Items[ValidatorIssue] = Field(description="What it found.")
    summary: JsonObject = Field(description="The same in figures.")

    @property
    def errors(self) -> tuple[str, ...]:
        """What it found that is an error; of a great many, the first ones."""
        return tuple(issue.message for issue in self.issues if issue.severity == "error")

    @property
    def worst_first(self) -> list[ValidatorIssue]:
        """What it found, errors before warnings before notes."""
        return sorted(self.issues, key=lambda issue: SEVERITIES_WORST_FIRST.index(issue.severity))

    def count(self, severity: Severity) -> int:
        """Return how many issues there were, also where not all are kept."""
        by_severity = self.summary.get("by_severity")
        counted = by_severity.get(severity) if isinstance(by_severity, dict) else None
        listed = sum(issue.severity == severity for issue in self.issues)
        return max(counted, listed) if isinstance(counted, int) else listed


class FailedValidation(Recorded):
    """A validator that could not say anything."""

    validator: str = Field(description="Its name.")
    error: str = Field(description="Why.")


class ScenarioAggregates(Recorded):
    """What the runs of a scenario come to together."""

    runs: int = Field(description="How many there are.")
    errors: int = Field(description="Of those, the ones without an answer.")
    validations: Items[Validation | FailedValidation] = Field(description="What validators say.")


class ScenarioReport(Recorded):
    """A suite as validators see it, without its runs."""

    scenario_key: str = Field(description="The suite's path.")
    aggregates: ScenarioAggregates = Field(description="Its runs together.")


class GateSettings(Recorded):
    """The thresholds that were applied."""

    suite: str = Field(description="The eval file.")
    cases: int = Field(description="Its cases in this run.")
    min_pass_rate: Share = Field(1.0, description="Least share of graded cases that pass.")
    min_mean_score: Share | None = Field(None, description="Least mean score.")
    max_errors: int = Field(0, description="Most errors.")
    max_cost_usd: Dollars | None = Field(None, description="Most the suite may cost, judges included.")
    validators: Items[ValidatorSettings] = Field((), description="Checks of its finished run.")
    validator_errors: Literal["error", "warn"] = Field("error", description="Whether errors that they find count.")
    seeds: Items[int] = Field((), description="The seeds of its trials, for validators.")


GateVerdict = Literal["pass", "fail", "error", "budget", "interrupted", "nothing", "dry-run"]

GateReasonKind = Literal[
    "pass-rate",
    "mean-score",
    "errors",
    "nothing-graded",
    "validator",
    "regression",
    "cost",
    "unpriced",
    "stopped",
    "incomplete",
    "unrecorded",
    "write-error",
    "nothing-ran",
]


class GateReason(Recorded):
    """One reason why the gate is not passed."""

    kind: GateReasonKind = Field(description="What was not reached.")
    suite: str | None = Field(description="The eval file; null for the whole run.")
    message: str = Field(description="What was not reached, in words.")


class GateResult(Recorded):
    """Whether the run passed, and why not."""

    verdict: GateVerdict = Field(description="The gate's word.")
    exit_code: Annotated[int, Field(ge=0, le=255)] = Field(
        description="What the command ends with; that of a shard leaves quality to the whole."
    )
    reasons: Items[str] = Field(description="What was not reached.")
    causes: Items[GateReason] = Field((), description="The same, each with its kind and its suite.")
    settings: Items[GateSettings] = Field(description="The thresholds, per suite.")
    max_cost_usd: Dollars | None = Field(None, description="Most the whole run may cost (`--max-cost`).")


class ShardRecord(Recorded):
    """Which part of a plan ran."""

    index: Annotated[int, Field(ge=1)] = Field(description="From 1.")
    total: Annotated[int, Field(ge=1)] = Field(description="How many parts there are.")
    cases: Annotated[int, Field(ge=0)] = Field(description="Cases of the whole plan.")


class ConcurrencyChange(Recorded):
    """How many questions a target was asked at once, from some moment on."""

    at: str = Field(description="When: ISO 8601, UTC.")
    target: str = Field(description="The target's name.")
    before: int = Field(description="Questions at once until then.")
    after: int = Field(description="Questions at once from then on.")
    held_s: float = Field(description="Seconds for which nothing at all was asked, as the server wished.")
    reason: str = Field(description="Why.")


Stop = Literal["fail-fast", "budget", "interrupted"]
"""Why a run ended before its plan did."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, besides its rows."""

    dry_run: bool = False
    write_error: str | None = None
    """Why rows are missing from the file."""
    stopped: Stop | None = None
    incomplete: tuple[str, ...] = ()
    """What is wrong with merged results themselves."""
    unrecorded: int = 0
    """Questions of a replay that had no recording."""
    shard: ShardRecord | None = None
    max_cost_usd: float | None = None
    """Most the whole run may cost."""
    unpriced_models: tuple[str, ...] = ()
    concurrency: tuple[ConcurrencyChange, ...] = ()


class RunReport(Recorded):
    """What a run came to."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    plan_digest: Sha256 | None = Field(
        description="The plan that ran, or of which a part ran; null for results of several plans."
    )
    shard: ShardRecord | None = Field(description="The part that ran; null for all of it.")
    stopped: Stop | None = Field(None, description="Why not everything ran.")
    incomplete: Items[str] = Field((), description="Of merged results: what is missing, doubled or foreign.")
    unrecorded: int = Field(0, description="Questions of a replay that had no recording.")
    dry_run: bool = Field(description="Whether the mock answered in place of the targets.")
    counts: Counts = Field(description="Cases by verdict.")
    statistics: Statistics = Field(description="Scores of graded cases.")
    gate: GateResult = Field(description="Whether the run passed.")
    suites: Items[Group] = Field((), description="The same, by eval file.")
    targets: Items[Group] = Field((), description="The same, by the target that answers.")
    evaluators: Items[EvaluatorFigures] = Field((), description="What evaluators found.")
    repeated: Items[RepeatedCase] = Field((), description="Cases with several trials.")
    comparison: Comparison | None = Field(None, description="Against the baseline (`--baseline`).")
    scenario_reports: Items[ScenarioReport] = Field((), description="What validators say, suite by suite.")
    usage: Usage = Field(description="Tokens of answers and judges.")
    cost_usd: Dollars | None = Field(description="Cost of answers and judges, as far as it is known.")
    unpriced_models: Items[str] = Field(description="Models whose price nobody knows: the cost lacks them.")
    concurrency: Items[ConcurrencyChange] = Field(description="Changes of how many questions were asked at once.")
    write_error: str | None = Field(None, description="Why results are missing from the file.")
