"""What a change does to its own test: its plan against that of its base branch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, NonNegative, Recorded

GateFrom = Literal["base", "head"]
"""Whether the stricter of base and change counts, or what the change says."""
MissingCases = Literal["report", "fail"]
"""Whether a change that lacks cases of its base fails."""
LoweringKind = Literal[
    "case", "gate", "threshold", "evaluator", "target", "skip", "stored", "quarantine"
]

MOST_LISTED = 100
"""Lowerings, and other changes, that are listed."""


class Lowering(Recorded):
    """A way in which a change makes its own test easier to pass."""

    kind: LoweringKind = Field(description="What is lowered.")
    text: str = Field(description="How, such as `min_pass_rate 1 → 0.1`.")
    cases: Items[str] = Field(
        (), description="Ids of the first cases that it is about; none for a whole eval file."
    )
    number: NonNegative = Field(0, description="Number of these cases.")
    is_held: bool = Field(description="Whether the base's value counts in this run.")
    path: str | None = Field(None, description="File to look at, relative to the repository.")
    line: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Line in that file; null for one of the base."
    )


class AgainstBase(Recorded):
    """What a change does to the test that it is tested by."""

    base: str = Field(description="The base branch, and its commit if that is known.")
    gate_from: GateFrom = Field(
        "base",
        description="`base`: the stricter of base and change counts; `head`: the change's own.",
    )
    missing_cases: MissingCases = Field(
        "report", description="Whether missing cases fail the gate."
    )
    problem: str | None = Field(
        None, description="Why there is nothing to compare with; the change's own gate counts."
    )
    missing: NonNegative = Field(0, description="Cases of the base that this change lacks.")
    lowered: Items[Lowering] = Field(
        (), description="What makes the test easier to pass; missing cases come first."
    )
    others: Items[str] = Field((), description="Other changes of the test.")
    more: NonNegative = Field(0, description="Changes that are not listed.")
