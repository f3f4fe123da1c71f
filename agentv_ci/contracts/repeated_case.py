"""Statistics of a case with several trials."""

from __future__ import annotations

from pydantic import Field

from agentv_ci.contracts.base import Items, Share, Verdict
from agentv_ci.contracts.results import OfCase


class RepeatedCase(OfCase):
    """Statistics of a case with several trials."""

    verdict: Verdict = Field(description="Verdict of the case.")
    flaky: bool = Field(description="Whether graded trials disagree.")
    trials: int = Field(description="Trials that ran.")
    graded: int = Field(description="Trials with a verdict, and crashed ones, which count as failed.")
    crashed: int = Field(0, description="Trials that crashed.")
    passed: int = Field(description="Trials that passed.")
    mean: float = Field(description="Mean score of graded trials.")
    pass_rate_low: Share = Field(description="Lower bound of the pass rate (95% Wilson interval).")
    pass_rate_high: Share = Field(description="Upper bound of the pass rate.")
    pass_at_k: Items[Share] = Field(description="For k = 1 to at most 20: chance that at least one of k trials passes.")
    pass_hat_k: Items[Share] = Field(description="For k = 1 to at most 20: chance that all k trials pass.")
