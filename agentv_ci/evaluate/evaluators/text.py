"""`type: contains`, `contains_any`, `contains_all`, `equals`, `starts_with`, `ends_with`: texts in the answer."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import (
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    ContainsEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    StartsWithEvaluator,
    TextEvaluator,
)
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.evaluate.submission import Submission
from agentv_ci.text import shortened

MAX_QUOTED = 200


async def contains(settings: ContainsEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """1 when the answer contains a text, else 0."""
    value = settings.value
    if _comparable(value, settings) in _comparable(submission.answer, settings):
        return Score(1.0, hits=(f"contains '{value}'",))
    return Score(0.0, misses=(f"does not contain '{value}'",))


async def contains_any(settings: ContainsAnyEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """1 when the answer contains one of several texts, else 0."""
    answer = _comparable(submission.answer, settings)
    present = [value for value in settings.value if _comparable(value, settings) in answer]
    if present:
        return Score(1.0, hits=tuple(f"contains '{value}'" for value in present))
    return Score(0.0, misses=(f"contains none of {', '.join(map(repr, settings.value))}",))


async def contains_all(settings: ContainsAllEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """The share of several texts that the answer contains."""
    answer = _comparable(submission.answer, settings)
    hits: list[str] = []
    misses: list[str] = []
    for value in settings.value:
        if _comparable(value, settings) in answer:
            hits.append(f"contains '{value}'")
        else:
            misses.append(f"does not contain '{value}'")
    return Score(len(hits) / len(settings.value), hits=tuple(hits), misses=tuple(misses))


async def equals(settings: EqualsEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """1 when the answer is a text, but for space at both ends, else 0."""
    value, answer = settings.value, submission.answer.strip()
    if _comparable(answer, settings) == _comparable(value.strip(), settings):
        return Score(1.0, hits=(f"equals '{value}'",))
    return Score(0.0, misses=(f"is '{shortened(answer, MAX_QUOTED)}', not '{value}'",))


async def starts_with(settings: StartsWithEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """1 when the answer begins with a text, else 0."""
    value = settings.value
    if _comparable(submission.answer, settings).startswith(_comparable(value, settings)):
        return Score(1.0, hits=(f"starts with '{value}'",))
    return Score(0.0, misses=(f"starts with '{submission.answer[: len(value)]}', not '{value}'",))


async def ends_with(settings: EndsWithEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """1 when the answer ends with a text, else 0."""
    value = settings.value
    if _comparable(submission.answer, settings).endswith(_comparable(value, settings)):
        return Score(1.0, hits=(f"ends with '{value}'",))
    return Score(0.0, misses=(f"ends with '{submission.answer[-len(value) :]}', not '{value}'",))


def _comparable(text: str, settings: TextEvaluator) -> str:
    """Return a text as it is compared: without case, unless case matters."""
    return text if settings.case_sensitive else text.casefold()
