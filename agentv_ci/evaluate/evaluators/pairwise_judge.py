"""`type: pairwise_judge`: compares two answers, and so cannot score one alone; see evaluate/preferring.py."""

from __future__ import annotations

from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

NEEDS_TWO = "the answer of another arm: it scores only in experiments"
"""What it lacks when an answer is scored alone."""


async def pairwise_judge(_submission: Submission, _services: EvaluatorServices) -> Score:
    """Return that one answer cannot be scored."""
    return Score(unmeasured=NEEDS_TWO)
