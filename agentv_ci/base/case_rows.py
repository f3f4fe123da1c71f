"""Make cases from rows of data.

The texts of a case, its template, are filled with the values of each row. Only `{{ name }}` is a
variable. Values are filled in once: braces in them are text.
"""

from __future__ import annotations

import heapq
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from pydantic import ValidationError

from agentv_ci.base.canonical import digest_of, exact
from agentv_ci.base.json_access import found_at
from agentv_ci.base.mappings import without
from agentv_ci.base.text import did_you_mean, listed, quoted, shortened
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DataProblem, DataRow, ReadRows
from agentv_ci.contracts.evals import CasesFrom, EvalCase
from agentv_ci.contracts.judge_evaluators import AGGREGATOR_VARIABLES, PROMPT_VARIABLES
from agentv_ci.contracts.source import Mark, Pointer, Source, diagnostic_at, locate

VARIABLE = re.compile(r"\{\{(?!\{)(?=\s*[^\s{}])([^{}]{1,200})\}\}")
ROW_FIELDS = frozenset({"cases_from", "casesFrom", "vars"})
"""Fields of a template that say where its rows come from."""
PROMPTS = frozenset({"prompt", "llm_judge"})
"""Keys of texts with variables of their own, which a judge's question fills in."""
FREE = frozenset(
    {
        "metadata",
        "config",
        "content",
        "input",
        "output",
        "reference",
        "schema_inline",
        "schemaInline",
    }
)
"""Keys of data below which values may have any type."""
OF_JUDGES = frozenset({*PROMPT_VARIABLES, *AGGREGATOR_VARIABLES})
ID_DIGITS = 12
LONGEST = 2_000
"""Characters of a message; rows may have thousands of columns."""

Filler = Callable[[JsonObject], JsonValue]


class FilledCase(NamedTuple):
    """A case as it would be written, and its row."""

    data: JsonObject
    row: DataRow

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.data["id"])


def is_template(case: JsonValue) -> bool:
    """Whether rows make cases of a case, as written."""
    # Asked for every case: not whether one of all its keys is among the fields.
    return isinstance(case, dict) and any(map(case.__contains__, ROW_FIELDS))


def ids_of_rows(template: str) -> str:
    """Return a glob of the ids of the cases that a template with this id makes."""
    ids = VARIABLE.sub("*", template)
    if ids == template:
        return f"{template}-*"
    return ids


def problem_diagnostic(problem: DataProblem) -> Diagnostic:
    """Return the diagnostic of a mistake in rows."""
    point = problem.line - 1, problem.column - 1
    return diagnostic_at(
        Mark(point, point, None),
        problem.rule,
        shortened(problem.message, LONGEST),
        problem.path,
        hint=shortened(problem.hint or "", LONGEST) or None,
    )


class _Missing(LookupError):
    """The row has no value for a variable."""


class _Ambiguous(ValueError):
    """The value of a variable has variables, and is for a prompt.

    There, the judge's would be replaced.
    """


def filled_cases(
    case: EvalCase, pointer: Pointer, source: Source, read_rows: ReadRows
) -> Iterator[FilledCase | DataProblem]:
    """Yield a case for each row of a template at `pointer`, or what is wrong with the row."""
    written = found_at(source.data, *pointer)[0]
    assert isinstance(written, dict)
    line = locate(source.mark, pointer).start[0] + 1
    template = _Template(without(written, ROW_FIELDS), f"{source.path.name}:{line}")
    rows: Iterable[DataRow | DataProblem]
    constants: JsonObject = {}
    if case.cases_from is None:
        rows = _inline_rows(case, pointer, source)
    else:
        rows = _rows_from(case.cases_from, source, read_rows)
        constants = case.cases_from.vars or {}
    for row in rows:
        if isinstance(row, DataRow):
            yield template.filled(row, constants)
        else:
            yield row


def _inline_rows(case: EvalCase, pointer: Pointer, source: Source) -> Iterator[DataRow]:
    for index, values in enumerate(case.vars or ()):
        (line, column), (end_line, _), _ = locate(source.mark, (*pointer, "vars", index))
        yield DataRow(values, source.path, line + 1, column + 1, end_line + 1)


def _rows_from(
    setting: CasesFrom, source: Source, read_rows: ReadRows
) -> Iterable[DataRow | DataProblem]:
    rows = islice(
        read_rows(source.resolve(setting.file)), min(setting.limit or sys.maxsize, sys.maxsize)
    )
    if setting.sample is None:
        return rows
    seed = setting.sample.seed

    def order(numbered: tuple[int, DataRow | DataProblem]) -> str:
        # A row keeps its place in the order when others come and go; problems come first.
        row = numbered[1]
        if not isinstance(row, DataRow):
            return ""
        return digest_of(f"{seed} {exact(row.values)}")

    chosen = heapq.nsmallest(setting.sample.n, enumerate(rows), key=order)
    return [row for _, row in sorted(chosen, key=lambda numbered: numbered[0])]


