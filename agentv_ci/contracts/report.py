"""The run report: the JSON file beside the results."""

from operator import not_
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Struct
from pydantic import Field

from agentv_ci.contracts.base import Items, JsonObject, Name, Recorded, Resolved, Share, Verdict
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.diagnostics import SEVERITIES_WORST_FIRST, Severity
from agentv_ci.contracts.gate import Increases, WhenUndecided
from agentv_ci.contracts.plan_parts import Sha256
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.contracts.results import Dollars, OfCase, Usage, is_none, is_zero, sum_of_known

if TYPE_CHECKING:
    from agentv_ci.contracts.against_base import AgainstBase
    from agentv_ci.contracts.comparison import Comparison
    from agentv_ci.contracts.experiment_report import ExperimentReport
else:
    AgainstBase = Annotated[Recorded, Resolved("against_base:AgainstBase")]
    Comparison = Annotated[Recorded, Resolved("comparison:Comparison")]
    ExperimentReport = Annotated[Recorded, Resolved("experiment_report:ExperimentReport")]

COST_OF_SUCCESS = "Known cost, judges included, for each case that passed; absent if none did."


class Counts(Recorded):
    """Numbers of cases by verdict, and of trials."""

    cases: int = Field(description="Cases of the plan.")
    passed: int = Field(description="Cases that passed.")
    failed: int = Field(description="Cases that failed, including borderline ones.")
    errored: int = Field(description="Cases that ran and have no verdict.")
    not_run: int = Field(description="Cases that a stopped run did not begin.")
    skipped: int = Field(0, description="Cases that are skipped.")
    quarantined: int = Field(
        0, description="Cases that ran in quarantine, which no other number counts."
    )
    flaky: int = Field(description="Cases whose trials disagree.")
    rows: int = Field(description="Trials, and one row for each skipped case.")
    crashed: int = Field(0, description="Trials that crashed, which count as failed.")
    cached: int = Field(0, description="Trials whose answer comes from the cache or a recording.")


class Statistics(Recorded):
    """Statistics of the scores of graded cases."""

    mean: float | None = Field(description="Mean score; null without graded cases.")
    median: float | None = Field(description="Median score.")
    min: float | None = Field(description="Lowest score.")
    max: float | None = Field(description="Highest score.")
    stdev: float | None = Field(description="Population standard deviation.")
    histogram: Annotated[Items[Annotated[int, Field(ge=0)]], Field(min_length=5, max_length=5)] = (
        Field(description="Cases in [0,.2) [.2,.4) [.4,.6) [.6,.8) [.8,1].")
    )


class CaseFigures(Recorded):
    """The cases that have something in common."""

    name: str = Field(description="Path of the suite, or name of the target or tag.")
    cases: int = Field(description="Number of cases.")
    passed: int = Field(description="Cases that passed.")
    failed: int = Field(description="Cases that failed, including borderline ones.")
    errored: int = Field(description="Cases that ran and have no verdict.")
    not_run: int = Field(0, description="Cases that a stopped run did not begin.")
    skipped: int = Field(0, description="Cases that are skipped.")
    quarantined: int = Field(
        0, description="Cases that ran in quarantine, which no other number counts."
    )
    flaky: int = Field(description="Cases whose trials disagree.")
    crashed: int = Field(0, description="Trials that crashed, which count as failed.")
    mean: float | None = Field(description="Mean score of graded cases.")

    @property
    def counting(self) -> int:
        """Cases that may pass or not: neither skipped nor in quarantine."""
        return self.cases - self.skipped - self.quarantined


class TagFigures(CaseFigures):
    """The cases with one tag."""


class Group(CaseFigures):
    """The cases of one suite, or of one target."""

    usage: Usage = Field(description="Tokens of answers.")
    judge_usage: Usage = Field(description="Tokens of judges.")
    cost_usd: Dollars | None = Field(description="Known cost of answers.")
    judge_cost_usd: Dollars | None = Field(description="Known cost of judges.")
    duration_s: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Seconds that answers took, one after the other; null if unknown."
    )

    cost_per_pass_usd: Dollars | None = Field(None, exclude_if=is_none, description=COST_OF_SUCCESS)
    lacks_costs: bool = Field(
        False,
        exclude_if=not_,
        description="Whether costs are missing because their price is unknown or not reported.",
    )

    @property
    def total_usd(self) -> float | None:
        """Known cost of answers and judges."""
        return sum_of_known(self.cost_usd, self.judge_cost_usd)


