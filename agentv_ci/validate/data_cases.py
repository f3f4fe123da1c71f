"""Check cases that are made from rows of data, each as if it were written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace
from pydantic import ValidationError

from agentv_ci.base.case_rows import VARIABLE, FilledCase, filled_cases, problem_diagnostic
from agentv_ci.base.json_access import found_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import FIXED_RULES, Diagnostic
from agentv_ci.contracts.documents import DataProblem
from agentv_ci.contracts.evals import EvalCase, EvalDocument
from agentv_ci.contracts.source import SHORT_FORMS, Pointer, locate, spell
from agentv_ci.jsonschema.schemas import SCHEMAS
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.file_references import check_reference
from agentv_ci.validate.walk import as_written

CHUNK = 200
"""Rows that are checked together."""
MAX_DIAGNOSTICS = 20
"""Of one template; a mistake in the template is usually one in every row."""
COMMANDS = ("script", "code")
HOLD_EVALUATORS = ("evaluators", "execution", "aggregator")
"""Keys on the way to a command."""

Rules = Callable[[EvalDocument, Finder], Iterator[Diagnostic]]


class RowFinder(Finder, frozen=True):
    """Places what a row filled in at the row, and everything else at the template."""

    filled: Sequence[FilledCase] = ()

    def at(
        self,
        rule: str,
        message: str,
        pointer: Pointer,
        *,
        key: bool = False,
        hint: str | None = None,
    ) -> Diagnostic:
        """Return a diagnostic about a part of a case; the cases are numbered like the rows."""
        diagnostic = super().at(rule, message, pointer, key=key, hint=hint)
        match pointer:
            case ("evalcases", int() as index, *_) if self._is_filled(pointer, rule):
                case = self.filled[index]
                row = case.row
                return replace(
                    diagnostic,
                    path=str(row.path),
                    line=row.line,
                    column=row.column,
                    end_line=row.line,
                    end_column=row.column,
                    case=case.id,
                )
            case _:
                return diagnostic

    def _is_filled(self, pointer: Pointer, rule: str) -> bool:
        """Whether the text there, or a part of it, has variables.

        The id stands for the case in most rules.
        """
        _, _, *rest = pointer
        if rest == ["id"] and not rule.startswith("AV2"):
            return False
        if self._has_variables(pointer):
            return True
        short = SHORT_FORMS.get(str(rest[0])) if rest else None
        return short is not None and self._has_variables((*pointer[:2], short))

    def _has_variables(self, pointer: Pointer) -> bool:
        way = as_written(self.source.data, self.authored(pointer))
        return any(map(_has_variables, found_at(self.source.data, *way)))


def _has_variables(value: JsonValue) -> bool:
    match value:
        case str():
            return VARIABLE.search(value) is not None
        case dict():
            return any(map(_has_variables, value.values()))
        case list():
            return any(map(_has_variables, value))
        case _:
            return False


def check(document: EvalDocument, find: Finder, rules: Rules) -> Iterator[Diagnostic]:
    """AV331 and AV332 for rows, AV301 for ids of their cases, and all rules for what they make."""
    written = [index for index, case in enumerate(document.evalcases) if not case.is_template]
    # Rules for the file itself find the same with every part.
    seen = dict.fromkeys(rules(*_part(document, find, written)))
    yield from seen
    ids = {document.evalcases[index].id: _place(find, ("evalcases", index)) for index in written}
    for index, case in enumerate(document.evalcases):
        if case.is_template:
            yield from _bounded(_check_template(document, index, find, rules, ids), seen)


def _bounded(found: Iterable[Diagnostic], seen: dict[Diagnostic, None]) -> Iterator[Diagnostic]:
    """Yield what was not seen before: at most 20, and always an error that cannot be turned off."""
    shown = refused = 0
    for diagnostic in found:
        if diagnostic in seen:
            continue
        seen[diagnostic] = None
        is_fixed = diagnostic.rule in FIXED_RULES
        if shown < MAX_DIAGNOSTICS or (is_fixed and not refused):
            shown += 1
            yield diagnostic
        refused += is_fixed
        if refused == MAX_DIAGNOSTICS:
            return


def _place(find: Finder, pointer: Pointer) -> str:
    line = locate(find.source.mark, find.authored(pointer)).start[0] + 1
    return f"{find.source.path.name}:{line}"


def _part(
    document: EvalDocument, find: Finder, indexes: Sequence[int]
) -> tuple[EvalDocument, Finder]:
    """Return a document with some of the cases, and its finder."""
    authored: list[int] = []
    for index in indexes:
        _, step = find.authored(("evalcases", index))
        assert isinstance(step, int), "cases are in a list"
        authored.append(step)
    survivors = {**find.survivors, ("evalcases",): tuple(authored)}
    cases = tuple(document.evalcases[index] for index in indexes)
    return _with_cases(document, cases), replace(find, survivors=survivors)


def _with_cases(document: EvalDocument, cases: tuple[EvalCase, ...]) -> EvalDocument:
    part = document.model_copy(update={"evalcases": cases})
    part.__dict__["left_out"] = document.left_out  # of all cases
    return part


def _check_template(
    document: EvalDocument, index: int, find: Finder, rules: Rules, ids: dict[str, str]
) -> Iterator[Diagnostic]:
    case, pointer = document.evalcases[index], ("evalcases", index)
    if wrong := list(_check_source(case, pointer, find)):
        yield from wrong
        return
    authored = find.authored(pointer)
    is_repaired = any(stand_in.startswith(spell(authored)) for stand_in in find.stand_ins)
    if is_repaired or find.lost_part(pointer, deep=True):
        return  # reported, and its rows would repeat it
    if wrong := list(_check_commands(found_at(find.source.data, *authored)[0], pointer, find)):
        yield from wrong
        return
    empty = True
    rows = filled_cases(case, authored, find.source, find.context.read_rows)
    for chunk in iter(lambda: tuple(islice(rows, CHUNK)), ()):
        empty = False
        unique: list[FilledCase] = []
        yield from _check_rows(chunk, unique, ids)
        yield from _check_chunk(document, authored, unique, find, rules)
    if empty:
        assert case.cases_from is not None, "the contract refuses empty 'vars'"
        message = f"file '{case.cases_from.file}' has no rows"
        yield find.at("AV331", message, (*pointer, "cases_from", "file"))


def _check_source(case: EvalCase, pointer: Pointer, find: Finder) -> Iterator[Diagnostic]:
    """AV331 for a file without which nothing can be compiled, AV320 for two sources of rows."""
    if case.cases_from is None:
        return
    for problem in check_reference((*pointer, "cases_from", "file"), case.cases_from.file, find):
        if problem.rule == "AV303":
            continue  # an empty file is one without rows
        if problem.rule in FIXED_RULES:
            yield problem
        else:
            yield replace(problem, rule="AV331", severity="error")
    if case.vars is not None:
        message = "'cases_from' and 'vars' cannot be combined"
        yield find.at("AV320", message, (*pointer, "vars"), key=True)


def _check_rows(
    rows: Sequence[FilledCase | DataProblem], unique: list[FilledCase], ids: dict[str, str]
) -> Iterator[Diagnostic]:
    """Yield the problems of rows, then the repeated ids; add the other cases to `unique`."""
    for row in rows:
        if isinstance(row, DataProblem):
            yield problem_diagnostic(row)
    for row in rows:
        if isinstance(row, FilledCase):
            duplicate = _duplicate(row, ids)
            if duplicate is None:
                unique.append(row)
            else:
                yield duplicate


def _check_commands(value: JsonValue, pointer: Pointer, find: Finder) -> Iterator[Diagnostic]:
    """AV325 for commands in one text, where a value could be more than one argument."""
    match value:
        case dict():
            for key, item in value.items():
                if key in COMMANDS and isinstance(item, str) and VARIABLE.search(item):
                    message = (
                        f"'{key}' is a command in one text, which cannot have variables of rows"
                    )
                    hint = "write a list of arguments, or pass the value in 'config'"
                    yield find.at("AV325", message, (*pointer, key), hint=hint)
                elif key in HOLD_EVALUATORS:
                    yield from _check_commands(item, (*pointer, key), find)
        case list():
            for index, item in enumerate(value):
                yield from _check_commands(item, (*pointer, index), find)
        case _:
            pass


def _duplicate(case: FilledCase, ids: dict[str, str]) -> Diagnostic | None:
    """Return the diagnostic of an id that another case has, else add the id to `ids`.

    `ids`: id → the file, line and column of the first case with it.
    """
    row = case.row
    if case.id not in ids:
        ids[case.id] = f"{row.path.name}:{row.line}:{row.column}"
        return None
    message = f"case id '{case.id}' is given twice; first at {ids[case.id]}"
    hint = "give the id a variable whose value differs in every row"
    return problem_diagnostic(DataProblem("AV301", message, row.path, row.line, row.column, hint))


def _check_chunk(
    document: EvalDocument,
    authored: Pointer,
    filled: Sequence[FilledCase],
    find: Finder,
    rules: Rules,
) -> Iterator[Diagnostic]:
    sound: list[FilledCase] = []
    cases: list[EvalCase] = []
    for case in filled:
        try:
            cases.append(EvalCase.model_validate(case.data))
        except ValidationError:
            yield from _refused(case, authored, find)
        else:
            sound.append(case)
    if cases:
        yield from rules(_with_cases(document, tuple(cases)), _row_finder(sound, authored, find))


def _row_finder(filled: Sequence[FilledCase], authored: Pointer, find: Finder) -> RowFinder:
    index = authored[1]
    assert isinstance(index, int)
    survivors = {**find.survivors, ("evalcases",): (index,) * len(filled)}
    return RowFinder(
        find.source, find.context, survivors, find.dropped, find.stand_ins, tuple(filled)
    )


def _refused(case: FilledCase, authored: Pointer, find: Finder) -> Iterator[Diagnostic]:
    """Explain why the contract refuses a case with the values of its row."""
    # Slow to import, and most rows are fine.
    from agentv_ci.validate.wording import diagnostics, refused_parts

    data: JsonValue = {"evalcases": [case.data]}
    try:
        EvalDocument.model_validate(data)
    except ValidationError as error:
        refused = refused_parts(SCHEMAS["eval"], error, data)
        yield from diagnostics(_row_finder([case], authored, find), refused)
