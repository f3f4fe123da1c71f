"""The layout of a YAML document: its indentation, spaces and blank lines.

Lines are moved and spaces changed in the text itself, at the positions that the parser reports. So
comments, anchors, quotes and wrapped texts stay as they are; a round trip through a parser and a
writer moves or joins them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentv_ci.contracts.source import Mark, locate
from agentv_ci.load.events import LINE_BREAK, Point

INDENT = 2
ENDS_OF_LINES = ("\r\n", "\n", "\r")
"""What becomes a line feed; other characters that break lines may belong to a text."""
_BREAK = re.compile(f"({LINE_BREAK.pattern})")
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]+)*")
"""Anchors and tags, which come before a value."""
_COLON, _COMMA, _SPACE = re.compile(r"\s*:\s*"), re.compile(r"\s*,\s*"), re.compile(r"\s*")
_END = re.compile(r"\s*,?\s*")


class CannotBeLaidOut(ValueError):
    """A document with a part whose place in the layout is unknown."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line + 1} cannot be moved")
        self.line = line
        """From 0."""


def layouts(text: str, mark: Mark, apart: str) -> Iterator[str]:
    """Yield a document in one layout, given the positions of its parts; raises CannotBeLaidOut.

    Items of the list `apart` have a blank line between them, no two blank lines follow each other,
    and the last line ends. Blank lines may belong to a text, so the next layout keeps them, and the
    last one also keeps the end.
    """
    layout = _Layout(text)
    layout.block(mark, 0)
    moved = layout.moved()
    items = locate(mark, (apart,)).parts
    later_lines: list[int] = []
    if isinstance(items, list):
        later_lines += (item.start[0] for item in items[1:])
    yield layout.squeezed(moved, later_lines)
    whole = "\n".join(moved)
    yield whole.rstrip("\n") + "\n"
    yield whole


class _Move(NamedTuple):
    """A key or a dash, and the column that it moves to."""

    line: int
    old_column: int
    column: int


class _Edit(NamedTuple):
    """A part of a line that is replaced."""

    line: int
    start: int
    end: int
    new: str