class EvaluatorFigures(Recorded):
    """Results of evaluators with one name and type over all trials."""

    name: str = Field(description="Name of the evaluators.")
    type: str = Field(description="Type of the evaluators.")
    scored: int = Field(description="Scored answers.")
    passed: int = Field(description="Scored answers that passed.")
    errors: int = Field(description="Answers that could not be scored.")
    skipped: int = Field(description="Answers without the measured value.")
    mean: float | None = Field(description="Mean score.")


class ValidatorSettings(Recorded):
    """A validator with its settings."""

    key: Name = Field(description="Name of the validator.")
    context: JsonObject = Field(default_factory=dict, description="Settings of the validator.")


class GateSettings(Recorded):
    """The thresholds applied to a suite."""

    suite: str = Field(description="The eval file.")
    cases: int = Field(description="Cases of the suite in this run.")
    min_pass_rate: Share = Field(1.0, description="Minimum share of graded cases that pass.")
    min_mean_score: Share | None = Field(None, description="Minimum mean score.")
    max_errors: int = Field(0, description="Maximum number of errors.")
    max_cost_usd: Dollars | None = Field(
        None, description="Maximum cost of the suite, including judges."
    )
    max_increases: Increases | None = Field(
        None,
        exclude_if=is_none,
        description="Metric → maximum increase against a baseline, as a share.",
    )
    undecided: WhenUndecided | None = Field(
        None,
        exclude_if=is_none,
        description="What an undecided comparison counts as; null: neither.",
    )
    validators: Items[ValidatorSettings] = Field(
        (), description="Validators that check the finished run."
    )
    validator_errors: Literal["error", "warn"] = Field(
        "error", description="Whether validator errors fail the gate."
    )
    seeds: Items[int] = Field((), description="Seeds of the trials, for validators.")


class ValidatorIssue(Recorded):
    """An issue found by a validator."""

    id: str = Field(description="Kind of issue.")
    severity: Severity = Field(description="Severity of the issue.")
    message: str = Field(description="Description of the issue.")
    path: Items[str] | None = Field(None, description="Path in the scenario report.")


class Validation(Recorded):
    """The result of a validator."""

    validator: str = Field(description="Name of the validator.")
    issues: Items[ValidatorIssue] = Field(description="Issues found.")
    summary: JsonObject = Field(description="Summary of the issues.")

    @property
    def errors(self) -> tuple[str, ...]:
        """Messages of the errors; only the first ones if there are many."""
        return tuple(issue.message for issue in self.issues if issue.severity == "error")

    @property
    def worst_first(self) -> list[ValidatorIssue]:
        """The issues, worst first."""
        return sorted(self.issues, key=lambda issue: SEVERITIES_WORST_FIRST.index(issue.severity))

    def count(self, severity: Severity) -> int:
        """Return the number of issues, including those that are not listed."""
        by_severity = self.summary.get("by_severity")
        counted = by_severity.get(severity) if isinstance(by_severity, dict) else None
        listed = sum(issue.severity == severity for issue in self.issues)
        return max(counted, listed) if isinstance(counted, int) else listed


class FailedValidation(Recorded):
    """A validator that failed to run."""

    validator: str = Field(description="Name of the validator.")
    error: str = Field(description="Error message.")


class ScenarioAggregates(Recorded):
    """Aggregates of the runs of a scenario."""

    runs: int = Field(description="Number of runs.")
    errors: int = Field(description="Runs without an answer.")
    validations: Items[Validation | FailedValidation] = Field(description="Results of validators.")


class ScenarioReport(Recorded):
    """The report of a suite, without its runs."""

    scenario_key: str = Field(description="Path of the suite.")
    aggregates: ScenarioAggregates = Field(description="Aggregates of its runs.")


class RepeatedCase(OfCase):
    """Statistics of a case with several trials."""

    verdict: Verdict = Field(description="Verdict of the case.")
    flaky: bool = Field(description="Whether graded trials disagree.")
    trials: int = Field(description="Trials that ran.")
    graded: int = Field(
        description="Trials with a verdict, and crashed ones, which count as failed."
    )
    crashed: int = Field(0, description="Trials that crashed.")
    passed: int = Field(description="Trials that passed.")
    mean: float = Field(description="Mean score of graded trials.")
    pass_rate_low: Share = Field(description="Lower bound of the pass rate (95% Wilson interval).")
    pass_rate_high: Share = Field(description="Upper bound of the pass rate.")
    pass_at_k: Items[Share] = Field(
        description="For k = 1 to at most 20: chance that at least one of k trials passes."
    )
    pass_hat_k: Items[Share] = Field(
        description="For k = 1 to at most 20: chance that all k trials pass."
    )


