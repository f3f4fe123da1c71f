"""Evaluators that measure what their target never gives."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CostEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.targets import CliTarget, CopilotCliTarget, MockTarget, Target, VsCodeTarget


def never_given(evaluator: AuthoredEvaluator, target: Target) -> str | None:
    """Return what the evaluator needs and the target can never give; None when it may score."""
    match evaluator, target:
        case CostEvaluator(), MockTarget() | CliTarget() | VsCodeTarget() | CopilotCliTarget():
            return "a cost: it has no model with a price"
        case TokenUsageEvaluator(), MockTarget(usage=None):
            return "token counts: it has no 'usage'"
        case TokenUsageEvaluator(), VsCodeTarget() | CopilotCliTarget():
            return "token counts"
        case ((ToolTrajectoryEvaluator() | ToolCallsEvaluator()), MockTarget(tool_calls=None)):
            return "tool calls: it has no 'tool_calls'"
        case ((ToolTrajectoryEvaluator() | ToolCallsEvaluator()), VsCodeTarget()):
            return "tool calls"
        case _:
            return None
