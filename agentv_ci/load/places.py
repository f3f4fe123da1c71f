"""Where the parsers' events stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

Point = tuple[int, int]
"""Line and column, both from 0."""

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class Event(Protocol):
    """What both parsers' events have."""

    start_mark: Position
    end_mark: Position


class Position(Protocol):
    """A place, from 0."""

    line: int
    column: int


def span(event: Event) -> tuple[Point, Point]:
    """Return where an event begins and ends."""
    start, end = event.start_mark, event.end_mark
    return (start.line, start.column), (end.line, end.column)


def block_end(lines: Sequence[str], start: Point, end: Point) -> Point:
    """Return where a block scalar ends: its own end mark stands behind its trailing line breaks."""
    line = min(end[0], len(lines)) - (1 if end[1] == 0 else 0)
    while line > start[0] and not lines[line].strip():
        line -= 1
    return (line, len(lines[line]))
