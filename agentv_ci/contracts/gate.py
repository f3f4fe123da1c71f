"""What a run must meet to pass, who checks it, and which wrong answers `prove` tries."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

from agentv_ci.contracts.base import Authored, Items, Maybe, Name, NonNegative, Share, meanings

NullAgent = Literal[
    "empty",
    "echo-prompt",
    "echo-last-message",
    "refusal",
    "dont-know",
    "other-reference",
    "empty-object",
    "empty-array",
    "changes-nothing",
]
"""Agents that do nothing for the question."""
Operator = Literal[
    "number",
    "unit",
    "entity",
    "antonym",
    "negation",
    "sentence-order",
    "first-sentence",
    "json-field-removed",
    "json-field-retyped",
    "json-text",
    "tool-dropped",
    "tool-added",
    "tool-swapped",
    "tool-arguments",
    "change-dropped",
    "change-damaged",
]
"""Ways to damage a reference answer."""
NullAgentsGate = Literal["forbid", "report"]
WrongAnswer = Literal[NullAgent, Operator]
WRONG_ANSWERS: Mapping[WrongAnswer, str] = {
    "empty": "Nothing.",
    "echo-prompt": "The whole question.",
    "echo-last-message": "The last message of the question.",
    "refusal": "A refusal.",
    "dont-know": "That the agent does not know.",
    "other-reference": "The reference answer of another case.",
    "empty-object": "An empty object, where JSON is expected.",
    "empty-array": "An empty list, where JSON is expected.",
    "changes-nothing": "The reference answer, in a workspace in which nothing has changed.",
    "number": "Another number.",
    "unit": "Another unit.",
    "entity": "A name, an identifier or a quotation is missing.",
    "antonym": "A word is replaced by its opposite.",
    "negation": "The opposite.",
    "sentence-order": "The first sentence or line comes last.",
    "first-sentence": "Only the first sentence is left.",
    "json-field-removed": "A field is missing.",
    "json-field-retyped": "A value becomes a list.",
    "json-text": "A text in JSON is another one.",
    "tool-dropped": "A tool call is missing.",
    "tool-added": "A tool is called that is not asked for.",
    "tool-swapped": "Calls of two tools change places.",
    "tool-arguments": "All arguments of tools are others.",
    "change-dropped": "A part of the golden patch is missing.",
    "change-damaged": "A sign or a number in the golden patch is another one.",
}
"""What each of them answers, or what is wrong in it."""
DescribedWrongAnswer = Annotated[WrongAnswer, Field(json_schema_extra=meanings(**WRONG_ANSWERS))]


IncreasingMetric = Literal["cost", "tokens", "mean_latency", "p95_latency"]
METRICS: tuple[IncreasingMetric, ...] = get_args(IncreasingMetric)

WhenUndecided = Literal["pass", "fail"]
"""What a comparison counts as if too few trials leave open whether the newer run is worse."""

PERCENTAGE = r"^[0-9]{1,6}(\.[0-9]+)?%$"
Percentage = Annotated[str, Field(pattern=PERCENTAGE)]
"""Such as `10%`. A number would not say whether 1 is 1% or 100%."""

Increases = dict[IncreasingMetric, Annotated[float, Field(ge=0)]]
"""Metric → the largest allowed increase, as a share: 0.1 is 10%."""


class Gate(Authored):
    """Thresholds that a run must meet to pass."""

    min_pass_rate: Maybe[Share] = Field(
        None,
        description="Minimum share of cases that pass, without those that only infrastructure "
        "failed; default 1.0.",
        examples=[1.0],
    )
    min_mean_score: Maybe[Share] = Field(
        None, description="Minimum mean score of graded cases; default: none.", examples=[0.7, 0.9]
    )
    max_errors: Maybe[NonNegative] = Field(
        None, description="Maximum number of errored cases and trials; default 0.", examples=[0]
    )
    max_cost_usd: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None,
        description="Maximum cost of the run, including judges; default: no limit.",
        examples=[1.0, 5.0],
    )
    max_cost_increase: Maybe[Percentage] = Field(
        None,
        description="Maximum increase of the cost of answers against the baseline; default: no "
        "limit.",
        examples=["10%"],
    )
    max_tokens_increase: Maybe[Percentage] = Field(
        None,
        description="Maximum increase of the tokens of answers; default: no limit.",
        examples=["10%"],
    )
    max_mean_latency_increase: Maybe[Percentage] = Field(
        None,
        description="Maximum increase of the time that answers take; default: no limit.",
        examples=["20%"],
    )
    max_p95_latency_increase: Maybe[Percentage] = Field(
        None,
        description="Maximum increase of the time that 95% of the answers stay below; default: no "
        "limit.",
        examples=["20%"],
    )
    undecided: Maybe[WhenUndecided] = Field(
        None,
        description="What a comparison with a baseline counts as if too few trials leave open "
        "whether it is worse. Default: neither, and the exit code is 6.",
        json_schema_extra=meanings(
            **{"pass": "The gate is passed.", "fail": "The gate is not passed."}
        ),
    )
    validators: Maybe[Literal["error", "warn"]] = Field(
        None,
        description="`error`: errors found by validators fail the gate; `warn`: they do not. "
        "Default error.",
        json_schema_extra=meanings(
            error="Errors of validators fail the gate.", warn="They are only reported."
        ),
    )
    min_kill_rate: Maybe[Share] = Field(
        None,
        description="For `prove`: minimum share of killed mutants; default: none.",
        examples=[1.0, 0.8],
    )
    null_agents: Maybe[NullAgentsGate] = Field(
        None,
        description="For `prove`: `forbid`: cases that null agents pass fail the gate; `report`: "
        "they do not. Default report.",
        json_schema_extra=meanings(
            forbid="Cases that null agents pass fail the gate.", report="They are reported."
        ),
    )
    accept: Maybe[Items[DescribedWrongAnswer]] = Field(
        None,
        description="For `prove`: null agents and operators that are not tried; default: none.",
        examples=[["sentence-order"]],
    )


class ValidatorUse(Authored):
    """A validator with its settings."""

    model_config = ConfigDict(extra="allow")

    key: Name = Field(description="Name of the validator; all other keys are its settings.")


def increases_of(percentages: Mapping[str, str | None]) -> Increases:
    """Return the limits among the settings of a gate, such as `max_cost_increase: 10%`."""
    given = {metric: percentages.get(setting_of(metric)) for metric in METRICS}
    return {metric: share_of(text) for metric, text in given.items() if text is not None}


def share_of(percentage: str) -> float:
    """Return a percentage as a share: 0.1 of `10%`."""
    return float(percentage.removesuffix("%")) / 100


def setting_of(metric: IncreasingMetric) -> str:
    """Return the name of the setting that limits a metric."""
    return f"max_{metric}_increase"
