"""The events that ruamel.yaml's parsers give, and where they stand."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ruamel.yaml import YAML
from ruamel.yaml.events import ScalarEvent

from agentv_ci.contracts.source import Mark

try:
    from ruamel.yaml import CParser  # type: ignore[attr-defined]  # only there with the C extension
except ImportError:  # pragma: no cover  # the wheel of ruamel.yaml.clib does not exist for this platform
    CParser = None

Point = tuple[int, int]
"""Line and column, both from 0."""

BLOCKS = ("|", ">")
"""Styles of block scalars."""

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class Event(Protocol):
    """What both parsers' events have."""

    start_mark: Position
    end_mark: Position


class Position(Protocol):
    """A place, from 0."""

    line: int
    column: int
    index: int


class LightScalarEvent(ScalarEvent):
    """The same event, made by one call instead of three: half of the time of a parse goes into making events."""

    __slots__ = ()

    def __init__(  # as the C parser calls it
        self,
        anchor: str | None,
        tag: object,
        implicit: tuple[bool, bool],
        value: str,
        start_mark: object = None,
        end_mark: object = None,
        style: str | None = None,
        comment: object = None,
    ) -> None:
        self.anchor = anchor
        self.ctag = tag
        self.implicit = implicit
        self.value = value
        self.start_mark = start_mark
        self.end_mark = end_mark
        self.style = style
        self.comment = comment


if CParser is not None:
    # NOTE: the C parser looks its event classes up in its module and takes none as an argument; ADR 5 has the figures.
    vars(sys.modules[CParser.__module__])["ScalarEvent"] = LightScalarEvent


def c_parser(text: str) -> Callable[[], Any] | None:
    """Return the C parser's function that gives the next event, or None where there is no C parser."""
    return CParser(text).get_event if CParser is not None else None


def own_events(text: str) -> Iterator[Event]:
    """Return the events of ruamel's own parser, which is slow and reads all of YAML."""
    events: Iterator[Event] = YAML(typ="safe", pure=True).parse(io.StringIO(text))
    return events


def span(event: Event) -> tuple[Point, Point]:
    """Return where an event begins and ends."""
    start, end = event.start_mark, event.end_mark
    return (start.line, start.column), (end.line, end.column)


def marks(text: str, values: Sequence[tuple[Event, Event]]) -> Iterator[Mark]:
    """Yield the marks of values, each given by its first event and its last; what is in them is left out."""
    lines = LINE_BREAK.split(text)
    for first, last in values:
        start, end = span(last)
        yield Mark(
            span(first)[0], block_end(lines, start, end) if getattr(last, "style", None) in BLOCKS else end, None
        )


def block_end(lines: Sequence[str], start: Point, end: Point) -> Point:
    """Return where a block scalar ends: its own end mark stands behind its trailing line breaks."""
    line = min(end[0], len(lines)) - (1 if end[1] == 0 else 0)
    while line > start[0] and not lines[line].strip():
        line -= 1
    return (line, len(lines[line]))
