"""What differs between two plans, case by case: what `compile --diff` prints."""

from __future__ import annotations

from pydantic import Field

from agentv_ci.contracts.base import Items, Recorded


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
