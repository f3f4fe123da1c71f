"""Evaluators of structured answers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, JsonObject, Maybe, Name, meanings
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings
from agentv_ci.contracts.evaluators import FIELD_PATH


class IsJsonEvaluator(EvaluatorSettings):
    """Whether the answer is JSON."""

    stands_alone: ClassVar[bool] = True

    type: Literal["is_json"] = Field(description="Parse the answer as JSON.")


class SchemaEvaluator(EvaluatorSettings):
    """Whether the answer is valid JSON or YAML according to a JSON Schema."""

    short_field: ClassVar[str | None] = "schema_file"

    type: Literal["schema"] = Field(description="Check the answer against a JSON Schema.")
    schema_file: Maybe[Name] = Field(None, description="Path to the schema: a .json, .yaml or .yml file.")
    schema_inline: Maybe[JsonObject | bool] = Field(None, description="Inline schema.")
    format: Literal["json", "yaml"] = Field(
        "json",
        description="Format of the answer.",
        json_schema_extra=meanings(json="The answer is JSON.", yaml="The answer is YAML."),
    )


class ComparedField(Authored):
    """A field of a structured answer."""

    path: Annotated[str, Field(pattern=FIELD_PATH)] = Field(description="Path of the field, such as a.b[0].c.")
    match: Literal["exact", "numeric_tolerance", "date"] = Field(
        "exact",
        description="How to compare values.",
        json_schema_extra=meanings(
            exact="The values are equal.",
            numeric_tolerance="The numbers differ by at most `tolerance`.",
            date="The ISO 8601 dates are equal.",
        ),
    )
    tolerance: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Largest allowed difference of numbers.")
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(False, description="Whether the case fails if this is not met, regardless of the score.")


class FieldAccuracyEvaluator(EvaluatorSettings):
    """The share of correct fields of a structured answer."""

    type: Literal["field_accuracy"] = Field(description="Compare fields of a structured answer.")
    fields: Annotated[Items[ComparedField], Field(min_length=1)] = Field(description="Fields to compare.")
    reference: Maybe[JsonObject] = Field(None, description="Expected values; default: the expected answer as JSON.")
