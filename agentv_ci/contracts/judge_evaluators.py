"""Evaluators that ask a judge, and the judge set: answers with human verdicts, to measure one."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import (
    AtLeastOne,
    Authored,
    GradedVerdict,
    Items,
    Maybe,
    Name,
    NonNegative,
    Share,
    meanings,
)
from agentv_ci.contracts.evaluator_settings import SCALE, EvaluatorSettings, Scale, looks_like_path
from agentv_ci.contracts.source import JUDGE_SET_SCHEMA

PROMPT_SUFFIXES = (".md", ".txt", ".j2")

PROMPT_VARIABLES = (
    "candidate_answer",
    "expected_messages",
    "question",
    "expected_outcome",
    "reference_answer",
    "input_messages",
    "output_messages",
    "request",
    "generated_answer",
)
"""Variables of a judge's prompt."""
AGGREGATOR_VARIABLES = ("evaluator_results", "EVALUATOR_RESULTS_JSON", *PROMPT_VARIABLES)
"""Variables of an aggregator's prompt."""


def prompt_path(prompt: str | None) -> str | None:
    """Return the path in `prompt`; None if it is the text itself."""
    return prompt if prompt is not None and looks_like_path(prompt, PROMPT_SUFFIXES) else None


class RubricItem(Authored):
    """A criterion that an answer meets or not."""

    id: Maybe[Name] = Field(
        None, description="Id, unique in the list; default: rubric-1, rubric-2 …"
    )
    description: Name = Field(description="What must be true of the answer.")
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(
        True, description="Whether the case fails if this is not met, regardless of the score."
    )


Rubrics = Annotated[Items[Name | RubricItem], Field(min_length=1)]

RUBRICS_NAME = "rubrics"
"""Name of the evaluator for a case's `rubrics`."""


def rubric_items(rubrics: tuple[str | RubricItem, ...]) -> tuple[RubricItem, ...]:
    """Return criteria as objects with ids."""
    items = (
        RubricItem(description=rubric) if isinstance(rubric, str) else rubric for rubric in rubrics
    )
    return tuple(
        item if item.id is not None else item.model_copy(update={"id": f"rubric-{number}"})
        for number, item in enumerate(items, 1)
    )


class LlmJudgeEvaluator(EvaluatorSettings):
    """A judge that replies with a score as JSON."""

    short_field: ClassVar[str | None] = "prompt"
    stands_alone: ClassVar[bool] = True

    type: Literal["llm_judge"] = Field(description="Score with a model.")
    prompt: Maybe[Name] = Field(None, description="Prompt of the judge, or a path to it.")
    prompt_path: Maybe[Name] = Field(None, description="Path to the prompt of the judge.")
    rubrics: Maybe[Rubrics] = Field(None, description="Criteria that the judge checks one by one.")
    judge_target: Maybe[Name] = Field(
        None, description="Judge target; default: that of the answering target."
    )
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None, description="Sampling temperature of the judge."
    )
    max_output_tokens: Maybe[AtLeastOne] = Field(
        None, description="Token limit of the judge's reply."
    )
    scale: Maybe[Scale] = Field(None, description=SCALE, examples=[[1, 5], [0, 100]])

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt; None if it is inline."""
        return self.prompt_path or prompt_path(self.prompt)


class RubricEvaluator(EvaluatorSettings):
    """Criteria that a judge checks one by one."""

    short_field: ClassVar[str | None] = "rubrics"

    type: Literal["rubric"] = Field(description="Score with a list of criteria.")
    rubrics: Rubrics = Field(
        description="Criteria: texts, or objects with id, description, weight, required."
    )
    judge_target: Maybe[Name] = Field(
        None, description="Judge target; default: that of the answering target."
    )
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")


class LabelledAnswer(Authored):
    """An answer with a human verdict."""

    id: Name = Field(description="Id, unique in the file.")
    question: Name = Field(description="Question to the agent.")
    expected_outcome: Name = Field(description="What a good answer achieves.")
    reference_answer: Maybe[str] = Field(None, description="Example of a good answer.")
    answer: str = Field(description="Answer to judge.")
    verdict: Maybe[GradedVerdict] = Field(
        None,
        description="Human verdict; default: derived from `score`.",
        json_schema_extra=meanings(
            **{"pass": "Good."}, borderline="Neither good nor bad.", fail="Bad."
        ),
    )
    score: Maybe[Share] = Field(None, description="Human score.")


class JudgeSetDocument(Authored):
    """Labelled answers for a judge."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None,
        alias="$schema",
        description=f"`{JUDGE_SET_SCHEMA}` or the schema's $id.",
        examples=[JUDGE_SET_SCHEMA],
    )
    judge_target: Name = Field(description="Target that judges.")
    prompt: Maybe[Name] = Field(
        None, description="Prompt of the judge, or a path to it; default: the built-in prompt."
    )
    scale: Maybe[Scale] = Field(None, description=SCALE, examples=[[1, 5], [0, 100]])
    items: Annotated[Items[LabelledAnswer], Field(min_length=1)] = Field(
        description="Labelled answers."
    )

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt; None if it is inline."""
        return prompt_path(self.prompt)
