"""Evaluators that compare the answer with texts."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Name
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings


class TextEvaluator(EvaluatorSettings):
    """Settings of text evaluators."""

    case_sensitive: bool = Field(True, description="Whether the comparison is case-sensitive.")


class ContainsEvaluator(TextEvaluator):
    """Whether the answer contains a text."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains"] = Field(description="Look for a text in the answer.")
    value: Name = Field(description="Text to find.")


class ContainsAnyEvaluator(TextEvaluator):
    """Whether the answer contains at least one of several texts."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains_any"] = Field(description="Look for one of several texts in the answer.")
    value: Annotated[Items[Name], Field(min_length=1)] = Field(description="Texts to find.")


class ContainsAllEvaluator(TextEvaluator):
    """How many of several texts the answer contains."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains_all"] = Field(description="Look for all of several texts in the answer.")
    value: Annotated[Items[Name], Field(min_length=1)] = Field(
        description="Texts to find; the score is the share found."
    )


class EqualsEvaluator(TextEvaluator):
    """Whether the answer equals a text, ignoring surrounding white space."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["equals"] = Field(description="Compare the answer with a text.")
    value: str = Field(description="Text to compare with.")


class RegexEvaluator(TextEvaluator):
    """Whether a pattern matches somewhere in the answer."""

    short_field: ClassVar[str | None] = "value"
    waits: ClassVar[bool] = True

    type: Literal["regex"] = Field(description="Search the answer with a regular expression.")
    value: Name = Field(description="Regular expression in Python syntax.")


class StartsWithEvaluator(TextEvaluator):
    """Whether the answer starts with a text."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["starts_with"] = Field(description="Check the start of the answer.")
    value: Name = Field(description="Text to find.")


class EndsWithEvaluator(TextEvaluator):
    """Whether the answer ends with a text."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["ends_with"] = Field(description="Check the end of the answer.")
    value: Name = Field(description="Text to find.")
