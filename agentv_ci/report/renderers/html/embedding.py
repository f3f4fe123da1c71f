"""JSON inside a page of HTML: whatever texts say, they end neither their element nor the parser's patience."""

from __future__ import annotations

import json

from agentv_ci.contracts.base import JsonValue
from agentv_ci.json_access import well_formed
from agentv_ci.text import well_formed_text

MAX_TEXT = 100_000
"""Characters of one text that are kept."""

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def block(name: str, value: JsonValue) -> bytes:
    """Return an element that holds a value as data; scripts find it by its name, a plain word."""
    return f'<script type="application/json" id="{name}">{encoded(value)}</script>\n'.encode()


def encoded(value: JsonValue) -> str:
    """Return JSON that can stand anywhere in a page, well-formed: U+FFFD for lone surrogates, null for NaN."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(well_formed(value), ensure_ascii=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return well_formed_text(text)


def cut(text: str) -> JsonValue:
    """Return a text as it is embedded: itself, or the beginning of a long one with its whole length."""
    return text if len(text) <= MAX_TEXT else {"text": text[:MAX_TEXT], "length": len(text)}


def beginnings(value: JsonValue, longest: int) -> JsonValue:
    """Return the same with only the beginnings of texts that are longer, each with its whole length."""
    match value:
        case str() if len(value) > longest:
            return {"text": value[:longest], "length": len(value)}
        case {"text": str(text), "length": int(length)}:
            return {"text": text[:longest], "length": length}
        case dict():
            return {key: beginnings(each, longest) for key, each in value.items()}
        case list():
            return [beginnings(each, longest) for each in value]
        case _:
            return value


def pretty(value: JsonValue) -> JsonValue:
    """Return JSON as a text for people, cut like any other; a text that stands alone is itself."""
    if isinstance(value, str):
        return cut(value)
    try:
        return cut(json.dumps(value, ensure_ascii=False, indent=2))
    except RecursionError:
        return "nested too deep to be shown"