GateVerdict = Literal[
    "pass", "fail", "error", "budget", "interrupted", "nothing", "dry-run", "undecided"
]

GateReasonKind = Literal[
    "pass-rate",
    "mean-score",
    "errors",
    "nothing-graded",
    "validator",
    "regression",
    "undecided",
    "withheld",
    "unmeasured",
    "experiment",
    "cost",
    "unpriced",
    "stopped",
    "missing-cases",
    "incomplete",
    "unrecorded",
    "write-error",
    "nothing-ran",
]


class GateReason(Recorded):
    """A reason why the gate failed."""

    kind: GateReasonKind = Field(description="Kind of reason.")
    suite: str | None = Field(description="The eval file; null for the whole run.")
    target: str | None = Field(
        None, description="The target of a matrix that fails alone; null for all targets."
    )
    message: str = Field(description="Description of the reason.")


class GateResult(Recorded):
    """The decision of the gate, with its reasons."""

    verdict: GateVerdict = Field(description="Verdict of the gate.")
    exit_code: Annotated[int, Field(ge=0, le=255)] = Field(
        description="Exit code of the command; for a shard, thresholds of quality are not applied."
    )
    reasons: Items[str] = Field(description="Why the gate failed.")
    causes: Items[GateReason] = Field((), description="The reasons with their kind and suite.")
    targets: dict[str, GateVerdict] = Field(
        default_factory=dict,
        description="Target of a matrix → its verdict alone; empty without a matrix.",
    )
    settings: Items[GateSettings] = Field(description="Thresholds per suite.")
    max_cost_usd: Dollars | None = Field(
        None, description="Maximum cost of the whole run (`--max-cost`)."
    )


class ShardRecord(Recorded):
    """The shard of a plan that ran."""

    index: Annotated[int, Field(ge=1)] = Field(description="Number of the shard, from 1.")
    total: Annotated[int, Field(ge=1)] = Field(description="Number of shards.")
    cases: Annotated[int, Field(ge=0)] = Field(description="Cases of the whole plan.")


class GuidelineText(Recorded):
    """A guideline that agents got."""

    path: str = Field(description="The file, relative to the repository.")
    text: str = Field(description="Its text.")


class RunOrigin(Recorded):
    """What ran; null where merged results differ."""

    command: str | None = Field(None, description="The command.")
    version: str | None = Field(None, description="Version of agentv-ci.")
    commit: str | None = Field(
        None, description="Commit of the repository; `-dirty` if its files had changed."
    )


class ConcurrencyChange(Recorded):
    """A change of the concurrent requests to a target."""

    at: str = Field(description="Time: ISO 8601, UTC.")
    target: str = Field(description="The target's name.")
    before: int = Field(description="Concurrent requests before.")
    after: int = Field(description="Concurrent requests after.")
    held_s: float = Field(description="Seconds without requests, as the server requested.")
    reason: str = Field(description="Reason for the change.")


Stop = Literal["decided", "fail-fast", "budget", "interrupted"]
"""Why a run ended early."""


