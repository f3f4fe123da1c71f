"""Evaluators that ask a judge."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Maybe, Name, NonNegative
from agentv_ci.contracts.evaluator_settings import SCALE, EvaluatorSettings, Scale
from agentv_ci.contracts.evaluators import Rubrics, prompt_path


class LlmJudgeEvaluator(EvaluatorSettings):
    """A judge that replies with a score as JSON."""

    short_field: ClassVar[str | None] = "prompt"
    stands_alone: ClassVar[bool] = True

    type: Literal["llm_judge"] = Field(description="Score with a model.")
    prompt: Maybe[Name] = Field(None, description="Prompt of the judge, or a path to it.")
    prompt_path: Maybe[Name] = Field(None, description="Path to the prompt of the judge.")
    rubrics: Maybe[Rubrics] = Field(None, description="Criteria that the judge checks one by one.")
    judge_target: Maybe[Name] = Field(None, description="Judge target; default: that of the answering target.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Maybe[AtLeastOne] = Field(None, description="Token limit of the judge's reply.")
    scale: Maybe[Scale] = Field(None, description=SCALE, examples=[[1, 5], [0, 100]])

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt; None if it is inline."""
        return self.prompt_path or prompt_path(self.prompt)


class RubricEvaluator(EvaluatorSettings):
    """Criteria that a judge checks one by one."""

    short_field: ClassVar[str | None] = "rubrics"

    type: Literal["rubric"] = Field(description="Score with a list of criteria.")
    rubrics: Rubrics = Field(description="Criteria: texts, or objects with id, description, weight, required.")
    judge_target: Maybe[Name] = Field(None, description="Judge target; default: that of the answering target.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
