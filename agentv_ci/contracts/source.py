"""A file that was read: its data, the position of each part, and the schema that it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from agentv_ci.contracts.diagnostics import RULES, Diagnostic, Kind

EVAL_SCHEMA = "agentv-eval-v2"
TARGETS_SCHEMAS = ("agentv-targets-v2.2", "agentv-targets-v2")
CONFIG_SCHEMA = "agentv-config-v2"
JUDGE_SET_SCHEMA = "agentv-judge-set-v1"
QUARANTINE_SCHEMA = "agentv-quarantine-v1"
EXPERIMENT_SCHEMA = "agentv-experiment-v1"


if TYPE_CHECKING:
    # Finding files needs no contracts.
    from agentv_ci.contracts.base import JsonValue

SHORT_FORMS: Mapping[str, str] = {"input_messages": "input", "expected_messages": "expected"}
"""Field → its shorter name in documents, under which its value is usually a text."""

Pointer = tuple[str | int, ...]
"""The path of a value: `("evalcases", 0, "id")`."""


class Mark(NamedTuple):
    """The start and end of a value: (line, column), both from 0, the end exclusive."""

    start: tuple[int, int]
    end: tuple[int, int]
    parts: dict[str, tuple[Mark, Mark]] | list[Mark] | None
    """For a mapping: key → marks of the key and its value; for a list: marks of its items."""


NOWHERE = Mark((0, 0), (0, 0), None)
"""The mark of a value that is not in a file."""


class Source(Struct, frozen=True, dict=True):
    """One YAML document."""

    path: Path
    """Absolute."""
    root: Path
    """The repository: the nearest folder with `.git`, else the working directory."""
    kind: Kind | None
    """None for a YAML file that is not an agentv-ci document."""
    data: JsonValue
    find_mark: Callable[[], Mark]
    """Return the positions of all parts; called once, and only for diagnostics."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the file itself."""
    readable: bool = True
    """Whether the file could be read."""
    keys: frozenset[str] | None = None
    """All keys of all mappings in `data`, if known, to skip searches for absent keys."""

    text: str = ""
    """The content of the file."""
    find_items: Callable[[str], list[Mark] | None] = lambda _: None
    """Return the positions of the items of a top-level list, if faster than `find_mark`."""

    def items(self, key: str) -> list[Mark]:
        """Return the marks of the items of a top-level list, possibly without their parts."""
        found = self.find_items(key)
        if found is None:
            parts = locate(self.mark, (key,)).parts
            found = parts if isinstance(parts, list) else []
        return found

    @cached_property
    def mark(self) -> Mark:
        """The positions of all parts of `data`."""
        return self.find_mark()

    def resolve(self, file_reference: str) -> Path:
        """Return the absolute path of a file reference.

        With a leading `/` it is relative to the repository, else to this file.
        """
        if file_reference.startswith("/"):
            return _normal_in(str(self.root), file_reference.lstrip("/"))
        return _normal_in(os.path.dirname(self.path), file_reference)  # noqa: PTH120  # for thousands of files


def diagnostic_at(
    mark: Mark, rule: str, message: str, path: Path, **details: str | None
) -> Diagnostic:
    """Return a diagnostic at `mark`; `details` are its pointer, case, target and hint."""
    (line, column), (end_line, end_column) = mark.start, mark.end
    severity = RULES[rule].severity
    return Diagnostic(
        rule,
        severity,
        message,
        str(path),
        line + 1,
        column + 1,
        end_line + 1,
        end_column + 1,
        **details,
    )


def relative(path: Path, root: Path) -> str:
    """Return a path from the repository, with `/` on every system."""
    return os.path.relpath(path, root).replace(os.sep, "/")


def normal(path: Path) -> Path:
    """Return an absolute path without `.` and `..`; symbolic links stay."""
    return Path(os.path.normpath(path))


@lru_cache(maxsize=4096)
def _normal_in(folder: str, name: str) -> Path:
    return normal(Path(folder, name))


def locate(mark: Mark, pointer: Pointer, *, key: bool = False) -> Mark:
    """Return the mark of the value at `pointer`, or of the deepest part that exists.

    With `key`, return the mark of the last key instead of its value. Field names also match keys in
    camelCase and inside `settings`.
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
    from pydantic.alias_generators import to_camel  # slow to import, and only diagnostics need it

    for spelling in (step, to_camel(step), SHORT_FORMS.get(step, step)):
        if spelling in parts:
            return parts[spelling]
    settings = parts["settings"][1].parts if "settings" in parts else None
    return _entry(settings, step) if isinstance(settings, dict) else None


def spell(pointer: Pointer) -> str:
    """Return a pointer as text: `evalcases[0].input_messages[1].role`."""
    text = ""
    for step in pointer:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
