"""Reading what judges and scripts reply: a score, or which criteria are met.

Score of criteria = Σ weight of those that are met / Σ weight of all; one that is left out is not met.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubric
from agentv_ci.evaluate.scoring import weighted_mean
from agentv_ci.json_access import objects_at, text_at, well_formed
from agentv_ci.json_values import number_of

SCORE_FORM = '{"score": float, "hits": string[], "misses": string[], "reasoning": string}'
CHECKS_FORM = '{"checks": [{"id": string, "satisfied": boolean, "reasoning": string}], "overall_reasoning": string}'
"""The forms in which judges have to reply, as they are told."""

MOST_FINDINGS = 4
"""Hits, and misses, that a judge may name."""

_DECODER = json.JSONDecoder(strict=False)
"""Line breaks inside texts are read: models and shells write them."""
_BEGINNING = re.compile(r'\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:)', re.DOTALL)


class _Unreadable(ValueError):
    """An object that begins and cannot be read."""


def first_object(text: str) -> JsonObject | None:
    """Return the first JSON object in a text; None when there is none, or when it cannot be read.

    What stands inside an object that cannot be read is never an object of its own: it may be a quotation.
    """
    for form in (SCORE_FORM, CHECKS_FORM):
        # Judges like to repeat what they are told.
        text = text.replace(form, "")
    try:
        return next(_objects(text), None)
    except _Unreadable:
        return None


def last_score(text: str) -> Score | None:
    """Return the score of the last JSON object in a text that has one; None without any, or when one cannot be read.

    Whatever a script prints before, the answer that it scores included, is not its score.
    """
    try:
        found = [read_score(each, most=None) for each in _objects(text)]
    except _Unreadable:
        return None
    return next((score for score in reversed(found) if score is not None), None)


def _objects(text: str) -> Iterator[JsonObject]:
    """Yield the JSON objects of a text that stand in no other one; raises _Unreadable at one that cannot be read."""
    position = 0
    while match := _BEGINNING.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
            clean = well_formed(value)
        except (ValueError, RecursionError) as error:
            raise _Unreadable from error
        assert isinstance(clean, dict), "what begins with a brace is an object"
        yield clean


def read_score(reply: JsonObject, *, most: int | None = MOST_FINDINGS) -> Score | None:
    """Return the score a reply gives, as it gives it, with at most `most` hits and misses; None without one."""
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
    """Return the score of a judge's checks; None when they say nothing, or one thing and its opposite."""
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
    """Return the id that a judge writes, perhaps in the brackets in which it was listed."""
    text = str(written)
    ids = [each.id for each in rubrics]
    near = (each for each in ids if text.strip() in (each.strip(), f"[{each}]"))
    return text if text in ids else next(near, None)


def _finding(rubric: PlanRubric, checks: Mapping[str, tuple[bool, str]]) -> str:
    _, reasoning = checks.get(rubric.id, (False, "the judge left it out"))
    return f"[{rubric.id}] {rubric.description}" + (f": {reasoning}" if reasoning else "")


def _truth(value: JsonValue) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
