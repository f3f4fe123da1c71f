"""Evaluators that compare the answer: with texts, as JSON, by its similarity."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, JsonObject, Maybe, Name, meanings
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings

FIELD_PATH = r"^(\[[0-9]{1,9}\]|[^.\[\]]+)(\[[0-9]{1,9}\]|\.[^.\[\]]+)*$"
_STEP = re.compile(r"\[(?P<position>[0-9]+)\]|\.?(?P<key>[^.\[\]]+)")


def field_steps(path: str) -> tuple[str | int, ...]:
    """Return the keys and positions of a path such as `a.b[0].c`."""
    return tuple(
        int(step["position"]) if step["position"] else step["key"] for step in _STEP.finditer(path)
    )


PACKAGE_HINT = "python -m pip install sacrebleu, or install agentv-ci with the extra 'bleu'"


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

    type: Literal["contains_any"] = Field(
        description="Look for one of several texts in the answer."
    )
    value: Annotated[Items[Name], Field(min_length=1)] = Field(description="Texts to find.")


class ContainsAllEvaluator(TextEvaluator):
    """How many of several texts the answer contains."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains_all"] = Field(
        description="Look for all of several texts in the answer."
    )
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


class IsJsonEvaluator(EvaluatorSettings):
    """Whether the answer is JSON."""

    stands_alone: ClassVar[bool] = True

    type: Literal["is_json"] = Field(description="Parse the answer as JSON.")


class SchemaEvaluator(EvaluatorSettings):
    """Whether the answer is valid JSON or YAML according to a JSON Schema."""

    short_field: ClassVar[str | None] = "schema_file"

    type: Literal["schema"] = Field(description="Check the answer against a JSON Schema.")
    schema_file: Maybe[Name] = Field(
        None, description="Path to the schema: a .json, .yaml or .yml file."
    )
    schema_inline: Maybe[JsonObject | bool] = Field(None, description="Inline schema.")
    format: Literal["json", "yaml"] = Field(
        "json",
        description="Format of the answer.",
        json_schema_extra=meanings(json="The answer is JSON.", yaml="The answer is YAML."),
    )


class ComparedField(Authored):
    """A field of a structured answer."""

    path: Annotated[str, Field(pattern=FIELD_PATH)] = Field(
        description="Path of the field, such as a.b[0].c."
    )
    match: Literal["exact", "numeric_tolerance", "date"] = Field(
        "exact",
        description="How to compare values.",
        json_schema_extra=meanings(
            exact="The values are equal.",
            numeric_tolerance="The numbers differ by at most `tolerance`.",
            date="The ISO 8601 dates are equal.",
        ),
    )
    tolerance: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None, description="Largest allowed difference of numbers."
    )
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(
        False, description="Whether the case fails if this is not met, regardless of the score."
    )


class FieldAccuracyEvaluator(EvaluatorSettings):
    """The share of correct fields of a structured answer."""

    type: Literal["field_accuracy"] = Field(description="Compare fields of a structured answer.")
    fields: Annotated[Items[ComparedField], Field(min_length=1)] = Field(
        description="Fields to compare."
    )
    reference: Maybe[JsonObject] = Field(
        None, description="Expected values; default: the expected answer as JSON."
    )


class SimilarityEvaluator(EvaluatorSettings):
    """The similarity of the answer to a text."""

    short_field: ClassVar[str | None] = "metric"

    type: Literal["similarity"] = Field(description="Measure the similarity to a text.")
    metric: Literal["levenshtein", "rouge_l", "bleu", "token_f1"] = Field(
        description="Similarity metric.",
        json_schema_extra=meanings(
            levenshtein="Characters that need not be changed.",
            rouge_l="The longest common sequence of words.",
            bleu="Common sequences of up to four words.",
            token_f1="Common words, in any order.",  # noqa: S106  # no password
        ),
    )
    reference: Maybe[Name] = Field(
        None, description="Text to compare with; default: the expected answer."
    )

    @property
    def package(self) -> str | None:
        """The package of an extra that the metric needs."""
        return "sacrebleu" if self.metric == "bleu" else None
