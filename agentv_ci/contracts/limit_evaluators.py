"""Evaluators that limit what an answer takes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Maybe, NonNegative, Positive
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings, Measure


class LatencyEvaluator(EvaluatorSettings):
    """Whether the answer was fast enough."""

    short_field: ClassVar[str | None] = "max_ms"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "time"

    type: Literal["latency"] = Field(description="Limit the time of the answer.")
    max_ms: Positive = Field(description="Maximum time in milliseconds.")


class CostEvaluator(EvaluatorSettings):
    """Whether the answer was cheap enough."""

    short_field: ClassVar[str | None] = "max_usd"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "cost"

    type: Literal["cost"] = Field(description="Limit the cost of the answer.")
    max_usd: Annotated[float, Field(ge=0)] = Field(description="Maximum cost in US dollars.")


class TokenUsageEvaluator(EvaluatorSettings):
    """Whether the answer stayed within limits of tokens."""

    short_field: ClassVar[str | None] = "max_total"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "tokens"

    type: Literal["token_usage"] = Field(description="Limit the tokens of the answer.")
    max_total: Maybe[NonNegative] = Field(None, description="Maximum number of input and output tokens.")
    max_input: Maybe[NonNegative] = Field(None, description="Maximum number of input tokens.")
    max_output: Maybe[NonNegative] = Field(None, description="Maximum number of output tokens.")
    min_output: Maybe[NonNegative] = Field(None, description="Minimum number of output tokens.")


class ToolCallsEvaluator(EvaluatorSettings):
    """Whether the agent stayed within a limit of tool calls."""

    short_field: ClassVar[str | None] = "max"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_calls"] = Field(description="Limit the number of tool calls.")
    max: NonNegative = Field(description="Maximum number of calls.")