class _Layout:
    def __init__(self, text: str) -> None:
        pieces = _BREAK.split(text)
        self._lines = pieces[::2]
        self._breaks = ["\n" if end in ENDS_OF_LINES else end for end in pieces[1::2]]
        self._columns: dict[int, int] = {}
        """Line → the column that its first token moves to."""
        self._shifts: dict[int, int] = {}
        """Line inside a text or brackets → by how many columns it moves."""
        self._texts: set[int] = set()
        """Lines inside texts."""
        self._moves: list[_Move] = []
        """All keys and dashes, in order."""
        self._edits: list[_Edit] = []

    def block(self, mark: Mark, column: int) -> None:
        """Place the parts of a collection that is not in brackets."""
        if isinstance(mark.parts, dict):
            for key, value in _own(mark):
                self._begin(key.start, column)
                self._replace(key.end, value.start, _COLON, ": ", unless_empty=value)
                self._value(value, key.start, column)
        if not isinstance(mark.parts, list):
            return
        for item in mark.parts:
            dash = self._dash(item)
            self._begin(dash, column)
            self._replace((dash[0], dash[1] + 1), item.start, _SPACE, " ", unless_empty=item)
            self._value(item, dash, column)

    def _value(self, value: Mark, owner: Point, column: int) -> None:
        if value.start == value.end:
            return
        opening = self._opening(value)
        line, first = value.start
        is_alias = self._lines[line][first : first + 1] == "*"
        if opening is None and value.parts is not None and not is_alias:
            self.block(value, column + INDENT)
            return
        shift = column - owner[1]
        if value.start[0] > owner[0]:
            self._begin(value.start, column + INDENT)
            shift = column + INDENT - value.start[1]
        inside = range(value.start[0] + 1, value.end[0] + 1)
        self._shifts.update(dict.fromkeys(inside, shift))
        if opening is None:
            self._texts.update(inside)
        elif not inside:
            self._brackets(value, opening)

    def _brackets(self, mark: Mark, opening: int) -> None:
        """Set the spaces in brackets that are on one line."""
        line, last = mark.start[0], (mark.start[0], opening + 1)
        pairs = _own(mark)
        if not isinstance(mark.parts, dict):
            pairs = ((item, item) for item in mark.parts or ())
        before, between = _SPACE, ""
        for key, value in pairs:
            self._replace(last, key.start, before, between)
            before, between = _COMMA, ", "
            if key is not value:
                self._replace(key.end, value.start, _COLON, ": ", unless_empty=value)
            if (inner := self._opening(value)) is not None:
                self._brackets(value, inner)
            last = value.end
            if value.start == value.end:
                return
        self._replace(last, (line, mark.end[1] - 1), _END, "")

    def _opening(self, mark: Mark) -> int | None:
        """Return the column of the bracket that a collection begins with.

        None for any other value.
        """
        line, column = mark.start
        if mark.parts is None:
            return None
        text = self._lines[line]
        if (properties := _PROPERTIES.match(text, column)) is not None:
            column = properties.end()
        return column if text[column : column + 1] in ("{", "[") else None

    def _dash(self, item: Mark) -> Point:
        line, column = item.start
        while not (before := self._lines[line][:column].rstrip()).endswith("-"):
            line, column = line - 1, len(self._lines[line - 1].partition(" #")[0])
            if line < 0:
                raise CannotBeLaidOut(item.start[0])
        return line, len(before) - 1

    def _begin(self, old: Point, column: int) -> None:
        line, old_column = old
        self._moves.append(_Move(line, old_column, column))
        if not self._lines[line][:old_column].strip():
            self._columns[line] = column

    def _replace(
        self,
        start: Point,
        end: Point,
        old: re.Pattern[str],
        new: str,
        unless_empty: Mark | None = None,
    ) -> None:
        """Replace what is between two parts of a line, if it is only `old`."""
        if start[0] != end[0]:
            return
        if unless_empty is not None and unless_empty.start == unless_empty.end:
            return
        if old.fullmatch(self._lines[start[0]], start[1], end[1]):
            self._edits.append(_Edit(start[0], start[1], end[1], new))

    def moved(self) -> list[str]:
        """Return the lines in their places."""
        lines = list(self._lines)
        for number, start, end, new in sorted(self._edits, reverse=True):
            lines[number] = lines[number][:start] + new + lines[number][end:]
        for number, line in enumerate(lines):
            if number in self._shifts:
                shifted = _shifted(line, self._shifts[number])
                lines[number] = shifted if number in self._texts else shifted.rstrip()
            elif not line.strip():
                lines[number] = ""
            else:
                lines[number] = " " * self._column(number) + line.strip()
        return "".join(
            line + after for line, after in zip(lines, [*self._breaks, ""], strict=True)
        ).split("\n")

    def _column(self, number: int) -> int:
        """Return the new column of a line that is not inside of a text or brackets."""
        line = self._lines[number]
        if number in self._columns:
            return self._columns[number]
        old = len(line) - len(line.lstrip())
        if not line.lstrip().startswith(("#", "<<:", "---", "...", "%")):
            raise CannotBeLaidOut(number)
        place = bisect_right(self._moves, number, key=lambda move: move.line)
        column = 0
        if place < len(self._moves):
            following = self._moves[place]
            column = following.column
            if following.old_column == old:
                return column
        elif old == 0:
            return 0
        # A comment below the part that it is about, or a merge key.
        for preceding in map(self._moves.__getitem__, range(place - 1, -1, -1)):
            if preceding.old_column == old:
                return preceding.column
        return column

    def squeezed(self, lines: Sequence[str], apart: Sequence[int]) -> str:
        """Return the lines without blank lines that say nothing.

        There is one above each line of `apart`.
        """
        above = set(map(self._first_comment, apart))
        kept: list[str] = []
        for number, line in enumerate(lines):
            if number in above and kept and kept[-1]:
                kept.append("")
            if line or number in self._texts or (kept and kept[-1]):
                kept.append(line)
        return "\n".join(kept).rstrip("\n") + "\n"

    def _first_comment(self, number: int) -> int:
        """Return the first of the comments directly above a line; the line itself without any."""
        while number - 1 not in self._texts and self._lines[number - 1].lstrip().startswith("#"):
            number -= 1
        return number


def _own(mark: Mark) -> Iterator[tuple[Mark, Mark]]:
    """Yield keys and values of a mapping in their order, without those that are merged into it."""
    if not isinstance(mark.parts, dict):
        return
    for key, value in sorted(mark.parts.values(), key=_start):
        if mark.start <= key.start < mark.end:
            yield key, value


def _start(pair: tuple[Mark, Mark]) -> Point:
    return pair[0].start


def _shifted(line: str, by: int) -> str:
    if by >= 0:
        return " " * by + line if line else line
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(-by, spaces) :]
