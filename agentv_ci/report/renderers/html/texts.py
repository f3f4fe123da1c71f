"""The texts of one trial as data of a page: whatever they say, they end neither their element nor the page."""

from __future__ import annotations

import json

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.results import OutputMessage, ResultRow
from agentv_ci.json_access import well_formed
from agentv_ci.text import well_formed_text

MAX_TEXT = 100_000
"""Characters of one text that are there."""

_ELSEWHERE = {"schema_version", "eval_id", "dataset", "suite", "target", "source", "dry_run"}
_ELSEWHERE |= {"trial", "trials", "require", "stop_when", "status", "verdict", "score"}
"""What a page has of a row in its line of the table, or does not show."""
_AS_TEXT = {"seed", "metadata", "request", "output_messages"}


def details(row: ResultRow) -> JsonObject:
    """Return the texts and figures of a row under its own names. Absent is what the row does not have."""
    said_by_evaluators = {"hits", "misses", "reasoning"} if row.evaluator_results else set[str]()
    return _known(
        {
            **row.model_dump(exclude=_ELSEWHERE | _AS_TEXT | said_by_evaluators),
            # JavaScript would round a large one.
            "seed": None if row.seed is None else str(row.seed),
            "metadata": _pretty(row.metadata or None),
            "request": _pretty(row.request or None),
            "output_messages": [_turn(each) for each in row.output_messages or ()],
        }
    )


def _turn(turn: OutputMessage) -> JsonObject:
    calls: list[JsonValue] = [
        {"tool": each.tool, "input": _pretty(each.input), "output": _pretty(each.output)} for each in turn.tool_calls
    ]
    return {"role": turn.role, "content": _pretty(turn.content), "tool_calls": calls}


def _known(value: JsonObject) -> JsonObject:
    """Return an object without what says nothing, at any depth."""
    known = ((key, _known_parts(each)) for key, each in value.items())
    return {key: each for key, each in known if each not in (None, "", [], {}) and each is not False}


def _known_parts(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return _known(value)
        case list() | tuple():
            return [_known_parts(each) for each in value]
        case _:
            return value


def _pretty(value: JsonValue) -> str | None:
    """Return JSON as a text for people; a text that stands alone is itself, null is none."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return "nested too deep to be shown"


def fitting_block(name: str, value: JsonObject, limit: int) -> bytes:
    """Return a block of at most about `limit` bytes: of texts too long together only beginnings are left."""
    pieces = (block(name, _beginnings(value, longest)) for longest in (MAX_TEXT, 20_000, 4_000, 800))
    fitting = (piece for piece in pieces if len(piece) <= limit)
    return next(fitting, None) or block(name, _beginnings(value, 100))


def _beginnings(value: JsonValue, longest: int) -> JsonValue:
    """Return the same with only the beginnings of texts that are longer, each with its whole length."""
    match value:
        case str() if len(value) > longest:
            return {"text": value[:longest], "length": len(value)}
        case dict():
            return {key: _beginnings(each, longest) for key, each in value.items()}
        case list():
            return [_beginnings(each, longest) for each in value]
        case _:
            return value


def block(name: str, value: JsonValue) -> bytes:
    """Return an element that holds a value as data; scripts find it by its name, a plain word."""
    return f'<script type="application/json" id="{name}">{encoded(value)}</script>\n'.encode()


def encoded(value: JsonValue) -> str:
    """Return JSON that can stand anywhere in a page, well-formed: U+FFFD for lone surrogates, null for NaN."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(well_formed(value), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return well_formed_text(text)
