"""Read replies of judges and scripts: a score, or which criteria are met.

Score of criteria = Σ weight of met criteria / Σ weight of all. A criterion that is missing in the
reply is not met.

A judge replies with one verdict on its scale. Of several verdicts the first one counts, and a score
beyond the scale counts as the nearest one on it; the reading then says how the reply broke the
contract.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.json_access import objects_at, text_at, well_formed
from agentv_ci.base.json_values import number_of
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import PlanRubric
from agentv_ci.contracts.results import Choice
from agentv_ci.evaluate.scoring import have_weight, weighted_mean
from agentv_ci.evaluate.thinking import without_thinking

SCORE_FORM = '{"score": float, "hits": string[], "misses": string[], "reasoning": string}'
CHECKS_FORM = (
    '{"checks": [{"id": string, "satisfied": boolean, "reasoning": string}], '
    '"overall_reasoning": string}'
)
CHOICE_FORM = '{"better": "first" | "second" | "tie", "reasoning": string}'
"""The forms of replies, as judges are asked for them."""

CHOICES: Mapping[Choice, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""Which of two answers is better → the score of the first one."""

MOST_FINDINGS = 4
"""Most hits, and most misses, that are kept of a judge's reply."""

UNIT_SCALE = (0.0, 1.0)
"""The scale of judges without `scale`."""

_BEGINNING = re.compile(r'\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:)', re.DOTALL)


class _Unreadable(ValueError):
    """A JSON object begins but cannot be read, or contradicts itself."""


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Unreadable("a key occurs twice in it")
    return found


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
"""Accepts line breaks in strings: models and shells write them."""


class Reading(Struct, frozen=True):
    """What the reply of a judge says."""

    score: Score | None
    """Clamped; None when the reply cannot be read."""
    decides: Hashable = None
    """What decides the score: verdicts that differ in it contradict each other."""
    faults: tuple[str, ...] = ()
    """How the reply broke the contract, in clauses about it."""


Read = Callable[[JsonObject], Reading | None]
"""Returns what an object says; None when it is not a complete verdict."""


def read_reply(text: str, read: Read) -> Reading:
    """Return the verdict in the first JSON object of a judge's reply.

    What the judge thinks is not part of its reply, and objects inside an unreadable object are
    ignored: they may be quoted from the answer.
    """
    objects = _objects(_body(text))
    try:
        first = next(objects, None)
    except _Unreadable as error:
        return Reading(None, faults=tuple(filter(None, [str(error)])))
    reading = read(first) if first is not None else None
    if reading is None:
        return Reading(None)
    if any(other.decides != reading.decides for other in _others(objects, read)):
        return replace(reading, faults=(*reading.faults, "it has several verdicts that differ"))
    return reading


def _body(text: str) -> str:
    body = without_thinking(text)
    for form in (SCORE_FORM, CHECKS_FORM, CHOICE_FORM):
        # Judges often repeat the form they are asked for.
        body = body.replace(form, "")
    return body


def _others(objects: Iterator[JsonObject], read: Read) -> Iterator[Reading]:
    """Yield the verdicts after the first object, up to an object that cannot be read."""
    with suppress(_Unreadable):
        for item in objects:
            if (reading := read(item)) is not None:
                yield reading


def last_score(text: str) -> Score | None:
    """Return the score of the last JSON object that has one.

    None without any, or when an object cannot be read.

    Earlier objects are ignored: a script may log the answer that it scores.
    """
    last: Score | None = None
    try:
        for item in _objects(text):
            last = _score_of(item, most=None) or last
    except _Unreadable:
        return None
    return last


def _objects(text: str) -> Iterator[JsonObject]:
    """Yield the outermost JSON objects of a text.

    Raises _Unreadable for one that cannot be read.
    """
    position = 0
    while match := _BEGINNING.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
            clean = well_formed(value)
        except _Unreadable:
            raise
        except (ValueError, RecursionError) as error:
            raise _Unreadable from error
        assert isinstance(clean, dict), "a value that begins with a brace is an object"
        yield clean


