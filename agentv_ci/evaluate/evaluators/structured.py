"""`type: is_json`, `field_accuracy`: whether an answer is JSON, and whether its fields are right.

Score of fields = Σ weight of correct fields / Σ weight of all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal, localcontext

from agentv_ci.base.json_access import found_at, read_answer, refuse_constant
from agentv_ci.base.json_values import (
    MAX_EXPONENT,
    is_same,
    is_same_moment,
    moment_of,
    number_of,
    reference_problem,
)
from agentv_ci.base.text import shortened, unfenced
from agentv_ci.contracts.answer_evaluators import (
    ComparedField,
    FieldAccuracyEvaluator,
    IsJsonEvaluator,
    field_steps,
)
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.scoring import have_weight, weighted_mean
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

MAX_QUOTED = 200
DIGITS = 2 * MAX_EXPONENT
"""Precision of differences."""


async def is_json(
    settings: IsJsonEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Parse strictly, as a program that reads the answer would."""
    answer = submission.answer
    try:
        # Numbers stay text: JSON allows more digits than Python converts.
        json.loads(answer, parse_int=str, parse_float=str, parse_constant=refuse_constant)
    except RecursionError:
        return Score(error="the answer is nested too deeply")
    except ValueError as error:
        reason = "it is in a code fence"
        if unfenced(answer) == answer:
            reason = str(error)
        return Score(0.0, misses=(f"not JSON: {reason}",))
    return Score(1.0, hits=("is JSON",))


async def field_accuracy(
    settings: FieldAccuracyEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare field by field: one missing in the reference is an error, in the answer a miss."""
    try:
        reference = settings.reference or read_answer(submission.case.reference_answer)
    except ValueError as error:
        return Score(error=f"'reference' is not set, and the expected answer is not JSON: {error}")
    if problems := [
        reason for field in settings.fields if (reason := reference_problem(field, reference))
    ]:
        return Score(error=f"{'; '.join(problems)} in the reference")
    try:
        answer = read_answer(submission.answer)
    except ValueError as error:
        is_required = any(field.required for field in settings.fields)
        return Score(0.0, misses=(f"not JSON: {error}",), misses_required=is_required)
    return _score([(field, _miss(field, answer, reference)) for field in settings.fields])


def _score(fields: Sequence[tuple[ComparedField, str | None]]) -> Score:
    return Score(
        weighted_mean((field.weight, float(miss is None)) for field, miss in fields),
        hits=tuple(field.path for field, miss in fields if miss is None),
        misses=tuple(miss for _, miss in fields if miss is not None),
        misses_required=any(field.required for field, miss in fields if miss is not None),
        weighs_nothing=not have_weight(field for field, _ in fields),
    )


def _miss(field: ComparedField, answer: JsonValue, reference: JsonValue) -> str | None:
    """Return what is wrong with a field, None when it is correct."""
    label = f"{field.path} (required)" if field.required else field.path
    steps = field_steps(field.path)
    (theirs,), found = found_at(reference, *steps), found_at(answer, *steps)
    if not found:
        return f"{label}: missing"
    if _is_right(field, found[0], theirs):
        return None
    return f"{label}: {_quoted(found[0])} instead of {_quoted(theirs)}"


def _is_right(field: ComparedField, ours: JsonValue, theirs: JsonValue) -> bool:
    match field.match:
        case "exact":
            return is_same(ours, theirs)
        case "numeric_tolerance":
            return _is_near(number_of(ours), number_of(theirs), Decimal(str(field.tolerance or 0)))
        case "date":
            one, other = moment_of(ours), moment_of(theirs)
            return one is not None and other is not None and is_same_moment(one, other)


def _is_near(ours: Decimal | None, theirs: Decimal | None, tolerance: Decimal) -> bool:
    with localcontext(prec=DIGITS):
        return ours is not None and theirs is not None and abs(ours - theirs) <= tolerance


def _quoted(value: JsonValue) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), MAX_QUOTED)
