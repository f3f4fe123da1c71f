"""The run report: what a whole run came to. It lies beside the results."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Recorded, Share
from agentv_ci.contracts.plan import Sha256
from agentv_ci.contracts.results import UsageRecord


class Counts(Recorded):
    """Cases by verdict; rows are trials."""

    cases: int = Field(description="Cases of the plan.")
    passed: int = Field(description="Cases that passed.")
    failed: int = Field(description="Cases that did not (borderline counts here).")
    errored: int = Field(description="Cases without a verdict.")
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
    min_pass_rate: Share = Field(description="Least share of graded cases that pass.")
    min_mean_score: Share | None = Field(description="Least mean score.")
    max_errors: int = Field(description="Most errors.")


class GateResult(Recorded):
    """Whether the run passed, and why not."""

    verdict: Literal["pass", "fail", "error", "nothing", "dry-run"] = Field(description="The gate's word.")
    exit_code: Annotated[int, Field(ge=0, le=255)] = Field(description="What the command ends with.")
    reasons: Items[str] = Field(description="What was not reached.")
    settings: Items[GateSettings] = Field(description="The thresholds, per suite.")


class RunReport(Recorded):
    """What a run came to."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    plan_digest: Sha256 = Field(description="The plan that ran.")
    dry_run: bool = Field(description="Whether the mock answered in place of the targets.")
    counts: Counts = Field(description="Cases by verdict.")
    statistics: Statistics = Field(description="Scores of graded cases.")
    gate: GateResult = Field(description="Whether the run passed.")
    usage: UsageRecord = Field(description="Tokens of answers and judges.")
    write_error: str | None = Field(None, description="Why results are missing from the file.")