def read_choice(reply: JsonObject) -> Reading | None:
    """Return the score of the first of two answers; None without a choice."""
    score = next(
        (score for choice, score in CHOICES.items() if choice == reply.get("better")), None
    )
    if score is None:
        return None
    return Reading(Score(score, reasoning=text_at(reply, "reasoning") or ""), decides=score)


def read_score(reply: JsonObject, scale: tuple[float, ...] = UNIT_SCALE) -> Reading | None:
    """Return a score on a scale as one from 0 to 1; None without a score."""
    found = _score_of(reply, most=MOST_FINDINGS)
    if found is None:
        return None
    low, high = scale
    clamped = min(max(low, found.score), high)
    score = replace(found, score=(clamped - low) / (high - low))
    if clamped == found.score:
        return Reading(score, decides=found.score)
    outside = f"its score {found.score:g} is outside {low:g} to {high:g}"
    return Reading(score, decides=found.score, faults=(outside,))


def _score_of(reply: JsonObject, *, most: int | None) -> Score | None:
    """Return the score of a reply as it is written, with at most `most` hits and misses.

    None without a score.
    """
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
    if not isinstance(value, list):
        return ()
    return tuple(text for item in value if isinstance(item, str) and (text := item.strip()))


def read_checks(reply: JsonObject, rubrics: Sequence[PlanRubric]) -> Reading | None:
    """Return the score of a judge's checks, the first one of each criterion; None without any."""
    checks: dict[str, tuple[bool, str]] = {}
    faults: dict[str, None] = {}
    for check in objects_at(reply, "checks"):
        name, satisfied = _meant(check.get("id"), rubrics), _truth(check.get("satisfied"))
        if name is None:
            faults["it has a check of an unknown criterion"] = None
        elif satisfied is None:
            return None
        elif name not in checks:
            checks[name] = (satisfied, _line_at(check, "reasoning"))
        elif checks[name][0] != satisfied:
            faults[f"its checks of criterion '{name}' differ"] = None
    if not checks:
        return None
    met = frozenset(name for name, (satisfied, _) in checks.items() if satisfied)
    score = replace(_scored(checks, met, rubrics), reasoning=_line_at(reply, "overall_reasoning"))
    return Reading(score, decides=met, faults=tuple(faults))


def _scored(
    checks: Mapping[str, tuple[bool, str]], met: AbstractSet[str], rubrics: Sequence[PlanRubric]
) -> Score:
    missed = [criterion for criterion in rubrics if criterion.id not in met]
    return Score(
        weighted_mean((criterion.weight, float(criterion.id in met)) for criterion in rubrics),
        hits=tuple(_finding(criterion, checks) for criterion in rubrics if criterion.id in met),
        misses=tuple(_finding(criterion, checks) for criterion in missed),
        misses_required=any(criterion.required for criterion in missed),
        weighs_nothing=not have_weight(rubrics),
    )


def _line_at(written: JsonObject, name: str) -> str:
    return " ".join((text_at(written, name) or "").split())


def _meant(written: JsonValue, rubrics: Sequence[PlanRubric]) -> str | None:
    """Return the id of the criterion that a judge names.

    The judge may write it with the brackets of the list or without.
    """
    text = str(written)
    ids = [criterion.id for criterion in rubrics]
    if text in ids:
        return text
    for criterion_id in ids:
        if text.strip() in (criterion_id.strip(), f"[{criterion_id}]"):
            return criterion_id
    return None


def _finding(rubric: PlanRubric, checks: Mapping[str, tuple[bool, str]]) -> str:
    _, reasoning = checks.get(rubric.id, (False, "missing in the judge's reply"))
    return f"[{rubric.id}] {rubric.description}" + (f": {reasoning}" if reasoning else "")


def _truth(value: JsonValue) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    if isinstance(value, bool):
        return value
    return None
