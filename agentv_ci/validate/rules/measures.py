"""Evaluators that measure what their target never gives."""

from __future__ import annotations

from collections.abc import Mapping

from agentv_ci.contracts.config import Price
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CostEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.targets import (
    CliTarget,
    CopilotCliTarget,
    HttpTarget,
    MockTarget,
    Target,
    VsCodeTarget,
    model_name,
)
from agentv_ci.prices import price_of


def never_given(evaluator: AuthoredEvaluator, target: Target, prices: Mapping[str, Price]) -> str | None:
    """Return what the evaluator needs and the target can never give; None when it may score."""
    match evaluator, target:
        case CostEvaluator(), HttpTarget() if (model := model_name(target)) and price_of(model, prices) is None:
            return f"a cost: no price is known for '{model}'; set it under 'prices' in .agentv.yaml"
        case CostEvaluator(), MockTarget() | CliTarget() | VsCodeTarget() | CopilotCliTarget():
            return "a cost: it has no model with a price"
        case TokenUsageEvaluator(), MockTarget(usage=None):
            return "token counts: it has no 'usage'"
        case TokenUsageEvaluator(), CliTarget() | VsCodeTarget() | CopilotCliTarget():
            return "token counts"
        case ((ToolTrajectoryEvaluator() | ToolCallsEvaluator()), MockTarget(tool_calls=None)):
            return "tool calls: it has no 'tool_calls'"
        case ((ToolTrajectoryEvaluator() | ToolCallsEvaluator()), VsCodeTarget()):
            return "tool calls"
        case ((ToolTrajectoryEvaluator() | ToolCallsEvaluator()), HttpTarget(extra_body=None)):
            return "tool calls: it offers no tools; they stand in 'extra_body'"
        case _:
            return None
