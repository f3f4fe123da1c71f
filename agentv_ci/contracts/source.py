"""A file as it was read: its data, and where each part of it stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic.alias_generators import to_camel

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import RULES, Diagnostic

Kind = Literal["eval", "targets", "config", "judge-set"]

Pointer = tuple[str | int, ...]
"""The way to a value: `("evalcases", 0, "id")`."""


class Mark(NamedTuple):
    """Where a value begins and ends: (line, column), both from 0, the end exclusive."""

    start: tuple[int, int]
    end: tuple[int, int]
    parts: dict[str, tuple[Mark, Mark]] | list[Mark] | None
    """Of a mapping: key → marks of the key and of its value. Of a sequence: marks of its items."""


NOWHERE = Mark((0, 0), (0, 0), None)
"""Of what stands in no file, or was not found in it."""


@dataclass(frozen=True)
class Source:
    """One YAML document."""

    path: Path
    """Absolute."""
    root: Path
    """The repository: the nearest folder with `.git`, else the working directory."""
    kind: Kind | None
    """None for a YAML file that is none of ours."""
    data: JsonValue
    find_mark: Callable[[], Mark]
    """Where every part of `data` stands; asked once, and only when something is to be said."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was noticed while reading."""
    readable: bool = True
    """Whether `data` is the file's content."""
    keys: frozenset[str] | None = None
    """Every key of every mapping in `data`, where that is known: it saves looking for keys that are nowhere."""

    find_items: Callable[[str], list[Mark] | None] = lambda _: None
    """Where the items of a list at the top level stand, when that is found faster than with `find_mark`."""

    def items(self, key: str) -> list[Mark]:
        """Return where the items of the list under a top-level key begin and end; what is in them may be left out."""
        found = self.find_items(key)
        if found is None:
            parts = locate(self.mark, (key,)).parts
            found = parts if isinstance(parts, list) else []
        return found

    @cached_property
    def mark(self) -> Mark:
        """Where every part of `data` stands."""
        return self.find_mark()

    def resolve(self, file_reference: str) -> Path:
        """Return the absolute path a file reference means: from the repository with a leading `/`, else from here."""
        if file_reference.startswith("/"):
            return normal(self.root / file_reference.lstrip("/"))
        return normal(self.path.parent / file_reference)


def diagnostic_at(mark: Mark, rule: str, message: str, path: Path, **details: str | None) -> Diagnostic:
    """Return a diagnostic of a rule about what stands at `mark`; `details`: its pointer, case, target and hint."""
    (line, column), (end_line, end_column) = mark.start, mark.end
    severity = RULES[rule].severity
    return Diagnostic(rule, severity, message, str(path), line + 1, column + 1, end_line + 1, end_column + 1, **details)


def normal(path: Path) -> Path:
    """Return an absolute path without `.` and `..`, symbolic links kept as they are written."""
    return Path(os.path.normpath(path))


def locate(mark: Mark, pointer: Pointer, *, key: bool = False) -> Mark:
    """Return where `pointer` stands, or the deepest part of the way that exists.

    With `key`, the mark is that of the last key instead of its value. A key is also found under its
    camelCase twin and inside `settings`, so that checks may speak in field names.
    """
    for index, step in enumerate(pointer):
        if isinstance(mark.parts, dict):
            found = _entry(mark.parts, str(step))
            if found is None:
                return mark
            mark = found[0] if key and index == len(pointer) - 1 else found[1]
        elif isinstance(mark.parts, list) and isinstance(step, int) and step < len(mark.parts):
            mark = mark.parts[step]
        else:
            return mark
    return mark


def _entry(parts: dict[str, tuple[Mark, Mark]], step: str) -> tuple[Mark, Mark] | None:
    for spelling in (step, to_camel(step)):
        if spelling in parts:
            return parts[spelling]
    settings = parts["settings"][1].parts if "settings" in parts else None
    return _entry(settings, step) if isinstance(settings, dict) else None


def spell(pointer: Pointer) -> str:
    """Write a pointer the way people read it: `evalcases[0].input_messages[1].role`."""
    text = ""
    for step in pointer:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
