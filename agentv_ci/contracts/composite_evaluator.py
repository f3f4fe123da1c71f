"""Evaluators that combine several others."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from agentv_ci.contracts.base import Authored, ByKind, Items, Maybe, Name
from agentv_ci.contracts.code_evaluator import Script
from agentv_ci.contracts.evaluator_settings import SCALE, EvaluatorSettings, Scale
from agentv_ci.contracts.evaluators import AuthoredEvaluator, named


class WeightedAverage(Authored):
    """The weighted mean of the members."""

    type: Literal["weighted_average"] = Field(description="Use the weighted mean.")
    weights: Maybe[dict[str, Annotated[float, Field(ge=0)]]] = Field(
        None, description="Member → weight; default: the members' own weights."
    )


class CodeAggregator(Script):
    """A script that reads the members' scores as JSON, `{"results": …}`, and prints one score as JSON."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"script": ("path",)}

    older_kinds: ClassVar[frozenset[str]] = frozenset({"code_judge"})

    type: Literal["code", "code_judge"] = Field(description="Use a script.")


class LlmJudgeAggregator(Authored):
    """A judge that combines the members' scores."""

    type: Literal["llm_judge"] = Field(description="Use a model.")
    prompt: Maybe[Name] = Field(None, description="Prompt or path; {{ evaluator_results }} has the members' scores.")
    scale: Maybe[Scale] = Field(None, description=SCALE, examples=[[1, 5], [0, 100]])


Aggregator = Annotated[WeightedAverage | CodeAggregator | LlmJudgeAggregator, Field(discriminator="type")]


class CompositeEvaluator(EvaluatorSettings):
    """Several evaluators combined into one score."""

    type: Literal["composite"] = Field(description="Combine several evaluators.")
    evaluators: Annotated[
        Items[Annotated[AuthoredEvaluator, ByKind("type")]], Field(min_length=1), AfterValidator(named)
    ] = Field(description="Evaluators to combine.")
    aggregator: Maybe[Aggregator] = Field(None, description="How to combine the scores; default: weighted_average.")
