"""Find keys of another tool's file that an import loses without a word."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agentv_ci.app.documents.importing import REPORT, ImportWish, imported
from agentv_ci.base.json_access import value_at
from agentv_ci.errors import UsageError

Pointer = tuple[str | int, ...]


class Outcome(NamedTuple):
    """What an import writes and reports, without places, and without what it says it has kept."""

    texts: dict[str, str]
    reported: Counter[tuple[str, str, str]]
    refused: str = ""

    def lacks(self, other: Outcome, name: object) -> bool:
        """Whether this one reports something of a name less often than another one."""
        missing = (construct for _, construct, _ in other.reported - self.reported)
        return any(str(name) in {construct, construct.rpartition(".")[2]} for construct in missing)


def silent_keys(data: dict[str, Any], file: Path, changed: Path | None = None) -> list[str]:
    """Return the keys whose value, or whose absence, changes neither what is written nor what is reported.

    The file is what is imported; `data` is what it says, or what the file `changed` beside it does. That something is
    kept is no report: it would be one of the silent losses that this looks for. What is in a dropped part is not
    looked at.
    """
    return _Search(data, file, changed or file).found


class _Search:
    def __init__(self, data: dict[str, Any], file: Path, written: Path) -> None:
        self._data, self._file, self._written = data, file, written
        self._before = self._outcome(data)
        self.found: list[str] = []
        self._look(data, ())

    def _look(self, value: Any, pointer: Pointer) -> None:
        items: list[tuple[str | int, Any]] = []
        if isinstance(value, dict):
            items = list(value.items())
        elif isinstance(value, list):
            items = list(enumerate(value))
        for key, part in items:
            here = (*pointer, key)
            without = self._outcome(_without(self._data, here))
            name = part.get("type") if isinstance(part, dict) and isinstance(key, int) else key
            is_reported = without.lacks(self._before, name)
            others = [self._outcome(data) for data in _with_other_values(self._data, here)]
            if without == self._before or (self._before in others and not is_reported):
                self.found.append(".".join(map(str, here)))
            if not is_reported:
                self._look(part, here)

    def _outcome(self, data: dict[str, Any]) -> Outcome:
        self._written.write_text(json.dumps(data), "utf-8")
        folder = self._file.parent
        wish = ImportWish([str(self._file)], None, folder / "ours", overwrite=True)
        try:
            files = imported(wish, cwd=folder, environ={}).files
        except UsageError as error:
            return Outcome({}, Counter(), str(error))
        finally:
            self._written.write_text(json.dumps(self._data), "utf-8")
        texts = {name: text for name, text in files.texts.items() if name != REPORT}
        notes = ((note.fate, note.construct, note.how) for note in files.notes)
        return Outcome(texts, Counter(note for note in notes if note[0] != "kept"))


def _without(data: dict[str, Any], pointer: Pointer) -> dict[str, Any]:
    made = copy.deepcopy(data)
    parent: Any = value_at(made, *pointer[:-1])
    del parent[pointer[-1]]
    return made


def _with_other_values(data: dict[str, Any], pointer: Pointer) -> Iterator[dict[str, Any]]:
    """Yield the data with another value of the same type at a place, if it is not a collection."""
    value = value_at(data, *pointer)
    if isinstance(value, (dict, list)) or value is None:
        return
    made = copy.deepcopy(data)
    parent: Any = value_at(made, *pointer[:-1])
    match value:
        case bool():
            parent[pointer[-1]] = not value
        case str():
            parent[pointer[-1]] = f"{value}x"
        case _:
            parent[pointer[-1]] = value * 2 + 1
    yield made
