"""Read replies of judges and scripts: a score, or which criteria are met.

Score of criteria = Σ weight of met criteria / Σ weight of all. A criterion that is missing in the reply is not met.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubric
from agentv_ci.contracts.results import Choice
from agentv_ci.evaluate.scoring import weighted_mean
from agentv_ci.json_access import objects_at, text_at, well_formed
from agentv_ci.json_values import number_of

SCORE_FORM = '{"score": float, "hits": string[], "misses": string[], "reasoning": string}'
CHECKS_FORM = '{"checks": [{"id": string, "satisfied": boolean, "reasoning": string}], "overall_reasoning": string}'
CHOICE_FORM = '{"better": "first" | "second" | "tie", "reasoning": string}'
"""The forms of replies, as judges are asked for them."""

CHOICES: Mapping[Choice, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""Which of two answers is better → the score of the first one."""

MOST_FINDINGS = 4
"""Most hits, and most misses, that are kept of a judge's reply."""

_DECODER = json.JSONDecoder(strict=False)
"""Accepts line breaks in strings: models and shells write them."""
_BEGINNING = re.compile(r'\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:)', re.DOTALL)


class _Unreadable(ValueError):
    """A JSON object begins but cannot be read."""


def first_object(text: str) -> JsonObject | None:
    """Return the first JSON object in a text; None without one, or when it cannot be read.

    Objects inside an unreadable object are ignored: they may be quoted from the answer.
    """
    for form in (SCORE_FORM, CHECKS_FORM, CHOICE_FORM):
        # Judges often repeat the form they are asked for.
        text = text.replace(form, "")
    try:
        return next(_objects(text), None)
    except _Unreadable:
        return None


def last_score(text: str) -> Score | None:
    """Return the score of the last JSON object that has one; None without any, or when an object cannot be read.

    Earlier objects are ignored: a script may log the answer that it scores.
    """
    try:
        found = [read_score(each, most=None) for each in _objects(text)]
    except _Unreadable:
        return None
    return next((score for score in reversed(found) if score is not None), None)


def _objects(text: str) -> Iterator[JsonObject]:
    """Yield the outermost JSON objects of a text; raises _Unreadable for one that cannot be read."""
    position = 0
    while match := _BEGINNING.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
            clean = well_formed(value)
        except (ValueError, RecursionError) as error:
            raise _Unreadable from error
        assert isinstance(clean, dict), "a value that begins with a brace is an object"
        yield clean


def read_choice(reply: JsonObject) -> Score | None:
    """Return the score of the first of two answers; None without a choice."""
    score = next((score for choice, score in CHOICES.items() if choice == reply.get("better")), None)
    return Score(score, reasoning=text_at(reply, "reasoning") or "") if score is not None else None


def read_score(reply: JsonObject, *, most: int | None = MOST_FINDINGS) -> Score | None:
    """Return the score of a reply, not clamped, with at most `most` hits and misses; None without a score."""
    value = number_of(reply.get("score"))
    if value is None or math.isinf(float(value)):
        return None
    reasoning = reply.get("reasoning")
    return Score(
        score=float(value),
        hits=_texts(reply.get("hits"))[:most],
        misses=_texts(reply.get("misses"))[:most],
        reasoning=reasoning.strip() if isinstance(reasoning, str) else "",
    )


def _texts(value: JsonValue) -> tuple[str, ...]:
    items = value if isinstance(value, list) else ()
    return tuple(text for item in items if isinstance(item, str) and (text := item.strip()))


def read_checks(reply: JsonObject, rubrics: Sequence[PlanRubric]) -> Score | None:
    """Return the score of a judge's checks; None when there are none, or when they contradict each other."""
    checks: dict[str, tuple[bool, str]] = {}
    for check in objects_at(reply, "checks"):
        name, satisfied = _meant(check.get("id"), rubrics), _truth(check.get("satisfied"))
        if name is None:
            continue
        if satisfied is None or (name in checks and checks[name][0] != satisfied):
            return None
        checks[name] = (satisfied, " ".join((text_at(check, "reasoning") or "").split()))
    if not checks:
        return None
    met = {each.id for each in rubrics if checks.get(each.id, (False, ""))[0]}
    return Score(
        weighted_mean((each.weight, float(each.id in met)) for each in rubrics),
        hits=tuple(_finding(each, checks) for each in rubrics if each.id in met),
        misses=tuple(_finding(each, checks) for each in rubrics if each.id not in met),
        reasoning=" ".join((text_at(reply, "overall_reasoning") or "").split()),
        misses_required=any(each.required and each.id not in met for each in rubrics),
        weighs_nothing=not any(each.weight for each in rubrics),
    )


def _meant(written: JsonValue, rubrics: Sequence[PlanRubric]) -> str | None:
    """Return the id of the criterion that a judge names, with or without the brackets of the list."""
    text = str(written)
    ids = [each.id for each in rubrics]
    near = (each for each in ids if text.strip() in (each.strip(), f"[{each}]"))
    return text if text in ids else next(near, None)


def _finding(rubric: PlanRubric, checks: Mapping[str, tuple[bool, str]]) -> str:
    _, reasoning = checks.get(rubric.id, (False, "missing in the judge's reply"))
    return f"[{rubric.id}] {rubric.description}" + (f": {reasoning}" if reasoning else "")


def _truth(value: JsonValue) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
