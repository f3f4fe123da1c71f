"""The fast way through YAML: plain data of the documents people mostly write, without places.

Everything else (anchors, aliases, tags, keys given twice, more than one document, errors) raises NotPlain, and the
constructor of `parse.py` reads the file from its beginning. Tests prove that both give the same data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from agentv_ci.contracts.base import JsonValue
from agentv_ci.load.events import Event, LightScalarEvent, c_parser

MAX_DEPTH = 64
MAX_NODES = 1_000_000
MAX_DIGITS = 1_000
"""Of a number: more than is ever meant, and less than what Python refuses to write."""

_MAY_BE_NO_TEXT = frozenset("~nNtTfF.+-0123456789")
"""How plain scalars begin that may mean something else than their text."""
_SURROGATE = re.compile(r"\\[uU]0*[dD][89a-fA-F]")
"""An escape that may be half of a character."""


class NotPlain(Exception):
    """This file is for the constructor that knows all of YAML's core."""


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """A document of plain data."""

    data: JsonValue
    keys: frozenset[str]
    """Every key of every mapping in it."""
    items: Mapping[str, Sequence[tuple[Event, Event]]]
    """Of each list at its top level: the first and the last event of every item."""


def read_plain(text: str) -> PlainDocument:
    """Return the document in `text`; raises NotPlain for all that is not plain."""
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
    """Speed decides here: events are distinguished by their very class, and scalars are read where they are met."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._keys: set[str] = set()
        self._lists: list[list[tuple[Event, Event]]] = []
        """Of the document's second level, which are those of the first level's keys."""
        self._last: Event
        """The end of what was read last: a block collection's own end stands at the next token."""

    def document(self) -> PlainDocument:
        self._next()  # the stream's start
        if type(self._next()) is StreamEndEvent:
            raise NotPlain
        value = self._value(self._next(), 1)
        self._next()  # the document's end
        if type(self._next()) is not StreamEndEvent:
            raise NotPlain
        lists = [key for key, each in value.items() if isinstance(each, list)] if isinstance(value, dict) else []
        return PlainDocument(value, frozenset(self._keys), dict(zip(lists, self._lists, strict=False)))

    def _value(self, event: object, depth: int) -> JsonValue:
        if type(event) is LightScalarEvent:
            self._last = event
            return _scalar(event)
        if type(event) is MappingStartEvent or type(event) is SequenceStartEvent:
            if event.anchor is not None or event.ctag is not None or depth > MAX_DEPTH:
                raise NotPlain
            return self._mapping(depth) if type(event) is MappingStartEvent else self._sequence(depth)
        raise NotPlain

    def _mapping(self, depth: int) -> JsonValue:
        next_event = self._next
        data: dict[str, JsonValue] = {}
        while True:
            event = next_event()
            if type(event) is LightScalarEvent:
                key = event.value
                if event.anchor is not None or event.ctag is not None or key in data or key == "<<":
                    raise NotPlain
            elif type(event) is MappingEndEvent:
                self._keys.update(data)
                self._end(event)
                return data
            else:
                raise NotPlain
            event = next_event()
            if type(event) is LightScalarEvent:
                self._last = event
                data[key] = _scalar(event)
            else:
                data[key] = self._value(event, depth + 1)

    def _sequence(self, depth: int) -> JsonValue:
        next_event = self._next
        items: list[JsonValue] = []
        ends: list[tuple[Event, Event]] | None = None
        if depth == 2:
            ends = []
            self._lists.append(ends)
        while True:
            event = next_event()
            if type(event) is SequenceEndEvent:
                self._end(event)
                return items
            items.append(self._value(event, depth + 1))
            if ends is not None:
                ends.append((event, self._last))

    def _end(self, event: Event) -> None:
        if event.end_mark.index > event.start_mark.index:  # of a flow collection it is a bracket
            self._last = event


def _scalar(event: ScalarEvent) -> JsonValue:
    if event.anchor is not None or event.ctag is not None:
        raise NotPlain
    text: str = event.value
    if (not text or text[0] in _MAY_BE_NO_TEXT) and event.implicit[0]:
        try:
            return plain(text)
        except ValueError as error:
            raise NotPlain from error
    return text


def plain(text: str) -> JsonValue:
    """Return what a plain scalar means in the core schema of YAML 1.2.

    Raises ValueError for a number that is too long to be read.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if len(text) > MAX_DIGITS and (_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text) or _RADIX.fullmatch(text)):
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
