"""Evaluators that measure the similarity to a text."""

from typing import ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Maybe, Name, meanings
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings


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
    reference: Maybe[Name] = Field(None, description="Text to compare with; default: the expected answer.")

    @property
    def package(self) -> str | None:
        """The package of an extra that the metric needs."""
        return "sacrebleu" if self.metric == "bleu" else None
