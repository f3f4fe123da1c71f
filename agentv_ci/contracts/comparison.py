"""Comparisons of two runs, and baselines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import GradedVerdict, Items, Name, Recorded, Share, Verdict
from agentv_ci.contracts.case_key import CaseKey
from agentv_ci.contracts.plan import Sha256

BASELINE_SCHEMA = "agentv-baseline-v1"

Change = Literal["regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"]


class Rate(Recorded):
    """Pass rate of a case on one side."""

    verdict: Verdict = Field(description="Verdict of the case.")
    passed: int = Field(description="Trials that passed.")
    graded: int = Field(description="Trials with a verdict.")
    mean: float | None = Field(description="Mean score of the graded trials.")


class OfCase(Recorded):
    """Figures of a case."""

    suite: str = Field(description="The eval file.")
    id: str = Field(description="The case's id.")
    target: str = Field(description="Name of the target; in a comparison, of the newer side.")

    @property
    def key(self) -> CaseKey:
        """The key of the case in a run."""
        return self.suite, self.id, self.target


class ComparedCase(OfCase):
    """A case of both sides or of one of them."""

    change: Change = Field(description="How the case changed.")
    base: Rate | None = Field(None, description="Pass rate on the older side.")
    head: Rate | None = Field(None, description="Pass rate on the newer side.")
    low: float | None = Field(None, description="Lower bound of the change of its pass rate.")
    high: float | None = Field(None, description="Upper bound.")
    single: bool = Field(False, description="Whether each side has only one trial, so the change may be noise.")
    stale: bool = Field(False, description="Whether the case or its target changed, by its digest.")


class Figure(Recorded):
    """A figure over all cases graded on both sides, and the significance of its change."""

    base: float = Field(description="Before.")
    head: float = Field(description="Now.")
    p_value: Share = Field(description="Probability of a change this large by chance (two-sided).")
    falls: bool = Field(description="Whether it drops significantly.")
    detectable: float | None = Field(description="Approximate smallest significant drop; null if none or unknown.")


class Comparison(Recorded):
    """One run against another."""

    base: str = Field(description="The older side.")
    head: str = Field(description="The newer side.")
    confidence: Share = Field(description="Confidence of the intervals per case.")
    is_part: bool = Field(description="Whether the newer side has only some of the cases: a filter or a shard.")
    by_target: bool = Field(
        False, description="Whether each target is compared with itself, because several answer the same case."
    )
    compared: int = Field(description="Cases graded on both sides.")
    lost: int = Field(description="Cases that lost their verdict.")
    quarantined: int = Field(0, description="Cases of the newer side in quarantine, which are not compared.")
    counts: dict[Change, int] = Field(description="Change → number of cases.")
    pass_rate: Figure | None = Field(description="Share of cases that pass (exact McNemar test).")
    mean_score: Figure | None = Field(description="Mean of the cases' scores (Wilcoxon's signed-rank test).")
    warnings: Items[str] = Field(description="Reasons not to trust the older side.")
    reasons: Items[str] = Field(description="Why this is a regression; empty otherwise.")
    cases: Items[ComparedCase] = Field(description="All cases except unchanged ones, worst first.")

    @property
    def shares_cases(self) -> bool:
        """Whether any case is on both sides."""
        return any(number for change, number in self.counts.items() if change not in ("new", "removed"))


TrialNumber = Annotated[int, Field(ge=1)]


class BaselineCase(OfCase):
    """A case and the results of its trials."""

    id: Name = Field(description="The case's id.")
    target: str = Field(description="The target's name.")
    verdict: GradedVerdict = Field(description="Verdict of the case.")
    mean: Share = Field(description="Mean score of its graded trials.")
    passed: Items[TrialNumber] = Field(description="Numbers of the trials that passed, from 1.")
    missed: Items[TrialNumber] = Field(description="Numbers of the graded trials that did not pass.")
    digest: Sha256 = Field(description="The case's digest in its plan.")


class BaselineDocument(Recorded):
    """A run to compare with."""

    schema_: str = Field(alias="$schema", description=f"`{BASELINE_SCHEMA}` or the schema's $id.")
    measured: str = Field(description="Time of the last answer: ISO 8601, UTC.")
    plan_digest: Sha256 | None = Field(description="Digest of the plan; null for several plans.")
    cases: Items[BaselineCase] = Field(min_length=1, description="The cases, by suite and position.")
