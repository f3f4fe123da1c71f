"""What `compile` prints besides the plan: what differs from an older one, and what a run will ask and cost."""

from __future__ import annotations

from pydantic import Field

from agentv_ci.contracts.base import Items, NonNegative, Recorded


class NamedCase(Recorded):
    """A case of one of the plans."""

    id: str = Field(description="Its id.")
    suite: str = Field(description="Its eval file.")


class ChangedCase(NamedCase):
    """A case of both plans whose result may be another one now."""

    reasons: Items[str] = Field(description="Why: what changed that can change its result; never empty.")


class PlanDiff(Recorded):
    """What became of the cases of an older plan. Unchanged ones are not listed."""

    added: Items[NamedCase] = Field(description="Cases that only the newer plan has.")
    removed: Items[NamedCase] = Field(description="Cases that only the older plan has.")
    changed: Items[ChangedCase] = Field(description="Cases of both whose digests differ.")


class TargetEstimate(Recorded):
    """What one target will be asked."""

    target: str = Field(description="Its key in the plan.")
    provider: str = Field(description="Its kind.")
    model: str | None = Field(description="Its model, where the document names it.")
    answers: NonNegative = Field(description="Requests for answers.")
    judgements: NonNegative = Field(description="Requests for judgements.")
    input_tokens: NonNegative = Field(description="Tokens it will read, about.")
    output_tokens: NonNegative = Field(description="Tokens it will write, about.")
    cost_usd: float | None = Field(description="What that costs; null where no price is known or none is charged.")
    seconds: float = Field(description="Time it takes, one request after the other.")


class Estimate(Recorded):
    """What a run will ask, without retries and as if no trial ended early."""

    cases: NonNegative = Field(description="Cases.")
    trials: NonNegative = Field(description="Rows the run will write.")
    requests: NonNegative = Field(description="Answers and judgements.")
    input_tokens: NonNegative = Field(description="Tokens read, about.")
    output_tokens: NonNegative = Field(description="Tokens written, about.")
    cost_usd: float | None = Field(description="What the priced requests cost; null when none is priced.")
    unpriced: Items[str] = Field(description="Targets that charge and whose price is not known: not in the cost.")
    workers: NonNegative = Field(description="Cases at once.")
    seconds: float = Field(description="Time the run takes, about.")
    prices_as_of: str = Field(description="Day of the table of public prices.")
    targets: Items[TargetEstimate] = Field(description="Per target, in the plan's order.")
