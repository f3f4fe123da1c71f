"""The output of `compile --diff`, `compile --estimate`, `--list` and `shards`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, NonNegative, Recorded, Records


class NamedCase(Recorded):
    """A case of one of the plans."""

    id: str = Field(description="Id of the case.")
    suite: str = Field(description="Eval file of the case.")
    target: str | None = Field(None, description="Name of the target; null if only one answers the case.")
    row: str | None = Field(None, description="File and line of the row that makes the case; null without one.")


class ChangedCase(NamedCase):
    """A case of both plans whose result may have changed."""

    reasons: Records[str] = Field(description="What changed that can affect the result; never empty.")


class PlanDiff(Recorded):
    """Differences from an older plan; unchanged cases are not listed."""

    added: Records[NamedCase] = Field(description="Cases only in the newer plan.")
    removed: Records[NamedCase] = Field(description="Cases only in the older plan.")
    changed: Records[ChangedCase] = Field(description="Cases in both plans with different digests.")


class TargetEstimate(Recorded):
    """The estimated use of one target."""

    target: str = Field(description="Key of the target in the plan.")
    provider: str = Field(description="Provider of the target.")
    model: str | None = Field(description="Model, if the targets file sets it.")
    answers: NonNegative = Field(description="Requests for answers.")
    judgements: NonNegative = Field(description="Requests for judgements.")
    input_tokens: NonNegative = Field(description="Approximate input tokens.")
    output_tokens: NonNegative = Field(description="Approximate output tokens.")
    cost_usd: float | None = Field(description="Cost; null if the price is unknown or nothing is charged.")
    seconds: float = Field(description="Total time of its requests.")


class Estimate(Recorded):
    """The estimated use of a run, without retries and with all trials."""

    cases: NonNegative = Field(description="Number of cases.")
    trials: NonNegative = Field(description="Number of trials.")
    requests: NonNegative = Field(description="Requests for answers and judgements.")
    input_tokens: NonNegative = Field(description="Approximate input tokens.")
    output_tokens: NonNegative = Field(description="Approximate output tokens.")
    cost_usd: float | None = Field(description="Cost of requests with known prices; null without any.")
    unpriced: Records[str] = Field(description="Targets with unknown prices, which are not in the cost.")
    workers: NonNegative = Field(description="Cases run at once.")
    seconds: float = Field(description="Approximate time of the run.")
    prices_as_of: str = Field(description="Date of the public price table.")
    targets: Records[TargetEstimate] = Field(description="Estimates per target, in plan order.")


class PlannedCase(Recorded):
    """A case that would run."""

    id: str = Field(description="Id of the case.")
    suite: str = Field(description="Eval file of the case.")
    path: str = Field(description="File of the case: its eval file, or the file of its row.")
    line: AtLeastOne = Field(description="First line of the case there.")
    target: str = Field(description="Name of the target that would answer.")
    trials: NonNegative = Field(description="Number of trials that would run; 0 if the case is skipped.")
    skip: str | None = Field(None, description="Why the case is skipped.")


class PlannedCases(Recorded):
    """What would run."""

    cases: Records[PlannedCase] = Field(description="Cases with trials to run, in plan order.")


class PlannedShard(Recorded):
    """A part of a plan for one machine."""

    shard: str = Field(description="The value of `eval --shard`, such as 2/4.")
    cases: NonNegative = Field(description="Number of cases.")
    trials: NonNegative = Field(description="Number of trials.")
    minutes: float = Field(description="Approximate time.")


class PlannedShards(Recorded):
    """How a plan is split for several machines."""

    shards: Records[PlannedShard] = Field(description="The parts, by index.")
    minutes: float = Field(description="Approximate time of the longest part.")
    basis: Literal["durations", "sizes"] = Field(
        description="What the times are based on: durations of an earlier run, or sizes of questions."
    )
