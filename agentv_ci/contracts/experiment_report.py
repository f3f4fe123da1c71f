"""The report of an experiment: its verdict, and the effects that it follows from."""

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Name, Recorded, Share
from agentv_ci.contracts.results import is_none

MetricVerdict = Literal["better", "worse", "equivalent", "not worse", "undecided"]
"""Of one metric: `not worse` is by less than the margin, and possibly better."""
ExperimentVerdict = Literal["better", "worse", "equivalent", "not worse", "undecided", "withheld"]

DRY_RUN = "dry run: no target was asked"
"""Why the verdict of a dry run is withheld."""

Count = Annotated[int, Field(ge=0)]


class ArmFigures(Recorded):
    """What one arm did."""

    name: Name = Field(description="Name of the arm.")
    targets: Items[str] = Field(description="Targets that answered.")
    models: Items[str] = Field(description="Models that answered, as reported by the providers.")
    trials: Count = Field(
        description="Trials with a verdict, and crashed ones, which count as failed."
    )
    errors: Count = Field(description="Trials without a verdict by an error of the infrastructure.")
    crashed: Count = Field(0, description="Trials that crashed.")
    means: dict[str, float] = Field(
        description="Metric → its mean over the trials that measured it."
    )


class PreferenceCounts(Recorded):
    """What a judge prefers over all pairs of answers, each shown in both orders."""

    wins: Count = Field(
        description="Pairs in which the answer of the arm is better in both orders."
    )
    ties: Count = Field(description="Pairs without a better answer, contradictions included.")
    losses: Count = Field(
        description="Pairs in which the answer of the base is better in both orders."
    )
    contradictions: Count = Field(description="Pairs in which the order decided.")
    first: Count = Field(description="Choices of the answer that was shown first.")
    second: Count = Field(
        description="Choices of the answer that was shown second; without bias, as many."
    )
    unjudged: Count = Field(
        description="Pairs that the judge could not compare, which count nowhere."
    )


class MetricEffect(Recorded):
    """The change of one metric from the base to another arm."""

    arm: Name = Field(description="The arm.")
    metric: Name = Field(description="The metric.")
    primary: bool = Field(description="Whether the metric decides.")
    scale: Literal["difference", "ratio"] = Field(
        description="Whether a change is a difference or a share."
    )
    higher_is_better: bool = Field(description="Whether a rise is an improvement.")
    margin: float | None = Field(description="Change that does not matter; null if none is set.")
    verdict: MetricVerdict = Field(
        description="Verdict of the metric, at the alpha of the whole comparison."
    )
    base: float | None = Field(
        None,
        description="Mean of the base over the cases that were compared; of preferences, its share "
        "of wins.",
    )
    head: float | None = Field(None, description="That of the arm.")
    estimate: float | None = Field(description="The change; null if nothing was measured.")
    low: float | None = Field(description="Lower end of its interval.")
    high: float | None = Field(description="Upper end of its interval.")
    confidence: Share | None = Field(
        description="Confidence of the interval, which covers all metrics together."
    )
    p_value: Share | None = Field(
        description="Probability of a change this large by chance, after Holm's correction."
    )
    clusters: Count = Field(description="Clusters that were compared.")
    pairs: Count = Field(description="Pairs of trials that were compared.")
    method: str = Field(description="How it was computed; why not, if nothing was measured.")
    preferences: PreferenceCounts | None = Field(
        None, exclude_if=is_none, description="Of a `pairwise_judge`: what it prefers."
    )


class Look(Recorded):
    """What a look at the results showed while the experiment ran."""

    cases: Count = Field(description="Cases that were complete.")
    trials: Count = Field(description="Trials of all arms so far.")
    arm: Name = Field(description="The arm.")
    estimate: float = Field(description="Change of the primary metric.")
    low: float | None = Field(description="Lower end of the interval that holds at every look.")
    high: float | None = Field(description="Upper end.")
    verdict: MetricVerdict = Field(description="Verdict of the primary metric.")


class CaseEffect(Recorded):
    """The change of the primary metric in one case: a description, not a verdict."""

    suite: str = Field(description="The eval file.")
    id: Name = Field(description="The case's id.")
    arm: Name = Field(description="The arm.")
    base: float = Field(description="Mean of the base.")
    head: float = Field(description="Mean of the arm.")
    p_value: Share | None = Field(
        description="Probability of a change this large by chance; null for a single trial."
    )
    called: bool = Field(
        description="Whether it is called a change, at a false discovery rate of alpha."
    )


class ExperimentReport(Recorded):
    """The result of an experiment."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    name: str = Field(description="File of the experiment, relative to the repository.")
    description: str | None = Field(description="Its description.")
    plan_digest: str | None = Field(description="Digest of its plan.")
    base: Name = Field(description="The arm that the others are compared with.")
    primary: Name = Field(description="The metric that decides.")
    alpha: Share = Field(description="Chance of a wrong verdict, over all metrics and arms.")
    cluster_by: str = Field(description="What belongs together.")
    verdict: ExperimentVerdict = Field(description="Verdict of the whole comparison.")
    reasons: Items[str] = Field(
        description="What the verdict follows from; why it is withheld or undecided."
    )
    withheld: Items[str] = Field(
        (), description="Why there can be no verdict, such as other models than planned."
    )
    warnings: Items[str] = Field(
        (), description="What else to know, such as trials that could not be compared."
    )
    arms: Items[ArmFigures] = Field(description="The arms, the base first.")
    effects: Items[MetricEffect] = Field(
        description="The effects, by arm; the primary metric first."
    )
    looks: Items[Look] = Field(
        (), description="Looks at the results; empty without a rule to stop."
    )
    cases: Items[CaseEffect] = Field((), description="Cases that changed, by their size.")
    planned_trials: Count = Field(description="Trials of all arms in the plan.")
    trials: Count = Field(description="Trials that the verdict is based on.")
    stopped: Literal["decided", "futile"] | None = Field(
        None,
        description="Why it stopped early: it is decided, or more trials would hardly decide it.",
    )
    saved_trials: Count = Field(0, description="Trials that did not run because it stopped early.")
    seed: int = Field(description="Seed of the order.")

    @property
    def unjudged(self) -> int:
        """Pairs of answers that a judge could not compare."""
        return sum(
            effect.preferences.unjudged for effect in self.effects if effect.preferences is not None
        )

    @property
    def exit_code(self) -> int:
        """0: not worse; 1: worse; 6: undecided or withheld."""
        return {"worse": 1, "undecided": 6, "withheld": 6}.get(self.verdict, 0)
