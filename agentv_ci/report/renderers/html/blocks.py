"""Elements that hold data, encoded so that no text can close its element."""

from __future__ import annotations

import json

from agentv_ci.base.json_access import well_formed
from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.base import JsonObject, JsonValue

MAX_TEXT = 100_000
"""Characters kept of one text."""


def fitting_block(name: str, value: JsonObject, limit: int) -> bytes:
    """Return a block of at most about `limit` bytes.

    If its texts are too long, only their beginnings are kept.
    """
    for longest in (MAX_TEXT, 20_000, 4_000, 800):
        piece = block(name, _beginnings(value, longest))
        if len(piece) <= limit:
            return piece
    return block(name, _beginnings(value, 100))


def _beginnings(value: JsonValue, longest: int) -> JsonValue:
    """Return a copy in which longer texts are cut and carry their full length."""
    match value:
        case str() if len(value) > longest:
            return {"text": value[:longest], "length": len(value)}
        case dict():
            return {key: _beginnings(item, longest) for key, item in value.items()}
        case list():
            return [_beginnings(item, longest) for item in value]
        case _:
            return value


def block(name: str, value: JsonValue) -> bytes:
    """Return an element that holds a value as data.

    Scripts find it by its name, which needs no escaping.
    """
    return f'<script type="application/json" id="{name}">{encoded(value)}</script>\n'.encode()


def encoded(value: JsonValue) -> str:
    """Return JSON that is safe anywhere in a page.

    Lone surrogates become U+FFFD, and NaN becomes null.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(well_formed(value), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return well_formed_text(text)
