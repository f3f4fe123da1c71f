"""The lines of evaluators in eval files, for annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import filterfalse
from pathlib import Path

from agentv_ci.base.case_rows import ID_DIGITS, VARIABLE, is_template
from agentv_ci.base.json_access import text_at, value_at
from agentv_ci.contracts.base import JsonValue, kind_in_short
from agentv_ci.contracts.evaluator_settings import numbered
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.judge_evaluators import RUBRICS_NAME
from agentv_ci.contracts.source import Pointer, Source, locate
from agentv_ci.load.document import load

MAX_SUITE_BYTES = 4 * 1024 * 1024
MAX_SUITES = 9


class EvaluatorLines:
    """Finds the lines of evaluators in eval files, reading each file once.

    Rows and the record of the run are untrusted: only a few files are read, only those of a
    moderate size inside the workspace; without a workspace none.
    """

    def __init__(self, root: Path, workspace: Path | None, most: float = MAX_SUITES) -> None:
        self._root = root
        self._workspace = workspace
        self._most = most
        self._suites: dict[str, tuple[Source, dict[str, int]]] = {}
        """Each eval file, and the index of each case."""

    def find(self, suite: str, case: str, evaluator: str) -> int | None:
        """Return the line of an evaluator defined in a case or in its template, or None."""
        place = self._place(suite, case)
        if place is None:
            return None
        pointer = _in_case(*place, evaluator)
        if pointer is None:
            return None
        return locate(place[0].mark, pointer).start[0] + 1

    def setting(self, suite: str, case: str | None, *names: str) -> int | None:
        """Return the line of a setting of a case, or else of its eval file.

        None if neither has it.
        """
        if not self._may_load(suite):
            return None
        source, _ = self._suite(suite)
        place = self._place(suite, case) if case is not None else None
        folders: list[Pointer] = [("execution",)]
        if place is not None:
            folders = [("evalcases", place[1]), ("evalcases", place[1], "execution"), *folders]
        for folder in folders:
            pointer = (*folder, *names)
            mark = locate(source.mark, pointer, key=True)
            if mark != locate(source.mark, pointer[:-1]):
                return mark.start[0] + 1
        return None

    def template(self, suite: str, case: str) -> int | None:
        """Return the line of the template of a case, None if it has none."""
        place = self._place(suite, case)
        if place is None or not is_template(value_at(place[0].data, "evalcases", place[1])):
            return None
        return locate(place[0].mark, ("evalcases", place[1])).start[0] + 1

    def _place(self, suite: str, case: str) -> tuple[Source, int] | None:
        """Return an eval file, and the index of a case or of its template."""
        if not self._may_load(suite):
            return None
        source, cases = self._suite(suite)
        index = cases.get(case, cases.get(case[: -ID_DIGITS - 1]))
        if index is not None:
            return source, index
        for known, index in cases.items():
            if "{{" in known and _is_filled(known, case):
                return source, index
        return None

    def _may_load(self, suite: str) -> bool:
        return suite in self._suites or (
            len(self._suites) < self._most and self._may_read(self._root / suite)
        )

    def _may_read(self, path: Path) -> bool:
        try:
            actual = path.resolve(strict=True)
            is_inside = self._workspace is not None and actual.is_relative_to(
                self._workspace.resolve()
            )
            return is_inside and actual.is_file() and actual.stat().st_size <= MAX_SUITE_BYTES
        except (OSError, ValueError):
            return False

    def _suite(self, path: str) -> tuple[Source, dict[str, int]]:
        if path not in self._suites:
            source = load(self._root / path, self._root, named=True)
            listed = value_at(source.data, "evalcases")
            indexes: dict[str, int] = {}
            for index, case in enumerate(listed if isinstance(listed, list) else ()):
                case_id = text_at(case, "id")
                if case_id is not None:
                    indexes[case_id] = index
            self._suites[path] = source, indexes
        return self._suites[path]


def _is_filled(template: str, text: str) -> bool:
    """Whether a text is a template with its variables filled in."""
    first, *parts = VARIABLE.split(template)[::2]
    if not text.startswith(first) or not text.endswith(parts[-1] if parts else ""):
        return False
    place = len(first)
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def _in_case(source: Source, index: int, evaluator: str) -> Pointer | None:
    inherits = value_at(source.data, "evalcases", index, "inherit_evaluators") is not False
    shared = _items(source, ("execution", "evaluators")) if inherits else []
    for rest in (("evaluators",), ("execution", "evaluators")):
        pointer: Pointer = ("evalcases", index, *rest)
        names = [*_names([*shared, *_items(source, pointer)])][len(shared) :]
        if evaluator in names:
            return (*pointer, names.index(evaluator))
    rubrics: Pointer = ("evalcases", index, "rubrics")
    if evaluator != RUBRICS_NAME or value_at(source.data, *rubrics) is None:
        return None
    return rubrics


def _items(source: Source, pointer: Pointer) -> list[JsonValue]:
    found = value_at(source.data, *pointer)
    return found if isinstance(found, list) else []


def _names(items: Sequence[JsonValue]) -> Iterator[str | None]:
    """Yield what evaluators are called, which need not be valid.

    Those without a name are called by their type, made unique.
    """
    given = [text_at(item, "name") for item in items]
    taken: set[str | None] = {*given}
    for item, name in zip(items, given, strict=True):
        if name is not None:
            yield name
            continue
        kind = text_at(item, "type") or kind_in_short(item, AuthoredEvaluator, "type")
        unique = next(filterfalse(taken.__contains__, numbered(kind or "")))
        taken.add(unique)
        yield unique
