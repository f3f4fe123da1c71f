"""Evaluators of texts: `contains` and its like, `equals` and `regex`.

Like `contains` are `contains_any`, `contains_all`, `starts_with` and `ends_with`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from agentv_ci.base.patterns import TIMEOUT_S, InvalidPattern, compiled, occurs
from agentv_ci.base.text import shortened
from agentv_ci.contracts.answer_evaluators import (
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    ContainsEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    RegexEvaluator,
    StartsWithEvaluator,
    TextEvaluator,
)
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

MAX_QUOTED = 200


async def contains(
    settings: ContainsEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return 1 when the answer contains the text, else 0."""
    return share_met(_findings([settings.value], submission, settings))


async def contains_any(
    settings: ContainsAnyEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return 1 when the answer contains one of several texts, else 0."""
    if hits := share_met(_findings(settings.value, submission, settings)).hits:
        return Score(1.0, hits=hits)
    return Score(0.0, misses=(f"contains none of {', '.join(map(repr, settings.value))}",))


async def contains_all(
    settings: ContainsAllEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return the share of several texts that the answer contains."""
    return share_met(_findings(settings.value, submission, settings))


async def equals(
    settings: EqualsEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return 1 when the answer is the text, apart from surrounding whitespace, else 0."""
    value, answer = settings.value, submission.answer.strip()
    if _comparable(answer, settings) == _comparable(value.strip(), settings):
        return Score(1.0, hits=(f"equals '{value}'",))
    return Score(0.0, misses=(f"is '{shortened(answer, MAX_QUOTED)}', not '{value}'",))


async def starts_with(
    settings: StartsWithEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return 1 when the answer starts with the text, else 0."""
    value = settings.value
    if _comparable(submission.answer, settings).startswith(_comparable(value, settings)):
        return Score(1.0, hits=(f"starts with '{value}'",))
    return Score(0.0, misses=(f"starts with '{submission.answer[: len(value)]}', not '{value}'",))


async def ends_with(
    settings: EndsWithEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return 1 when the answer ends with the text, else 0."""
    value = settings.value
    if _comparable(submission.answer, settings).endswith(_comparable(value, settings)):
        return Score(1.0, hits=(f"ends with '{value}'",))
    return Score(0.0, misses=(f"ends with '{submission.answer[-len(value) :]}', not '{value}'",))


async def regex(
    settings: RegexEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Search for a limited time; a pattern that takes longer is an error, not a zero."""
    value = settings.value
    try:
        pattern = compiled(value, ignore_case=not settings.case_sensitive)
        # In a thread: the search blocks neither the loop nor, with a time limit, the interpreter.
        found = await asyncio.to_thread(occurs, pattern, submission.answer)
    except TimeoutError:
        return Score(error=f"the pattern took longer than {TIMEOUT_S:g} s: '{value}'")
    except InvalidPattern as error:
        return Score(error=f"not a regular expression: {error}")
    return share_met([(found, f"matches '{value}'" if found else f"does not match '{value}'")])


def _findings(
    values: Iterable[str], submission: Submission, settings: TextEvaluator
) -> Iterator[tuple[bool, str]]:
    """Yield for each text whether the answer contains it, and the finding."""
    answer = _comparable(submission.answer, settings)
    for value in values:
        is_there = _comparable(value, settings) in answer
        yield is_there, f"contains '{value}'" if is_there else f"does not contain '{value}'"


def _comparable(text: str, settings: TextEvaluator) -> str:
    """Return a text as it is compared: casefolded unless `case_sensitive`."""
    if settings.case_sensitive:
        return text
    return text.casefold()
