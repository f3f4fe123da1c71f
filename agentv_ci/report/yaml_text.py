"""JSON as YAML in block style, which readers of YAML 1.1 and 1.2 take for the same values.

Texts of several lines are literal blocks, for people. A text stands without quotes only when no version of YAML has
another word for it: `yes`, `1e3`, `12:30` and `2030-01-01` are quoted, as values and as keys.
"""

from __future__ import annotations

import json
import re

from agentv_ci.contracts.base import JsonValue

MAX_SIMPLE_KEY = 1_000
"""Readers refuse a key of more than 1,024 characters, unless a question mark stands before it."""

_CALM = re.compile(
    r"[\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""Characters that need no escape: no control characters, no breaks of other readers, none that turn the direction."""
_OTHER = re.compile(f"[^{_CALM.pattern[1:-2]}]")
_PLAIN = re.compile(r"(?![Ee][-+]?[0-9]+\Z)[A-Za-z](?:[^\t:#]*[^\s:#])?")
"""What begins with a letter is no number, but for `e3` in one reader."""
_WORDS = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null"))


def item(value: JsonValue) -> str:
    """Return a value as one item of a sequence; it ends with a line break."""
    pieces: list[str] = []
    _put(pieces, "-", value, "")
    return "".join(pieces)


def _put(pieces: list[str], head: str, value: JsonValue, indent: str) -> None:
    """Write what stands at `indent`: a head, which is a dash or a key and its colon, and the value that it has."""
    is_item = head == "-"
    # A sequence stands below its key, and all else further in.
    inner = indent if isinstance(value, (list, tuple)) and not is_item else f"{indent}  "
    before = " " if is_item else f"\n{inner}"
    match value:
        case dict() if value:
            pieces.append(head)
            for key, each in value.items():
                pieces.append(before)
                _put(pieces, _key(key, inner), each, inner)
                before = inner
        case list() | tuple() if value:
            pieces.append(head)
            for each in value:
                pieces.append(before)
                _put(pieces, "-", each, inner)
                before = inner
        case None:
            pieces.append(f"{head}\n")
        case _:
            pieces.append(f"{head} {_scalar(value, indent)}\n")


def _key(key: str, indent: str) -> str:
    written = _on_one_line(key)
    return f"{written}:" if len(written) <= MAX_SIMPLE_KEY else f"? {written}\n{indent}:"


def _scalar(value: JsonValue, indent: str) -> str:
    match value:
        case str():
            return _literal(value, f"{indent}  ") if _is_literal(value) else _on_one_line(value)
        case bool():
            return str(value).lower()
        case float():
            # YAML 1.1 knows no exponent without a point.
            written = repr(value)
            return written if "." in written else written.replace("e", ".0e")
        case dict():
            return "{}"
        case list() | tuple():
            return "[]"
        case _:
            return str(value)


def _is_literal(text: str) -> bool:
    return "\n" in text and not text.isspace() and _CALM.fullmatch(text.replace("\n", "")) is not None


def _literal(text: str, indent: str) -> str:
    """A literal block, without its last line break."""
    hint = "2" if text[0] in " \t\n" else ""
    body = text.rstrip("\n")
    breaks = len(text) - len(body)
    chomping = ("-", "", "+")[min(breaks, 2)]
    lines = "\n".join(f"{indent}{line}" if line else "" for line in body.split("\n"))
    return f"|{hint}{chomping}\n{lines}" + "\n" * max(breaks - 1, 0)


def _on_one_line(text: str) -> str:
    if "\n" in text or not _CALM.fullmatch(text):
        return _OTHER.sub(_escaped, json.dumps(text, ensure_ascii=False))
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return "'" + text.replace("'", "''") + "'"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
