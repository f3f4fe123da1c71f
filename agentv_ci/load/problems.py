"""What is wrong with a file that is no YAML, in words for people who do not know the parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from agentv_ci.load.events import Event, Point, span


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with the file that is known before anyone looks at its meaning."""

    rule: str
    message: str
    start: Point
    end: Point
    hint: str | None = None


class Unparsable(ValueError):
    """There is no document to speak of."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.message} (line {problem.start[0] + 1})")
        self.problem = problem


class Foreign(Unparsable):
    """It is YAML, and beyond its core: a document for another program."""


def foreign_tag(tag: object, event: Event) -> Foreign:
    """Return what to raise for a tag that a node has."""
    hint = "if a text was meant that begins with !, put it in quotes"
    return Foreign(Problem("AV101", f"tag '{tag}' is not part of YAML's core", *span(event), hint=hint))


def too_large(event: Event, most: int) -> Unparsable:
    """Return what to raise for a document of more than `most` values."""
    return Unparsable(Problem("AV101", f"more than {most:,} values after expanding aliases", *span(event)))


def syntax_problem(text: str, error: YAMLError) -> Problem:
    """Return what a parser says of `text`."""
    if isinstance(error, ReaderError):
        before = text[: error.position]
        point = (before.count("\n"), len(before) - (before.rfind("\n") + 1))
        code = error.character if isinstance(error.character, int) else ord(error.character)
        return Problem("AV101", f"character U+{code:04X} is not allowed in YAML", point, point)
    if not isinstance(error, MarkedYAMLError):
        return Problem("AV101", " ".join(str(error).split()), (0, 0), (0, 0))
    mark = error.problem_mark or error.context_mark
    point = (mark.line, mark.column) if mark else (0, 0)
    begun = (error.context_mark.line, error.context_mark.column) if error.context_mark else point
    complaint = ", ".join(part for part in (error.context, error.problem) if part)
    if known := _known(complaint, point, begun):
        return known
    since = f" (it begins at line {begun[0] + 1}, column {begun[1] + 1})" if begun != point else ""
    return Problem("AV101", f"not valid YAML: {complaint}{since}", point, point)


def _known(complaint: str, point: Point, begun: Point) -> Problem | None:
    """Return better words for what people mostly do."""

    def problem(message: str, hint: str, place: Point = point) -> Problem:
        return Problem("AV101", f"not valid YAML: {message}", place, place, hint)

    if "mapping values are not allowed here" in complaint:
        return problem("': ' inside a text", "put the text in quotes, or behind key: | on lines of its own")
    if "found character '\\t'" in complaint:
        return problem("a tab where a value or a key should begin", "YAML indents with spaces")
    if match := re.search(r"found character '(.)' that cannot start any token", complaint):
        return problem(f"a text cannot begin with {match[1]}", "put the text in quotes")
    if match := re.search(r"found unknown escape character '(.)'", complaint):
        hint = f"in single quotes a backslash is a backslash: '\\{match[1]}'"
        return problem(f"\\{match[1]} means nothing in double quotes", hint)
    if "while scanning a quoted scalar" in complaint and "end of stream" in complaint:
        return problem("this quote is never closed", "close it, or write '' for an apostrophe in single quotes", begun)
    if "could not find expected ':'" in complaint:
        return problem("a line without ': '", "a key has a colon and a space behind it", begun)
    if "while parsing a flow" in complaint and "'<stream end>'" in complaint:
        return problem("this bracket is never closed", "close it; lines inside brackets end with a comma", begun)
    if "while parsing a block" in complaint and "<block end>" in complaint:
        message = f"this does not continue what begins on line {begun[0] + 1}"
        return problem(message, "lines of one level are indented alike; a quoted text goes to its last quote")
    return None
