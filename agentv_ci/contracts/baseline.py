"""The baseline: what a run came to, kept beside the evals for later runs to be compared with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agentv_ci.contracts.base import GradedVerdict, Items, Name, Recorded, Share
from agentv_ci.contracts.plan import Sha256

BASELINE_SCHEMA = "agentv-baseline-v1"


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
