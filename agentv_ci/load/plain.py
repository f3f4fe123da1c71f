"""The fast path for YAML: plain data without positions.

Everything else (anchors, aliases, tags, duplicate keys, several documents, errors) raises NotPlain,
and the constructor in `parse.py` starts over. Tests prove that both return the same data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import StreamEndEvent

from agentv_ci.contracts.base import JsonValue
from agentv_ci.load.c_events import (
    RawEvent,
    RawMappingEnd,
    RawMappingStart,
    RawScalar,
    RawSequenceEnd,
    RawSequenceStart,
    c_parser,
)

MAX_DEPTH = 64
MAX_NODES = 1_000_000
MAX_DIGITS = 1_000
"""Of a number; Python refuses to write numbers that are much longer."""

_MAY_BE_NO_TEXT = frozenset("~nNtTfF.+-0123456789")
"""First characters of plain scalars that may not be strings."""
_SURROGATE = re.compile(r"\\[uU]0*[dD][89a-fA-F]")
"""An escape that may be half of a surrogate pair."""


class NotPlain(Exception):
    """The file needs the constructor that supports all of the core schema."""


class PlainDocument(Struct, frozen=True):
    """A document of plain data."""

    data: JsonValue
    keys: frozenset[str]
    """All keys of all mappings in it."""
    items: Mapping[str, Sequence[tuple[RawEvent, RawEvent]]]
    """Key of each top-level list → the first and last event of every item."""


def read_plain(text: str) -> PlainDocument:
    """Return the document in `text`; raises NotPlain."""
    # A node takes at least two characters.
    if len(text) > 2 * MAX_NODES or _SURROGATE.search(text):
        raise NotPlain
    try:
        next_event = c_parser(text)
        if next_event is None:
            raise NotPlain
        return _PlainReader(next_event).document()
    except YAMLError as error:
        raise NotPlain from error


class _PlainReader:
    """Optimised for speed: compares exact event classes and reads scalars inline."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._keys: set[str] = set()
        self._lists: list[list[tuple[RawEvent, RawEvent]]] = []
        """The lists of the second level, in the order of their keys."""
        self._last: RawEvent
        """The last event read: the end event of a block collection is at the next token."""

    def document(self) -> PlainDocument:
        self._next()  # the stream's start
        if type(self._next()) is StreamEndEvent:
            raise NotPlain
        value = self._value(self._next(), 1)
        self._next()  # the document's end
        if type(self._next()) is not StreamEndEvent:
            raise NotPlain
        lists = (
            [key for key, item in value.items() if isinstance(item, list)]
            if isinstance(value, dict)
            else []
        )
        return PlainDocument(
            value, frozenset(self._keys), dict(zip(lists, self._lists, strict=False))
        )

    def _value(self, event: object, depth: int) -> JsonValue:
        if isinstance(event, RawScalar):
            self._last = event
            return _scalar(event)
        if isinstance(event, (RawMappingStart, RawSequenceStart)):
            if event.anchor is not None or event.tag is not None or depth > MAX_DEPTH:
                raise NotPlain
            return (
                self._mapping(event, depth)
                if isinstance(event, RawMappingStart)
                else self._sequence(event, depth)
            )
        raise NotPlain

    def _mapping(self, start: RawMappingStart, depth: int) -> JsonValue:
        next_event = self._next
        data: dict[str, JsonValue] = {}
        while type(event := next_event()) is RawScalar:
            key = event.value
            if event.anchor is not None or event.tag is not None or key in data or key == "<<":
                raise NotPlain
            value = next_event()
            if type(value) is RawScalar:
                self._last = value
                data[key] = _scalar(value)
            else:
                data[key] = self._value(value, depth + 1)
        if type(event) is not RawMappingEnd:
            raise NotPlain
        if start.flow_style:
            self._last = event
        self._keys.update(data)
        return data

    def _sequence(self, start: RawSequenceStart, depth: int) -> JsonValue:
        next_event = self._next
        items: list[JsonValue] = []
        ends: list[tuple[RawEvent, RawEvent]] = []
        while type(event := next_event()) is not RawSequenceEnd:
            items.append(self._value(event, depth + 1))
            if depth == 2:
                ends.append((event, self._last))
        if start.flow_style:
            self._last = event
        if depth == 2:
            self._lists.append(ends)
        return items


def _scalar(event: RawScalar) -> JsonValue:
    text = event.value
    if event.anchor is not None or event.tag is not None:
        raise NotPlain
    if (not text or text[0] in _MAY_BE_NO_TEXT) and event.implicit[0]:
        try:
            return plain(text)
        except ValueError as error:
            raise NotPlain from error
    return text


def plain(text: str) -> JsonValue:
    """Return the value of a plain scalar in the YAML 1.2 core schema.

    Raises ValueError for too long a number.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if len(text) > MAX_DIGITS and (
        _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text) or _RADIX.fullmatch(text)
    ):
        raise ValueError("the number is too long")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _RADIX.fullmatch(text):
        return int(text, 0)
    return text


_CONSTANTS: dict[str, JsonValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_RADIX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
