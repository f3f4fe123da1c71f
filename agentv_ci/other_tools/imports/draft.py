"""What an import has made so far, and the places of what it reads."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from agentv_ci.base.json_access import value_at
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import CaseFate, Fate, ImportNote, ReadImports
from agentv_ci.contracts.source import Mark, Pointer, Source, locate, normal
from agentv_ci.other_tools.imports.yaml_text import Block, Node

STAND_IN: Mapping[str, Node] = {"provider": "mock", "error": {"kind": "request"}}
"""A target that fails, so that what cannot be asked is never a pass."""
ANY_ANSWER: Mapping[str, Node] = {"regex": "^", "name": "answers"}
"""A check that every answer passes."""
OUTCOME = "The answer passes the evaluators"
"""The expected outcome of a case that has none."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def slug(text: str, otherwise: str = "case") -> str:
    """Return a text as an id: at most 60 letters, digits, dots and dashes."""
    return _UNSAFE.sub("-", text.strip())[:60].strip("-.") or otherwise


@dataclass(slots=True)
class Names:
    """Names that were given, so that each is given once."""

    given: set[str] = field(default_factory=set)

    def unique(self, wanted: str) -> str:
        """Return a name that no one has: the wanted one, or with a number."""
        name, number = wanted, 2
        while name in self.given:
            name, number = f"{wanted}-{number}", number + 1
        self.given.add(name)
        return name


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a file."""

    source: Source
    pointer: Pointer = ()

    def __truediv__(self, step: str | int) -> Place:
        """Return the place of a part."""
        return Place(self.source, (*self.pointer, step))

    def holding(self, value: JsonValue) -> Place:
        """Return a place on the same line with another value."""
        start = (self.line - 1, 0)
        source = self.source
        return Place(
            Source(source.path, source.root, None, value, lambda: Mark(start, start, None))
        )

    @property
    def value(self) -> JsonValue:
        """The value."""
        return value_at(self.source.data, *self.pointer)

    @property
    def line(self) -> int:
        """Its line, from 1."""
        return locate(self.source.mark, self.pointer, key=True).start[0] + 1

    @property
    def items(self) -> list[Place]:
        """The items of a list; a single value is a list of itself."""
        value = self.value
        if value is None:
            return []
        if isinstance(value, list):
            return [self / index for index in range(len(value))]
        return [self]


def items_of(place: Place | None) -> list[Place]:
    """Return the items of a list that may be missing."""
    if place is None:
        return []
    return place.items


@dataclass(slots=True)
class Draft:
    """The output of an import: eval files, targets, other files, and notes."""

    reads: ReadImports
    out: Path
    root: Path
    """The repository of `out`."""
    texts: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Mapping[str, Node]] = field(default_factory=dict)
    """Name → settings of a target, without its name."""
    notes: list[ImportNote] = field(default_factory=list)
    named: dict[str, Place] = field(default_factory=dict)
    """Targets that documents name → the first place."""
    evals: Names = field(default_factory=Names)
    targets_named: Names = field(default_factory=Names)
    """Names of targets of which two may be wanted."""
    files: Names = field(default_factory=Names)
    """Names of files that only targets read, without their suffix."""
    has_judges: bool = False
    """Whether a model that no document names judges any answer."""
    cases: Counter[CaseFate] = field(default_factory=Counter)
    """What became of how many cases."""
    placeholders: dict[str, str] = field(default_factory=dict)
    """Targets that fail until they are configured → their file and line."""
    base: Path = Path()
    """The folder from which paths in the config are read."""

    def beside(self, path: str) -> Path:
        """Return the path that a config names, from its own folder."""
        return normal(self.base / path.removeprefix("file://"))

    def note(self, fate: Fate, place: Place, construct: str, how: str = "") -> None:
        """Record what became of a construct."""
        self.notes.append(ImportNote(fate, construct, how, place.source.path, place.line))

    def count(self, since: int, case: Mapping[str, Node], *, changed: bool = False) -> None:
        """Count a case, or its rows: changed, if a note after the first `since` says so."""
        fate: CaseFate = "kept"
        if changed or any(note.fate != "kept" for note in self.notes[since:]):
            fate = "changed"
        if "skip" in case:
            fate = "skipped"
        rows = case.get("vars")
        self.cases[fate] += len(rows) if isinstance(rows, list) else 1

    def fields(self, place: Place, construct: str) -> Fields:
        """Return the fields of a mapping."""
        return Fields(self, place, construct)

    def reference(self, path: Path) -> str:
        """Return a reference from the output folder to a file.

        A file of another repository is copied.
        """
        path = normal(path)
        text = None if path.is_relative_to(self.root) else self.reads.text(path)
        if text is None:
            return os.path.relpath(path, self.out).replace(os.sep, "/")
        name = f"files/{path.name}"
        self.texts[name] = text
        return name

    def script(self, name: str) -> str:
        """Add a script that does what another tool did, and return its path."""
        self.texts[f"scripts/{name}"] = (
            files("agentv_ci.other_tools.imports") / "scripts" / name
        ).read_text("utf-8")
        return f"scripts/{name}"

    def target(self, name: str, place: Place) -> str:
        """Note that a document names a target."""
        self.named.setdefault(name, place)
        return name

    def without_cases(self, place: Place, why: str) -> list[Node]:
        """Return the only case of a file none of whose cases can be imported: a skipped one."""
        self.note("dropped", place, "tests", why)
        return [
            Block(
                {
                    "id": "not-imported",
                    "expected_outcome": "The cases of the file are imported",
                    "input": "(nothing)",
                    "expected": [],
                    "evaluators": [ANY_ANSWER],
                    "skip": f"Not imported: {why}",
                }
            )
        ]

    def stand_in(self, name: str, place: Place, construct: str, why: str) -> None:
        """Add a target that fails, for one that cannot be imported."""
        self.targets.setdefault(name, STAND_IN)
        self.note(
            "dropped", place, construct, f"{why}; target '{name}' fails until you configure it"
        )


class Fields:
    """The fields of a mapping of another tool: each is taken, and so kept, or reported."""

    def __init__(self, draft: Draft, place: Place, construct: str) -> None:
        """`construct` is the name of the mapping in notes."""
        self._draft = draft
        self.place = place
        self._construct = construct
        value = place.value
        self._left: dict[str, JsonValue] = dict(value) if isinstance(value, dict) else {}

    def name(self, key: str) -> str:
        """Return the name of a field in notes."""
        if self._construct:
            return f"{self._construct}.{key}"
        return key

    def __contains__(self, key: str) -> bool:
        """Whether a field is there and was not taken."""
        return key in self._left

    def key(self, *keys: str) -> str | None:
        """Return the first of several names that is there."""
        return next((key for key in keys if key in self._left), None)

    def at(self, *keys: str) -> Place | None:
        """Take a field and return its place; None without it, or if it is null."""
        key = self.key(*keys)
        if key is None or self._left[key] is None:
            self._left.pop(key or "", None)
            return None
        del self._left[key]
        place = self.place / key
        self._draft.note("kept", place, self.name(key))
        return place

    def take(self, *keys: str) -> JsonValue:
        """Take a field and return its value; None without it."""
        place = self.at(*keys)
        if place is None:
            return None
        return place.value

    def text(self, *keys: str) -> str | None:
        """Take a field that is a text, also one that YAML reads as a number.

        None without it, or if it is not.
        """
        key = self.key(*keys)
        value = self._left.get(key or "")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return None
        self.take(*keys)
        return str(value)

    def ignore(self, *keys: str) -> None:
        """Take fields without a note: they are part of what another note names."""
        for key in keys:
            self._left.pop(key, None)

    def approximate(self, key: str, how: str) -> JsonValue:
        """Take a field whose meaning changes."""
        value = self._left.pop(key, None)
        if value is not None:
            self._draft.note("approximated", self.place / key, self.name(key), how)
        return value

    def drop(self, keys: Collection[str], why: str) -> None:
        """Report fields that have no counterpart."""
        for key in [key for key in self._left if key in keys]:
            del self._left[key]
            self._draft.note("dropped", self.place / key, self.name(key), why)

    def rest(self) -> JsonObject:
        """Return the fields that were not taken, without reporting them."""
        left, self._left = self._left, {}
        return left

    def end(self, why: str = "unknown to agentv-ci") -> None:
        """Report what was not taken."""
        self.drop(tuple(self._left), why)


def comments_before(place: Place) -> tuple[str, ...]:
    """Return the comments on the lines above a value."""
    lines = place.source.text.split("\n")
    return tuple(reversed(tuple(_comments_above(lines, place.line - 2))))


def comments_at_start(source: Source) -> tuple[str, ...]:
    """Return the comments at the beginning of a file, without references to schemas."""
    found = []
    for line in source.text.split("\n"):
        if not line.startswith("#"):
            break
        found.append(line[1:].removeprefix(" ").rstrip())
    return tuple(line for line in found if "yaml-language-server" not in line)


def _comments_above(lines: list[str], last: int) -> Iterator[str]:
    for number in range(last, -1, -1):
        line = lines[number].strip() if number < len(lines) else ""
        if not line.startswith("#"):
            return
        yield line[1:].removeprefix(" ").rstrip()
