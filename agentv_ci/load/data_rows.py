"""Read rows of data: CSV, JSON Lines, and lists in JSON and YAML."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentv_ci.base.json_access import finite_number, refuse_constant, well_formed
from agentv_ci.base.mappings import duplicates
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ANY_LENGTH, DATA_SUFFIXES, DataProblem, DataRow
from agentv_ci.load.events import Problem, Unparsable
from agentv_ci.load.parse import parse_yaml

_SPACE = " \t\r\n"


def read_rows(path: Path) -> Iterator[DataRow | DataProblem]:
    """Yield the rows of a file, of CSV and JSON Lines without reading all of it. Never raises."""
    try:
        match path.suffix.lower():
            case ".csv":
                yield from _csv_rows(path)
            case ".jsonl":
                yield from _json_lines(path)
            case ".json":
                yield from _json_rows(path)
            case ".yaml" | ".yml":
                yield from _yaml_rows(path)
            case other:
                hint = f"rows are read from files in {listed(DATA_SUFFIXES)}"
                message = f"'{other or path.name}' is not a format of rows"
                yield DataProblem("AV331", message, path, 1, 1, hint)
    except OSError as error:
        yield DataProblem("AV331", f"cannot be read: {error.strerror}", path, 1, 1)
    except UnicodeDecodeError:
        yield DataProblem("AV331", "not UTF-8", path, 1, 1)


def _csv_rows(path: Path) -> Iterator[DataRow | DataProblem]:
    """Yield the records of a CSV file (RFC 4180) with a header; all values are texts."""
    csv.field_size_limit(ANY_LENGTH)
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = csv.reader(file, strict=True)
        columns: Sequence[str] | None = None
        header = line = 1
        try:
            for fields in records:
                first, line = line, records.line_num + 1
                if not fields:
                    continue
                if columns is None:
                    columns, header = list(map(str.strip, fields)), first
                    if problem := _column_problem(columns):
                        yield DataProblem("AV331", problem, path, first, 1)
                        return
                elif len(fields) != len(columns):
                    message = (
                        f"{_fields(len(fields))}, "
                        f"but the header on line {header} has {len(columns)}"
                    )
                    hint = None
                    if len(fields) > len(columns):
                        hint = "quote a value that contains a comma"
                    yield DataProblem("AV331", message, path, first, 1, hint)
                else:
                    values: JsonObject = dict(zip(columns, fields, strict=True))
                    yield DataRow(values, path, first, 1, line - 1, header)
        except csv.Error as error:
            yield DataProblem("AV331", f"invalid CSV: {error}", path, line, 1)


def _column_problem(columns: Sequence[str]) -> str | None:
    if len(columns) == 1 and not {";", "\t"}.isdisjoint(columns[0]):
        return f"the header has one column, {columns[0]!r}; separate columns with commas"
    if "" in columns:
        return f"column {columns.index('') + 1} of the header has no name"
    twice = duplicates(columns)
    return f"the header names {listed(map(repr, twice))} twice" if twice else None


def _fields(number: int) -> str:
    return counted(number, "field")


def _json_lines(path: Path) -> Iterator[DataRow | DataProblem]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                try:
                    value = well_formed(_DECODER.decode(text))
                except (ValueError, RecursionError) as error:
                    yield _json_problem(error, path, line, 1)
                else:
                    yield _row(value, path, line, 1, line)


def _json_rows(path: Path) -> Iterator[DataRow | DataProblem]:
    text = path.read_text("utf-8-sig")
    at = _next(text, 0)
    if not text.startswith("[", at):
        yield _not_a_list(path)
        return
    at = _next(text, at + 1)
    line, counted, line_start = 1, 0, 0
    while not text.startswith("]", at):
        line += text.count("\n", counted, at)
        line_start = max(line_start, text.rfind("\n", counted, at) + 1)
        try:
            value, end = _DECODER.raw_decode(text, at)
            value = well_formed(value)
        except json.JSONDecodeError as error:
            yield _json_problem(error, path, 1, 1)
            return
        except (ValueError, RecursionError) as error:
            yield _json_problem(error, path, line, at - line_start + 1)
            return
        end_line = line + text.count("\n", at, end)
        yield _row(value, path, line, at - line_start + 1, end_line)
        counted = at
        at = _next(text, end)
        if text.startswith(",", at):
            at = _next(text, at + 1)
        elif not text.startswith("]", at):
            yield _json_problem(json.JSONDecodeError("Expecting ',' or ']'", text, at), path, 1, 1)
            return


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Return an object; raises ValueError for a key that is given twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        key, *_ = duplicates(key for key, _ in pairs)
        raise ValueError(f"key '{key}' is given twice")
    return found


_DECODER = json.JSONDecoder(
    parse_constant=refuse_constant, parse_float=finite_number, object_pairs_hook=_unique
)


def _next(text: str, at: int) -> int:
    """Return the position of the next character that is not white space."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _json_problem(error: Exception, path: Path, line: int, column: int) -> DataProblem:
    if isinstance(error, json.JSONDecodeError):
        return DataProblem(
            "AV331", f"invalid JSON: {error.msg}", path, line + error.lineno - 1, error.colno
        )
    reason = "nested too deep" if isinstance(error, RecursionError) else error
    if "int_max_str_digits" in str(error):
        reason = "the number is too long"
    return DataProblem("AV331", f"invalid JSON: {reason}", path, line, column)


def _yaml_rows(path: Path) -> Iterator[DataRow | DataProblem]:
    try:
        parsed = parse_yaml(path.read_text("utf-8-sig"))
    except Unparsable as error:
        yield _yaml_problem(error.problem, path)
        return
    if parsed.problems:
        for problem in parsed.problems:
            yield _yaml_problem(problem, path)
        return
    marks = parsed.find_mark().parts
    if not isinstance(parsed.data, list) or not isinstance(marks, list):
        yield _not_a_list(path)
        return
    for value, mark in zip(parsed.data, marks, strict=True):
        (line, column), (end_line, _) = mark.start, mark.end
        yield _row(value, path, line + 1, column + 1, end_line + 1)


def _yaml_problem(problem: Problem, path: Path) -> DataProblem:
    line, column = problem.start
    return DataProblem("AV331", problem.message, path, line + 1, column + 1, problem.hint)


def _not_a_list(path: Path) -> DataProblem:
    return DataProblem(
        "AV331", "the file must be a list of rows", path, 1, 1, "a row is a mapping: name → value"
    )


def _row(
    value: JsonValue, path: Path, line: int, column: int, end_line: int
) -> DataRow | DataProblem:
    if isinstance(value, dict):
        return DataRow(value, path, line, column, end_line)
    return DataProblem("AV331", "a row must be a mapping: name → value", path, line, column)
