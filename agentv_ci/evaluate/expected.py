"""What evaluators compare an answer with, where that contains a secret: answers have it masked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial

from agentv_ci.base.json_access import found_at, json_or_none
from agentv_ci.base.patterns import compiled, occurs
from agentv_ci.base.text import unfenced
from agentv_ci.contracts.answer_evaluators import (
    FieldAccuracyEvaluator,
    RegexEvaluator,
    SimilarityEvaluator,
    TextEvaluator,
    field_steps,
)
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import (
    JUDGED,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanSchemaEvaluator,
)
from agentv_ci.contracts.trace_evaluators import ToolTrajectoryEvaluator
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

MASKED = "it compares with a value that has a secret, which is masked in answers"
PART = "what it looks for may be a part of a secret, which is masked in the answer"
MIN_PART = 4
"""Shorter texts are in many secrets."""
_ESCAPE = re.compile(r"\\(\W)")


def compares_answer(evaluator: PlanEvaluator) -> bool:
    """Return whether an evaluator reads what the target said.

    Others read what the answer took, or what it left behind.
    """
    return evaluator.measures is None and not evaluator.needs_workspace


def masked_expectation(
    evaluator: PlanEvaluator, submission: Submission, services: EvaluatorServices
) -> Score | None:
    """Return an error if the expected value has a secret: no answer could be right, or wrong."""
    if any(map(services.hides, _expected(evaluator, submission.case))):
        return Score(error=MASKED)
    return None


def masked_miss(
    evaluator: PlanEvaluator, score: Score, submission: Submission, services: EvaluatorServices
) -> Score | None:
    """Return an error if an answer lacks a text that may be masked in it, as a part of a secret."""
    if score.error is not None or score.score == 1 or not submission.response.masked:
        return None
    if isinstance(evaluator, RegexEvaluator):
        pattern = compiled(evaluator.value, ignore_case=not evaluator.case_sensitive)
        is_part = services.hides_match(partial(occurs, pattern))
    elif isinstance(evaluator, TextEvaluator):
        texts = map(str.casefold, map(str.strip, _expected(evaluator, submission.case)))
        parts = [text for text in texts if len(text) >= MIN_PART]
        is_part = services.hides_match(lambda secret: _has_any(secret, parts))
    else:
        return None
    return Score(error=PART) if is_part else None


def _has_any(secret: str, parts: Sequence[str]) -> bool:
    return any(part in secret.casefold() for part in parts)


def _expected(evaluator: PlanEvaluator, case: PlanCase) -> Iterator[str]:
    """Yield the texts that an evaluator compares with; values as JSON."""
    match evaluator:
        case RegexEvaluator():
            yield evaluator.value
            yield _ESCAPE.sub(r"\1", evaluator.value)
        case TextEvaluator():
            value = getattr(evaluator, "value", ())
            if isinstance(value, str):
                yield value
            else:
                yield from value
        case SimilarityEvaluator():
            yield evaluator.reference or case.reference_answer
        case FieldAccuracyEvaluator():
            reference = evaluator.reference or json_or_none(unfenced(case.reference_answer))
            found = (found_at(reference, *field_steps(field.path)) for field in evaluator.fields)
            yield _json(list(filter(None, map(list, found))))
        case PlanSchemaEvaluator():
            yield _json(evaluator.schema_)
        case ToolTrajectoryEvaluator():
            for call in evaluator.expected or ():
                yield _json(call.input)
        case _:
            yield from _judged(evaluator, case)


def _judged(evaluator: PlanEvaluator, case: PlanCase) -> Iterator[str]:
    judge = evaluator.aggregator if isinstance(evaluator, PlanCompositeEvaluator) else evaluator
    if isinstance(judge, JUDGED):
        yield case.expected_outcome
        yield case.reference_answer
        for rubric in getattr(judge, "rubrics", None) or ():
            yield rubric.description


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