class _Template:
    """The texts of a case that have variables."""

    def __init__(self, data: JsonObject, place: str) -> None:
        self._data = data
        self._place = place
        self._variables: list[tuple[str, bool]] = []
        """Their names, and whether the value must be a text."""
        self._fill = self._filler(data, ())
        self._has_own_ids = VARIABLE.search(str(data.get("id"))) is not None

    def filled(self, row: DataRow, constants: JsonObject) -> FilledCase | DataProblem:
        """Return the case of a row, or which variable it lacks."""
        values = constants | row.values
        try:
            data = self._fill(values) if self._fill is not None else self._data
        except _Missing:
            return self._problem(row, values)
        except _Ambiguous as error:
            variables = f"the value of '{error}' has {{{{ … }}}}"
            message = f"{variables}, which a judge's prompt would replace"
            hint = "name the variable outside of prompts"
            return DataProblem("AV332", message, row.path, row.line, row.column, hint)
        assert isinstance(data, dict)
        if not self._has_own_ids:
            data = data | {"id": f"{data['id']}-{digest_of(exact(row.values))[:ID_DIGITS]}"}
        return FilledCase(data, row)

    def _problem(self, row: DataRow, values: JsonObject) -> DataProblem:
        names: dict[str, None] = {}
        for name, is_text in self._variables:
            if not _is_there(values, name, is_text=is_text):
                names[name] = None
        used = listed(f"'{{{{ {name} }}}}'" for name in names)
        case = f"the case '{self._data.get('id')}' ({self._place})"
        return DataProblem(
            "AV332",
            "; ".join(_lacking(names, row, values)),
            row.path,
            row.header or row.line,
            row.column,
            f"{case} has {used}; available: {listed(values)}",
        )

    def _filler(self, value: JsonValue, way: Pointer) -> Filler | None:
        """Return what fills a part of the template; None if it has no variables."""
        if isinstance(value, str):
            return self._text_filler(value, way)
        if isinstance(value, dict):
            return self._object_filler(value, way)
        if isinstance(value, list):
            return self._list_filler(value, way)
        return None

    def _object_filler(self, value: JsonObject, way: Pointer) -> Filler | None:
        fillers: dict[str, Filler] = {}
        for key, item in value.items():
            if fill := self._filler(item, (*way, key)):
                fillers[key] = fill
        if not fillers:
            return None
        return lambda row: value | {key: fill(row) for key, fill in fillers.items()}

    def _list_filler(self, value: list[JsonValue], way: Pointer) -> Filler | None:
        fillers = [self._filler(item, (*way, index)) for index, item in enumerate(value)]
        if not any(fillers):
            return None
        both = tuple(zip(fillers, value, strict=True))
        return lambda row: [fill(row) if fill else item for fill, item in both]

    def _text_filler(self, text: str, way: Pointer) -> Filler | None:
        is_prompt = way[-1] in PROMPTS and "evaluators" in way and "config" not in way
        kept = OF_JUDGES if is_prompt else frozenset[str]()
        used = (variable[1].strip() for variable in VARIABLE.finditer(text))
        names = [name for name in used if name not in kept]
        if not names:
            return None
        if VARIABLE.fullmatch(text) and not FREE.isdisjoint(way) and self._takes_numbers(way):
            self._variables.append((names[0], False))
            return lambda row: _value(row, names[0])
        self._variables += ((name, True) for name in names)

        def replaced(row: JsonObject, variable: re.Match[str]) -> str:
            name = variable[1].strip()
            if name in kept:
                return variable[0]
            value = _text(row, name)
            if kept and VARIABLE.search(value):
                raise _Ambiguous(name)
            return value

        return lambda row: VARIABLE.sub(partial(replaced, row), text)

    def _takes_numbers(self, way: Pointer) -> bool:
        """Whether the value there may have any type, so that the row's value keeps its own."""
        try:
            EvalCase.model_validate(_replaced(self._data, way, 0))
        except ValidationError:
            return False
        return True


def _lacking(names: Iterable[str], row: DataRow, values: JsonObject) -> Iterator[str]:
    """Yield which variables a row has no value or no text for."""
    absent = [f"'{name}'{did_you_mean(name, values)}" for name in names if name not in values]
    if absent:
        lacks = "the header has no column" if row.header else "the row has no value for"
        yield f"{lacks} {listed(absent)}"
    if null := list(filter(values.__contains__, names)):
        yield f"the value of {quoted(null)} is null, not a text"


def _replaced(value: JsonValue, way: Pointer, new: JsonValue) -> JsonValue:
    if not way:
        return new
    match value, way[0]:
        case dict(), str() as key:
            return value | {key: _replaced(value[key], way[1:], new)}
        case list(), int() as index:
            return [*value[:index], _replaced(value[index], way[1:], new), *value[index + 1 :]]
        case _:
            raise AssertionError(way)


def _value(row: JsonObject, name: str) -> JsonValue:
    """Return a value by its name, or by a path such as `user.name`; raises _Missing."""
    values = _found(row, name)
    if not values:
        raise _Missing(name)
    return values[0]


def _found(row: JsonObject, name: str) -> tuple[JsonValue, ...]:
    if name in row:
        return (row[name],)
    return found_at(row, *name.split("."))


def _is_there(row: JsonObject, name: str, *, is_text: bool) -> bool:
    values = _found(row, name)
    if not values:
        return False
    return not is_text or values[0] is not None


def _text(row: JsonObject, name: str) -> str:
    value = _value(row, name)
    if value is None:
        raise _Missing(name)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
