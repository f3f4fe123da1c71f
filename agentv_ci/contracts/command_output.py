"""What commands print as JSON.

Plans, estimates, diagnostics, the health of an eval set, the power of experiments.
"""

from itertools import chain
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Items, Name, NonNegative, Recorded, Share
from agentv_ci.contracts.diagnostics import Severity


class NamedCase(Recorded):
    """A case of one of the plans."""

    id: str = Field(description="Id of the case.")
    suite: str = Field(description="Eval file of the case.")
    target: str | None = Field(
        None, description="Name of the target; null if only one answers the case."
    )
    row: str | None = Field(
        None, description="File and line of the row that makes the case; null without one."
    )


class ChangedCase(NamedCase):
    """A case of both plans whose result may have changed."""

    reasons: Items[str] = Field(description="What changed that can affect the result; never empty.")


class PlanDiff(Recorded):
    """Differences from an older plan; unchanged cases are not listed."""

    added: Items[NamedCase] = Field(description="Cases only in the newer plan.")
    removed: Items[NamedCase] = Field(description="Cases only in the older plan.")
    changed: Items[ChangedCase] = Field(description="Cases in both plans with different digests.")


class TargetEstimate(Recorded):
    """The estimated use of one target."""

    target: str = Field(description="Key of the target in the plan.")
    provider: str = Field(description="Provider of the target.")
    model: str | None = Field(description="Model, if the targets file sets it.")
    answers: NonNegative = Field(description="Requests for answers.")
    judgements: NonNegative = Field(description="Requests for judgements.")
    input_tokens: NonNegative = Field(description="Approximate input tokens.")
    output_tokens: NonNegative = Field(description="Approximate output tokens.")
    cost_usd: float | None = Field(
        description="Cost; null if the price is unknown or nothing is charged."
    )
    seconds: float = Field(description="Total time of its requests.")


class Estimate(Recorded):
    """The estimated use of a run, without retries and with all trials."""

    cases: NonNegative = Field(description="Number of cases.")
    trials: NonNegative = Field(description="Number of trials.")
    requests: NonNegative = Field(description="Requests for answers and judgements.")
    input_tokens: NonNegative = Field(description="Approximate input tokens.")
    output_tokens: NonNegative = Field(description="Approximate output tokens.")
    cost_usd: float | None = Field(
        description="Cost of requests with known prices; null without any."
    )
    unpriced: Items[str] = Field(
        description="Targets with unknown prices, which are not in the cost."
    )
    workers: NonNegative = Field(description="Cases run at once.")
    seconds: float = Field(description="Approximate time of the run.")
    prices_as_of: str = Field(description="Date of the public price table.")
    targets: Items[TargetEstimate] = Field(description="Estimates per target, in plan order.")


class PlannedCase(Recorded):
    """A case that would run."""

    id: str = Field(description="Id of the case.")
    suite: str = Field(description="Eval file of the case.")
    path: str = Field(description="File of the case: its eval file, or the file of its row.")
    line: AtLeastOne = Field(description="First line of the case there.")
    target: str = Field(description="Name of the target that would answer.")
    trials: NonNegative = Field(
        description="Number of trials that would run; 0 if the case is skipped."
    )
    skip: str | None = Field(None, description="Why the case is skipped.")


class PlannedCases(Recorded):
    """What would run."""

    cases: Items[PlannedCase] = Field(description="Cases with trials to run, in plan order.")


class PlannedShard(Recorded):
    """A part of a plan for one machine."""

    shard: str = Field(description="The value of `eval --shard`, such as 2/4.")
    cases: NonNegative = Field(description="Number of cases.")
    trials: NonNegative = Field(description="Number of trials.")
    minutes: float = Field(description="Approximate time.")


class PlannedShards(Recorded):
    """How a plan is split for several machines."""

    shards: Items[PlannedShard] = Field(description="The parts, by index.")
    minutes: float = Field(description="Approximate time of the longest part.")
    basis: Literal["durations", "sizes"] = Field(
        description="What the times are based on: durations of an earlier run, or sizes of "
        "questions."
    )


class DiagnosticRecord(Recorded):
    """One diagnostic."""

    rule: Annotated[str, Field(pattern=r"^AV\d{3}$")] = Field(description="The rule's id.")
    severity: Literal["error", "warning"] = Field(
        description="Errors fail; warnings fail with --strict."
    )
    message: str = Field(description="What is wrong.")
    path: str = Field(description="The file's absolute path.")
    line: Annotated[int, Field(ge=1)] = Field(description="First line.")
    column: Annotated[int, Field(ge=1)] = Field(description="First column.")
    end_line: Annotated[int, Field(ge=1)] = Field(description="Last line.")
    end_column: Annotated[int, Field(ge=1)] = Field(description="Column after the last character.")
    pointer: str | None = Field(description="Path in the document, such as `evalcases[0].id`.")
    case: str | None = Field(description="The case's id.")
    target: str | None = Field(description="The target's name.")
    hint: str | None = Field(description="What to do.")


