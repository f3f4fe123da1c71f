"""`type: field_accuracy`: Σ weight of the fields that are right / Σ weight of all."""

from __future__ import annotations

import json
import math
from datetime import date, datetime

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evaluators import ComparedField, FieldAccuracyEvaluator, field_steps
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.evaluators.structured import is_same, read_answer
from agentv_ci.evaluate.scoring import weighted_mean
from agentv_ci.evaluate.submission import Submission
from agentv_ci.outside import found_at, shortened

MAX_QUOTED = 200


class FieldAccuracy:
    """See Evaluator."""

    def __init__(self, settings: FieldAccuracyEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Compare field by field; a reference that has no such field is an error, an answer without it a miss."""
        try:
            reference = self._settings.reference or read_answer(submission.case.reference_answer)
        except ValueError as error:
            return Score(error=f"there is no 'reference', and the expected answer is not JSON: {error}")
        lacking = [each.path for each in self._settings.fields if not found_at(reference, *field_steps(each.path))]
        if lacking:
            return Score(error=f"the reference has no {', '.join(map(repr, lacking))}")
        try:
            answer = read_answer(submission.answer)
        except ValueError as error:
            is_required = any(each.required for each in self._settings.fields)
            return Score(0.0, misses=(f"not JSON: {error}",), misses_required=is_required)
        found = [(each, _miss(each, answer, reference)) for each in self._settings.fields]
        return Score(
            weighted_mean((each.weight, float(miss is None)) for each, miss in found),
            hits=tuple(each.path for each, miss in found if miss is None),
            misses=tuple(miss for _, miss in found if miss is not None),
            misses_required=any(each.required and miss is not None for each, miss in found),
        )


def _miss(field: ComparedField, answer: JsonValue, reference: JsonValue) -> str | None:
    """Return what is wrong with a field, None when nothing is."""
    label = f"{field.path} (required)" if field.required else field.path
    steps = field_steps(field.path)
    (theirs,), found = found_at(reference, *steps), found_at(answer, *steps)
    if not found:
        return f"{label}: missing"
    return None if _is_right(field, found[0], theirs) else f"{label}: {_quoted(found[0])} instead of {_quoted(theirs)}"


def _is_right(field: ComparedField, ours: JsonValue, theirs: JsonValue) -> bool:
    match field.match:
        case "exact":
            return is_same(ours, theirs)
        case "numeric_tolerance":
            return _is_near(_number(ours), _number(theirs), field.tolerance or 0.0)
        case "date":
            return _is_same_day(_moment(ours), _moment(theirs))


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _is_near(ours: float | None, theirs: float | None, tolerance: float) -> bool:
    if ours is None or theirs is None:
        return False
    # 0.3 is 0.1 from 0.2, whatever binary fractions say.
    return abs(ours - theirs) <= tolerance or math.isclose(abs(ours - theirs), tolerance, rel_tol=1e-9)


def _moment(value: JsonValue) -> date | datetime | None:
    """Return the day or the moment that an ISO 8601 text names."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _is_same_day(ours: date | datetime | None, theirs: date | datetime | None) -> bool:
    """Whether two moments are one; beside a day alone, a moment is the day it is written with."""
    if ours is None or theirs is None:
        return False
    if isinstance(ours, datetime) and isinstance(theirs, datetime):
        if (ours.tzinfo is None) != (theirs.tzinfo is None):
            return ours.replace(tzinfo=None) == theirs.replace(tzinfo=None)
        return ours == theirs
    days = [each.date() if isinstance(each, datetime) else each for each in (ours, theirs)]
    return days[0] == days[1]


def _quoted(value: JsonValue) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), MAX_QUOTED)
