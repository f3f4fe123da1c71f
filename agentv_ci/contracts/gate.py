"""What a run must meet to pass, and who checks it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from agentv_ci.contracts.base import Authored, Items, Maybe, Name, NonNegative, Share, meanings
from agentv_ci.contracts.increases import Percentage, WhenUndecided
from agentv_ci.contracts.wrong_answers import DescribedWrongAnswer, NullAgentsGate


class Gate(Authored):
    """Thresholds that a run must meet to pass."""

    min_pass_rate: Maybe[Share] = Field(
        None,
        description="Minimum share of cases that pass, without those that only infrastructure failed; default 1.0.",
        examples=[1.0],
    )
    min_mean_score: Maybe[Share] = Field(
        None, description="Minimum mean score of graded cases; default: none.", examples=[0.7, 0.9]
    )
    max_errors: Maybe[NonNegative] = Field(
        None, description="Maximum number of errored cases and trials; default 0.", examples=[0]
    )
    max_cost_usd: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None, description="Maximum cost of the run, including judges; default: no limit.", examples=[1.0, 5.0]
    )
    max_cost_increase: Maybe[Percentage] = Field(
        None,
        description="Maximum increase of the cost of answers against the baseline; default: no limit.",
        examples=["10%"],
    )
    max_tokens_increase: Maybe[Percentage] = Field(
        None, description="Maximum increase of the tokens of answers; default: no limit.", examples=["10%"]
    )
    max_mean_latency_increase: Maybe[Percentage] = Field(
        None, description="Maximum increase of the time that answers take; default: no limit.", examples=["20%"]
    )
    max_p95_latency_increase: Maybe[Percentage] = Field(
        None,
        description="Maximum increase of the time that 95% of the answers stay below; default: no limit.",
        examples=["20%"],
    )
    undecided: Maybe[WhenUndecided] = Field(
        None,
        description="What a comparison with a baseline counts as if too few trials leave open whether it is worse. "
        "Default: neither, and the exit code is 6.",
        json_schema_extra=meanings(**{"pass": "The gate is passed.", "fail": "The gate is not passed."}),
    )
    validators: Maybe[Literal["error", "warn"]] = Field(
        None,
        description="`error`: errors found by validators fail the gate; `warn`: they do not. Default error.",
        json_schema_extra=meanings(error="Errors of validators fail the gate.", warn="They are only reported."),
    )
    min_kill_rate: Maybe[Share] = Field(
        None, description="For `prove`: minimum share of killed mutants; default: none.", examples=[1.0, 0.8]
    )
    null_agents: Maybe[NullAgentsGate] = Field(
        None,
        description="For `prove`: `forbid`: cases that null agents pass fail the gate; `report`: they do not. "
        "Default report.",
        json_schema_extra=meanings(forbid="Cases that null agents pass fail the gate.", report="They are reported."),
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