class FileRecord(Recorded):
    """One checked file."""

    path: str = Field(description="The file's absolute path.")
    kind: Literal["eval", "targets", "config", "judge-set", "quarantine", "experiment"] | None = (
        Field(description="Kind of the file.")
    )
    valid: bool = Field(description="Whether it has no errors (with --strict, no warnings either).")
    diagnostics: Items[DiagnosticRecord] = Field(
        description="Diagnostics in the order of the file."
    )


class DiagnosticsSummary(Recorded):
    """Counts over all files; `files` = `passed` + `failed`."""

    files: int = Field(description="Files checked.")
    passed: int = Field(description="Files without errors.")
    failed: int = Field(description="Files with errors.")
    skipped: int = Field(description="YAML files that are not agentv-ci documents.")
    errors: int = Field(description="Errors in all files.")
    warnings: int = Field(description="Warnings in all files.")


class DiagnosticsDocument(Recorded):
    """What `validate --format json` prints."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    files: Items[FileRecord] = Field(description="The checked files.")
    summary: DiagnosticsSummary = Field(description="Counts over all files.")

    @property
    def errors_first(self) -> list[DiagnosticRecord]:
        """The diagnostics of all files, errors before warnings."""
        diagnostics = chain.from_iterable(file.diagnostics for file in self.files)
        return sorted(diagnostics, key=lambda diagnostic: diagnostic.severity != "error")


HealthKind = Literal[
    "broken",
    "dead",
    "drifting-judge",
    "drifting-provider",
    "flaky",
    "model-changed",
    "saturated",
    "redundant",
    "slow",
    "expensive",
]
"""Kinds of findings, the most urgent first."""


class HealthFinding(Recorded):
    """What is wrong with a case for one target, or with a target."""

    kind: HealthKind = Field(description="Kind of finding.")
    severity: Severity = Field(
        description="`warning`: verdicts are not what they seem; `info`: worth a look."
    )
    suite: Name | None = Field(description="The eval file; null for a whole target.")
    id: Name | None = Field(description="The case's id; null for a whole target.")
    target: Name = Field(description="Name of the target.")
    message: str = Field(description="What was found.")
    action: str = Field(description="What to do.")
    runs: NonNegative = Field(
        description="Runs that it was found in: those since the case was changed last."
    )
    since: str | None = Field(
        None, description="Time of the first run with it: ISO 8601, UTC; null for all runs."
    )
    commit: str | None = Field(None, description="Commit of that run.")
    run_url: str | None = Field(None, description="Address of that run.")
    before: float | None = Field(None, description="Level before, such as a mean score.")
    after: float | None = Field(
        None, description="Level since then; of flaky cases, the pass rate."
    )
    fell_from: float | None = Field(
        None, description="Mean score before the first fall; null if it is back there."
    )
    model_before: str | None = Field(None, description="Model that the provider reported before.")
    model_after: str | None = Field(None, description="Model that it reported since then.")
    same_as: Items[Name] = Field((), description="Ids of cases with the same verdicts.")


class HealthReport(Recorded):
    """What `history health --format json` prints."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    source: str = Field(description="Branch and commit, or folder, of the ledger.")
    runs: NonNegative = Field(description="Runs that were read.")
    first: str | None = Field(description="Time of the oldest of them.")
    last: str | None = Field(description="Time of the newest.")
    cases: NonNegative = Field(description="Cases of the newest runs, counted for each target.")
    unjudged: NonNegative = Field(
        description="Cases with too few runs since they were changed last."
    )
    false_alarms: Share = Field(
        description="Highest probability that any drift in this report is chance."
    )
    trial_correlation: Share | None = Field(
        None,
        description="Correlation of trials of the same case and run, across runs; null if too few "
        "show it.",
    )
    findings: Items[HealthFinding] = Field(description="The findings, the most urgent first.")
    damaged: Items[str] = Field(
        description="Files and lines of the ledger that are not used, and why."
    )


class PlannedTrials(Recorded):
    """A number of trials, and what they show and take."""

    trials_per_case: NonNegative = Field(description="Trials of each case in each arm.")
    trials: NonNegative = Field(description="Trials of all cases and arms.")
    detectable: float | None = Field(description="Smallest change that is found; null: none.")
    cost_usd: float | None = Field(
        description="Approximate cost; null if it is unknown or nothing is charged."
    )
    seconds: float | None = Field(description="Approximate time; null if it is unknown.")


class PowerTable(Recorded):
    """What an experiment can find."""

    metric: str = Field(description="The primary metric.")
    is_share: bool = Field(description="Whether changes are shares, as of costs, or differences.")
    alpha: Share = Field(
        description="Chance of a wrong verdict on the metric, as its part of that of all metrics."
    )
    power: Share = Field(description="Chance to find such a change.")
    cases: NonNegative = Field(description="Cases, or clusters of them.")
    arms: NonNegative = Field(description="Number of arms.")
    stops_early: bool = Field(
        description="Whether the experiment may stop early, which few trials more pay for."
    )
    basis: str = Field(description="What the variance is taken from.")
    detect: float = Field(description="The change that the experiment is made to find.")
    needed: NonNegative | None = Field(
        description="Trials per case that find it; null: no number of them."
    )
    planned: NonNegative | None = Field(
        description="Trials per case that are planned; null without an experiment."
    )
    rows: Items[PlannedTrials] = Field(description="Numbers of trials, in order.")
