"""Events of ruamel.yaml's parsers, their positions, and readable syntax errors."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from agentv_ci.contracts.diagnostics import SPACE_HINT
from agentv_ci.contracts.environment_references import REFERENCE_LIKE
from agentv_ci.contracts.source import Mark
from agentv_ci.load.c_events import Event, Position, RawEvent, RawScalar

Point = tuple[int, int]
"""Line and column, both from 0."""

BLOCKS = ("|", ">")
"""Styles of block scalars."""

_NO_SPACE = re.compile(r"[ ]*-(?=[\w\"'$][^:]*:(?:\s|$))")

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def own_events(text: str) -> Iterator[Event]:
    """Return the events of ruamel's own parser, which is slow and supports all of YAML."""
    events: Iterator[Event] = YAML(typ="safe", pure=True).parse(io.StringIO(text))
    return events


def span(event: Event) -> tuple[Point, Point]:
    """Return the start and end of an event."""
    return _point(event.start_mark), _point(event.end_mark)


def _point(position: Position) -> Point:
    return position.line, position.column


def marks(text: str, values: Sequence[tuple[RawEvent, RawEvent]]) -> Iterator[Mark]:
    """Yield the marks of values, given by their first and last events; parts are omitted."""
    lines: Sequence[str] = ()
    for first, last in values:
        end = _point(last.end)
        if isinstance(last, RawScalar) and last.style in BLOCKS:
            lines = lines or LINE_BREAK.split(text)
            end = block_end(lines, _point(last.start), end)
        yield Mark(_point(first.start), end, None)


def block_end(lines: Sequence[str], start: Point, end: Point) -> Point:
    """Return the end of a block scalar's text; its end mark is after the trailing line breaks."""
    line = min(end[0], len(lines)) - (1 if end[1] == 0 else 0)
    while line > start[0] and not lines[line].strip():
        line -= 1
    return (line, len(lines[line]))


class Problem(Struct, frozen=True):
    """A problem of the file itself."""

    rule: str
    message: str
    start: Point
    end: Point
    hint: str | None = None


class Unparsable(ValueError):
    """A file that is not a readable YAML document."""

    def __init__(
        self,
        message: str,
        start: Point = (0, 0),
        end: Point | None = None,
        *,
        rule: str = "AV101",
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{message} (line {start[0] + 1})")
        self.problem = Problem(rule, message, start, end or start, hint)


def syntax_error(text: str, error: YAMLError) -> Unparsable:
    """Return a parser's error as a problem of `text`."""
    if isinstance(error, ReaderError):
        before = text[: error.position]
        point = (before.count("\n"), len(before) - (before.rfind("\n") + 1))
        code = error.character if isinstance(error.character, int) else ord(error.character)
        return Unparsable(f"character U+{code:04X} is not allowed in YAML", point)
    if not isinstance(error, MarkedYAMLError):
        return Unparsable(" ".join(str(error).split()))
    mark = error.problem_mark or error.context_mark
    point = (mark.line, mark.column) if mark else (0, 0)
    begun = (error.context_mark.line, error.context_mark.column) if error.context_mark else point
    complaint = ", ".join(filter(None, (error.context, error.problem)))
    if known := _misread(LINE_BREAK.split(text), complaint, point) or _known(
        complaint, point, begun
    ):
        return known
    since = f" (it starts at line {begun[0] + 1}, column {begun[1] + 1})" if begun != point else ""
    return Unparsable(f"not valid YAML: {complaint}{since}", point)


def _misread(lines: Sequence[str], complaint: str, point: Point) -> Unparsable | None:
    """Return a clearer message for a common mistake that is visible in the lines."""
    number, column = point
    line = lines[number] if number < len(lines) else ""
    if line.lstrip().startswith("```"):
        return Unparsable(
            "not valid YAML: a Markdown code fence", point, hint="remove the ``` line"
        )
    if found := REFERENCE_LIKE.match(line, max(column - 1, 0)):
        message = f"not valid YAML: unquoted {found[0]} inside brackets"
        return Unparsable(message, (number, found.start()), hint=f"quote it: '{found[0]}'")
    near = (number, _line_before(lines, number)) if "mapping values" in complaint else (number,)
    for index in near:
        if index < len(lines) and (dash := _NO_SPACE.match(lines[index])):
            place = index, dash.end() - 1
            return Unparsable("not valid YAML: '-' without a space", place, hint=SPACE_HINT)
    return None


def _line_before(lines: Sequence[str], number: int) -> int:
    """Return the index of the last line with text before a line; its own without one."""
    for index in reversed(range(number)):
        if lines[index].strip():
            return index
    return number


def _known(complaint: str, point: Point, begun: Point) -> Unparsable | None:
    """Return a clearer message for a common mistake."""

    def problem(message: str, hint: str, place: Point = point) -> Unparsable:
        return Unparsable(f"not valid YAML: {message}", place, hint=hint)

    if "mapping values are not allowed here" in complaint:
        return problem(
            "': ' inside an unquoted value",
            "quote the value, or write it as a block after 'key: |'",
        )
    if "found character '\\t'" in complaint:
        return problem("a tab cannot start a key or a value", "indent with spaces")
    if match := re.search(r"found character '(.)' that cannot start any token", complaint):
        return problem(f"an unquoted value cannot start with '{match[1]}'", "quote the value")
    if match := re.search(r"found unknown escape character '(.)'", complaint):
        hint = f"use single quotes, where a backslash is literal: '\\{match[1]}'"
        return problem(f"\\{match[1]} is not an escape sequence", hint)
    if "while scanning a quoted scalar" in complaint and "end of stream" in complaint:
        return problem(
            "unclosed quote", "close it, or write '' for an apostrophe inside single quotes", begun
        )
    if "could not find expected ':'" in complaint:
        return problem("expected ': ' after a key", "write the key as 'key: value'", begun)
    if "while parsing a flow" in complaint and "'<stream end>'" in complaint:
        return problem(
            "unclosed bracket", "close it, and separate items inside brackets with commas", begun
        )
    if "while parsing a block" in complaint and "<block end>" in complaint:
        message = f"this does not continue the block that starts on line {begun[0] + 1}"
        return problem(
            message, "indent all lines of a block alike, and write nothing after a closing quote"
        )
    return None