class Ending(Struct, frozen=True):
    """How a run ended."""

    dry_run: bool = False
    write_error: str | None = None
    """Why rows are missing from the file."""
    stopped: Stop | None = None
    incomplete: tuple[str, ...] = ()
    """Problems of merged results."""
    unrecorded: int = 0
    """Requests of a replay without a recording."""
    replayed: bool = False
    """Whether answers come from recordings."""
    again: tuple[str, ...] = ()
    """Options for running a case again."""
    filtered: bool = False
    """Whether only some cases of the documents were selected."""
    rescored: bool = False
    """Whether the answers are those of an earlier run."""
    shard: ShardRecord | None = None
    max_cost_usd: float | None = None
    """Maximum cost of the whole run."""
    unpriced_models: tuple[str, ...] = ()
    concurrency: tuple[ConcurrencyChange, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()
    """Which cases do not gate."""
    against_base: AgainstBase | None = None
    """What a change does to its own test."""
    duration_s: float | None = None
    origin: RunOrigin | None = None
    experiment: ExperimentReport | None = None
    """The result of the experiment, if it is one."""

    @property
    def leaves_cases(self) -> bool:
        """Whether cases without rows did not run; otherwise their rows are lost."""
        return self.stopped is not None and self.write_error is None


class RunReport(Recorded):
    """The report of a run."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    plan_digest: Sha256 | None = Field(
        description="Digest of the plan; null for results of several plans."
    )
    shard: ShardRecord | None = Field(description="The shard that ran; null for the whole plan.")
    stopped: Stop | None = Field(None, description="Why the run ended early.")
    incomplete: Items[str] = Field(
        (), description="Problems of merged results: missing, duplicate or unknown cases."
    )
    unrecorded: int = Field(0, description="Requests of a replay without a recording.")
    replayed: bool = Field(False, description="Whether answers come from recordings (`--replay`).")
    again: Items[str] = Field(
        (), description="Options that matter when a case is run again, such as `--repeat=3`."
    )
    filtered: bool = Field(
        False, description="Whether only some cases of the documents were selected."
    )
    rescored: bool = Field(
        False,
        exclude_if=not_,
        description="Whether answers of an earlier run were scored again; absent otherwise.",
    )
    dry_run: bool = Field(description="Whether mock answers replaced those of the targets.")
    counts: Counts = Field(description="Cases by verdict.")
    statistics: Statistics = Field(description="Statistics of scores.")
    gate: GateResult = Field(description="Decision of the gate.")
    suites: Items[Group] = Field((), description="Results by eval file.")
    targets: Items[Group] = Field((), description="Results by target that answers.")
    tags: Items[TagFigures] = Field((), description="Results by tag.")
    evaluators: Items[EvaluatorFigures] = Field((), description="Results by evaluator.")
    repeated: Items[RepeatedCase] = Field((), description="Cases with several trials.")
    quarantine: Items[Quarantine] = Field((), description="The quarantine of cases of this run.")
    comparison: Comparison | None = Field(
        None, description="Comparison with the baseline (`--baseline`)."
    )
    against_base: AgainstBase | None = Field(
        None,
        exclude_if=is_none,
        description="What a change does to its own test; absent if it is not of a change.",
    )
    experiment: ExperimentReport | None = Field(
        None, exclude_if=is_none, description="Result of the experiment; absent without one."
    )
    scenario_reports: Items[ScenarioReport] = Field(
        (), description="Results of validators by suite."
    )
    usage: Usage = Field(description="Tokens of answers and judges.")
    cost_usd: Dollars | None = Field(description="Known cost of answers and judges.")
    cost_per_pass_usd: Dollars | None = Field(None, exclude_if=is_none, description=COST_OF_SUCCESS)
    unpriced_models: Items[str] = Field(
        description="Models with unknown prices, which are not in the cost."
    )
    cut_answers: dict[str, int] | None = Field(
        None,
        exclude_if=is_none,
        description="Finish reason → answers that may not be whole because of it; absent without "
        "any.",
    )
    broken_contracts: int = Field(
        0,
        exclude_if=is_zero,
        description="Results of judges whose replies contradicted themselves or left their scale; "
        "absent without any.",
    )
    compared_masked: int = Field(
        0,
        exclude_if=is_zero,
        description="Trials whose answer was compared with a secret masked in it; absent without "
        "any.",
    )
    concurrency: Items[ConcurrencyChange] = Field(description="Changes of concurrent requests.")
    guidelines: Items[GuidelineText] = Field((), description="Guidelines of the cases.")
    origin: RunOrigin | None = Field(None, description="Command, version and commit of the run.")
    write_error: str | None = Field(None, description="Why results are missing from the file.")
    duration_s: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Seconds the run took; of merged shards, the longest."
    )

    @property
    def part_of(self) -> str | None:
        """Why this is not a run of all cases as their documents are; None if it is one."""
        if self.experiment is not None:
            return "it is an experiment"
        if self.filtered:
            return "only some cases were selected"
        if self.rescored:
            return "its answers were scored again"
        return None

    @property
    def leaves_cases(self) -> bool:
        """Whether cases without rows did not run; otherwise their rows are lost."""
        return self.stopped is not None and self.write_error is None


def quarantine_of(entries: tuple[Quarantine, ...], key: CaseKey) -> Quarantine | None:
    """Return the entry that takes a case out of the gate, the first one; None if the case gates."""
    return next((each for each in entries if each.covers(key)), None)
