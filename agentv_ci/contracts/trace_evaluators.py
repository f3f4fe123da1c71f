"""Evaluators of how an answer came about: its tool calls, time, cost and tokens."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import (
    Authored,
    Items,
    JsonValue,
    Maybe,
    Name,
    NonNegative,
    Positive,
    meanings,
)
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings, Measure


class ExpectedCall(Authored):
    """An expected tool call."""

    tool: Name = Field(description="Name of the tool.")
    input: JsonValue = Field(None, description="Expected arguments.")


class ToolTrajectoryEvaluator(EvaluatorSettings):
    """Whether the agent called the expected tools."""

    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_trajectory"] = Field(
        description="Compare the tool calls with the expected ones."
    )
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"] = Field(
        description="How to compare the calls with the expected ones.",
        json_schema_extra=meanings(
            any_order="Count the calls of each tool.",
            in_order="The expected calls occur in this order; others may be between them.",
            exact="The calls are the expected ones, in this order.",
            subset="Every call is an expected one.",
            superset="Every expected call occurs.",
        ),
    )
    minimums: Maybe[dict[str, NonNegative]] = Field(
        None, description="Minimum number of calls per tool (any_order)."
    )
    expected: Maybe[Items[ExpectedCall]] = Field(
        None, description="Expected calls in order (all other modes)."
    )
    args_match: Maybe[Literal["exact", "subset", "ignore"]] = Field(
        None,
        description="How to compare arguments; default: exact if `input` is given.",
        json_schema_extra=meanings(
            exact="The arguments are the expected ones.",
            subset="The expected arguments are among those of the call.",
            ignore="Arguments are not compared.",
        ),
    )


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
    max_total: Maybe[NonNegative] = Field(
        None, description="Maximum number of input and output tokens."
    )
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
