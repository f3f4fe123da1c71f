"""The run report: what a whole run came to. It lies beside the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Recorded, Share
from agentv_ci.contracts.plan import Sha256
from agentv_ci.contracts.results import Dollars, UsageRecord


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


class GateSettings(Recorded):
    """The thresholds that were applied."""

    suite: str = Field(description="The eval file.")
    cases: int = Field(description="Its cases in this run.")
    min_pass_rate: Share = Field(1.0, description="Least share of graded cases that pass.")
    min_mean_score: Share | None = Field(None, description="Least mean score.")
    max_errors: int = Field(0, description="Most errors.")
    max_cost_usd: Dollars | None = Field(None, description="Most the suite may cost, judges included.")


class GateResult(Recorded):
    """Whether the run passed, and why not."""

    verdict: Literal["pass", "fail", "error", "budget", "interrupted", "nothing", "dry-run"] = Field(
        description="The gate's word."
    )
    exit_code: Annotated[int, Field(ge=0, le=255)] = Field(
        description="What the command ends with; that of a shard leaves quality to the whole."
    )
    reasons: Items[str] = Field(description="What was not reached.")
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
    usage: UsageRecord = Field(description="Tokens of answers and judges.")
    cost_usd: Dollars | None = Field(description="Cost of answers and judges, as far as it is known.")
    unpriced_models: Items[str] = Field(description="Models whose price nobody knows: the cost lacks them.")
    concurrency: Items[ConcurrencyChange] = Field(description="Changes of how many questions were asked at once.")
    write_error: str | None = Field(None, description="Why results are missing from the file.")
