"""Two runs side by side, and the baseline: what is kept of a run for later ones to be compared with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import GradedVerdict, Items, Name, Recorded, Share, Verdict
from agentv_ci.contracts.plan import Sha256

BASELINE_SCHEMA = "agentv-baseline-v1"

Change = Literal["regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"]


class Rate(Recorded):
    """How often a case passed on one side."""

    verdict: Verdict = Field(description="The case's.")
    passed: int = Field(description="Trials that passed.")
    graded: int = Field(description="Trials with a verdict.")
    mean: float | None = Field(description="Mean score of those.")


class ComparedCase(Recorded):
    """A case on both sides, or on the one that has it."""

    suite: str = Field(description="The eval file.")
    id: str = Field(description="The case's id.")
    target: str = Field(description="The target's name, on the newer side where both have one.")
    change: Change = Field(description="What became of it.")
    base: Rate | None = Field(None, description="How often it passed.")
    head: Rate | None = Field(None, description="How often it passes.")
    low: float | None = Field(None, description="Lower end of the interval of the change of its pass rate.")
    high: float | None = Field(None, description="Upper end.")
    single: bool = Field(False, description="Whether one trial a side is all there is: it may be noise.")
    stale: bool = Field(False, description="Whether the case itself, or its target, has another digest than before.")

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies it among all cases of a run."""
        return self.suite, self.id, self.target


class Figure(Recorded):
    """A figure over all cases that both sides have graded, and whether its change is more than chance."""

    base: float = Field(description="Before.")
    head: float = Field(description="Now.")
    p_value: Share = Field(description="How likely so large a change, either way, is by chance.")
    falls: bool = Field(description="Whether it falls by more than chance explains.")
    detectable: float | None = Field(
        description="About the smallest drop that would have counted; null when none would have, or nobody can say."
    )


class Comparison(Recorded):
    """One run against another."""

    base: str = Field(description="The older side.")
    head: str = Field(description="The newer side.")
    confidence: Share = Field(description="Of the intervals, case by case.")
    is_part: bool = Field(description="Whether the newer side has only some of the cases, by a filter or as a shard.")
    compared: int = Field(description="Cases that both sides have graded.")
    lost: int = Field(description="Cases that had a verdict and have none now.")
    counts: dict[str, int] = Field(description="Change → cases.")
    pass_rate: Figure | None = Field(description="Share of cases that pass (exact McNemar test).")
    mean_score: Figure | None = Field(description="Mean of the cases' scores (Wilcoxon's signed-rank test).")
    warnings: Items[str] = Field(description="What makes the older side a poor yardstick.")
    reasons: Items[str] = Field(description="Why this is a regression; empty when it is none.")
    cases: Items[ComparedCase] = Field(description="All cases but the unchanged ones, worst first.")

    @property
    def shares_cases(self) -> bool:
        """Whether any case is on both sides."""
        return any(number for change, number in self.counts.items() if change not in ("new", "removed"))


TrialNumber = Annotated[int, Field(ge=1)]


class BaselineCase(Recorded):
    """A case, and what its trials came to."""

    suite: str = Field(description="The eval file.")
    id: Name = Field(description="The case's id.")
    target: str = Field(description="The target's name.")
    verdict: GradedVerdict = Field(description="The case's.")
    mean: Share = Field(description="Mean score of its graded trials.")
    passed: Items[TrialNumber] = Field(description="Trials that passed, from 1.")
    missed: Items[TrialNumber] = Field(description="Graded trials that did not.")
    digest: Sha256 = Field(description="The case's digest in its plan.")


class BaselineDocument(Recorded):
    """A run to compare with."""

    schema_: str = Field(alias="$schema", description=f"`{BASELINE_SCHEMA}`, or the published schema's $id.")
    measured: str = Field(description="When the last of these answers was had: ISO 8601, UTC.")
    plan_digest: Sha256 | None = Field(description="The plan that ran; null when several did.")
    cases: Items[BaselineCase] = Field(min_length=1, description="The cases, by suite and place.")
