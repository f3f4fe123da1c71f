"""The judge set: answers with the verdicts of people, to measure a judge with."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentv_ci.contracts.base import Authored, GradedVerdict, Items, Maybe, Name, Share
from agentv_ci.contracts.evaluators import prompt_path

JUDGE_SET_SCHEMA = "agentv-judge-set-v1"


class LabelledAnswer(Authored):
    """An answer, and what people say of it."""

    id: Name = Field(description="Unique in this file.")
    question: Name = Field(description="What was asked.")
    expected_outcome: Name = Field(description="What a good answer achieves.")
    reference_answer: Maybe[str] = Field(None, description="An example of a good answer.")
    answer: str = Field(description="The answer that was judged.")
    verdict: Maybe[GradedVerdict] = Field(None, description="What people say of it; default: by `score`.")
    score: Maybe[Share] = Field(None, description="The score that people give it.")


class JudgeSetDocument(Authored):
    """Labelled answers, and the judge they are for."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None, alias="$schema", description=f"`{JUDGE_SET_SCHEMA}`, or the published schema's $id."
    )
    judge_target: Name = Field(description="The target that judges.")
    prompt: Maybe[Name] = Field(None, description="The judge's prompt, or a path to it; default: the built-in one.")
    items: Annotated[Items[LabelledAnswer], Field(min_length=1)] = Field(description="The answers.")

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt, when it is not written in place."""
        return prompt_path(self.prompt)
