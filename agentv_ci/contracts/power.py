"""The output of `compile --power`: how many trials show which change."""

from __future__ import annotations

from pydantic import Field

from agentv_ci.contracts.base import Items, NonNegative, Recorded, Share


class PlannedTrials(Recorded):
    """A number of trials, and what they show and take."""

    trials_per_case: NonNegative = Field(description="Trials of each case in each arm.")
    trials: NonNegative = Field(description="Trials of all cases and arms.")
    detectable: float | None = Field(description="Smallest change that is found; null: none.")
    cost_usd: float | None = Field(description="Approximate cost; null if it is unknown or nothing is charged.")
    seconds: float | None = Field(description="Approximate time; null if it is unknown.")


class PowerTable(Recorded):
    """What an experiment can find."""

    metric: str = Field(description="The primary metric.")
    is_share: bool = Field(description="Whether changes are shares, as of costs, or differences.")
    alpha: Share = Field(description="Chance of a wrong verdict on the metric, as its part of that of all metrics.")
    power: Share = Field(description="Chance to find such a change.")
    cases: NonNegative = Field(description="Cases, or clusters of them.")
    arms: NonNegative = Field(description="Number of arms.")
    stops_early: bool = Field(description="Whether the experiment may stop early, which few trials more pay for.")
    basis: str = Field(description="What the variance is taken from.")
    detect: float = Field(description="The change that the experiment is made to find.")
    needed: NonNegative | None = Field(description="Trials per case that find it; null: no number of them.")
    planned: NonNegative | None = Field(description="Trials per case that are planned; null without an experiment.")
    rows: Items[PlannedTrials] = Field(description="Numbers of trials, in order.")
