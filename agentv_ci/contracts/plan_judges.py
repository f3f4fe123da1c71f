"""Evaluators of the plan that ask a judge."""

from typing import ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Compiled, Integer, Items, Name, NonNegative
from agentv_ci.contracts.evaluator_settings import SCALE, Scale
from agentv_ci.contracts.plan import PlanEvaluatorSettings, Prompt


class PlanRubric(Compiled):
    """A criterion that an answer meets or not."""

    id: Name = Field(description="Id, unique in the list.")
    description: Name = Field(description="What must be true of the answer.")
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(True, description="Whether the case fails if this is not met, regardless of the score.")


class PlanLlmJudgeEvaluator(PlanEvaluatorSettings):
    """A judge."""

    waits: ClassVar[bool] = True

    type: Literal["llm_judge"] = "llm_judge"
    prompt: Prompt | None = Field(None, description="Custom prompt; default: the built-in prompt.")
    rubrics: Items[PlanRubric] | None = Field(None, description="Criteria that the judge checks one by one.")
    target: str = Field(description="Key of the target that judges.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: float | None = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Integer | None = Field(None, description="Token limit of the judge's reply.")
    scale: Scale | None = Field(None, description=SCALE)


class PlanRubricEvaluator(PlanEvaluatorSettings):
    """Criteria that a judge checks one by one."""

    waits: ClassVar[bool] = True

    type: Literal["rubric"] = "rubric"
    rubrics: Items[PlanRubric] = Field(description="Criteria.")
    target: str = Field(description="Key of the target that judges.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
