"""Events of the C parser as structs, which halves the time of parsing.

The parser takes the classes of its events from the names in its module, not from an argument. This
is the one place that reaches into that module; see ADR 5.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import astuple
from ruamel.yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

try:
    from ruamel.yaml import CParser  # type: ignore[attr-defined]  # needs the C extension
except (
    ImportError
):  # pragma: no cover  # the wheel of ruamel.yaml.clib does not exist for this platform
    CParser = None


class Event(Protocol):
    """What the events of both parsers have in common."""

    start_mark: Position
    end_mark: Position


class Position(Protocol):
    """A position; counts from 0."""

    line: int
    column: int


class RawScalar(Struct, gc=False):
    """A text, number or other value, as the C parser describes it."""

    anchor: str | None
    tag: str | None
    implicit: tuple[bool, bool]
    value: str
    start: Position
    end: Position
    style: str


class RawStart(Struct, gc=False):
    """The start of a collection."""

    anchor: str | None
    tag: str | None
    implicit: bool
    start: Position
    end: Position
    flow_style: bool


class RawMappingStart(RawStart):
    """The start of a mapping."""


class RawSequenceStart(RawStart):
    """The start of a list."""


class RawEnd(Struct, gc=False):
    """The end of a collection; that of a block is at the next token."""

    start: Position
    end: Position


class RawMappingEnd(RawEnd):
    """The end of a mapping."""


class RawSequenceEnd(RawEnd):
    """The end of a list."""


RawEvent = RawScalar | RawStart | RawEnd

_IN_FULL: Mapping[type[RawEvent], type[Any]] = {
    RawScalar: ScalarEvent,
    RawMappingStart: MappingStartEvent,
    RawSequenceStart: SequenceStartEvent,
    RawMappingEnd: MappingEndEvent,
    RawSequenceEnd: SequenceEndEvent,
}

if CParser is not None:
    vars(sys.modules[CParser.__module__]).update(
        {full.__name__: raw for raw, full in _IN_FULL.items()}
    )


def c_parser(text: str) -> Callable[[], Any] | None:
    """Return the C parser's function for the next event, raw where possible.

    None without the C extension.
    """
    return CParser(text).get_event if CParser is not None else None


def in_full(event: RawEvent | Event) -> Event:
    """Return an event of the C parser as ruamel's own parser creates it."""
    full: Event = _IN_FULL[type(event)](*astuple(event)) if isinstance(event, RawEvent) else event
    return full
