"""Where the parsers' events stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from agentv_ci.contracts.source import Mark

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


class Extent(NamedTuple):
    """Where a value begins, and the last part of it that has an end of its own."""

    start: Point
    last: tuple[Point, Point]
    is_block: bool
    """Whether the last part is a block scalar."""


def span(event: Event) -> tuple[Point, Point]:
    """Return where an event begins and ends."""
    start, end = event.start_mark, event.end_mark
    return (start.line, start.column), (end.line, end.column)


def extent(first: Event, last: Event) -> Extent:
    """Return from where to where a value stands, of which these are the first and the last event."""
    start = first.start_mark
    return Extent((start.line, start.column), span(last), getattr(last, "style", None) in BLOCKS)


def marks(text: str, extents: Sequence[Extent]) -> Iterator[Mark]:
    """Yield the marks of values in `text`; what is in them is left out."""
    lines = LINE_BREAK.split(text)
    for start, last, is_block in extents:
        yield Mark(start, block_end(lines, *last) if is_block else last[1], None)


def block_end(lines: Sequence[str], start: Point, end: Point) -> Point:
    """Return where a block scalar ends: its own end mark stands behind its trailing line breaks."""
    line = min(end[0], len(lines)) - (1 if end[1] == 0 else 0)
    while line > start[0] and not lines[line].strip():
        line -= 1
    return (line, len(lines[line]))
