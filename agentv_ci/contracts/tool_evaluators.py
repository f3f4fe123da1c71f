"""Evaluators that compare tool calls."""

from typing import ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, JsonValue, Maybe, Name, NonNegative, meanings
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings, Measure


class ExpectedCall(Authored):
    """An expected tool call."""

    tool: Name = Field(description="Name of the tool.")
    input: JsonValue = Field(None, description="Expected arguments.")


class ToolTrajectoryEvaluator(EvaluatorSettings):
    """Whether the agent called the expected tools."""

    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_trajectory"] = Field(description="Compare the tool calls with the expected ones.")
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
    minimums: Maybe[dict[str, NonNegative]] = Field(None, description="Minimum number of calls per tool (any_order).")
    expected: Maybe[Items[ExpectedCall]] = Field(None, description="Expected calls in order (all other modes).")
    args_match: Maybe[Literal["exact", "subset", "ignore"]] = Field(
        None,
        description="How to compare arguments; default: exact if `input` is given.",
        json_schema_extra=meanings(
            exact="The arguments are the expected ones.",
            subset="The expected arguments are among those of the call.",
            ignore="Arguments are not compared.",
        ),
    )
