"""The words that all reports have for the same things."""

from __future__ import annotations

from collections.abc import Mapping

from agentv_ci.contracts.compared import Rate
from agentv_ci.contracts.diagnostics import Severity
from agentv_ci.contracts.report import Stop

GATE: Mapping[str, str] = {
    "pass": "passed",
    "fail": "not passed",
    "error": "no verdict",
    "budget": "budget used up",
    "interrupted": "interrupted",
    "nothing": "nothing ran",
    "dry-run": "dry run",
}
"""What the gate says of a run, in a title."""

STOPS: Mapping[Stop, str] = {
    "fail-fast": "the run stopped at the first failure",
    "budget": "the budget is used up",
    "interrupted": "the run was interrupted",
}
"""Why a run ended before its plan did."""

DRY_RUN = "the mock answered, no score below means anything"

SEVERITIES: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
"""What a finding of a validator is called."""


def rate_text(rate: Rate | None) -> str:
    """Return how often a case passed; of one trial its verdict and score."""
    if rate is None or rate.mean is None:
        return "no verdict"
    return f"{rate.verdict} {rate.mean:.3f}" if rate.graded == 1 else f"{rate.passed}/{rate.graded} passed"
