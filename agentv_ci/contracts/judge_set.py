"""The judge set: answers with human verdicts, to measure a judge."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentv_ci.contracts.base import Authored, GradedVerdict, Items, Maybe, Name, Share, meanings
from agentv_ci.contracts.evaluator_settings import SCALE, Scale
from agentv_ci.contracts.evaluators import prompt_path
from agentv_ci.contracts.schema_names import JUDGE_SET_SCHEMA


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
        json_schema_extra=meanings(**{"pass": "Good."}, borderline="Neither good nor bad.", fail="Bad."),
    )
    score: Maybe[Share] = Field(None, description="Human score.")


class JudgeSetDocument(Authored):
    """Labelled answers for a judge."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None, alias="$schema", description=f"`{JUDGE_SET_SCHEMA}` or the schema's $id.", examples=[JUDGE_SET_SCHEMA]
    )
    judge_target: Name = Field(description="Target that judges.")
    prompt: Maybe[Name] = Field(None, description="Prompt of the judge, or a path to it; default: the built-in prompt.")
    scale: Maybe[Scale] = Field(None, description=SCALE, examples=[[1, 5], [0, 100]])
    items: Annotated[Items[LabelledAnswer], Field(min_length=1)] = Field(description="Labelled answers.")

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt; None if it is inline."""
        return prompt_path(self.prompt)
