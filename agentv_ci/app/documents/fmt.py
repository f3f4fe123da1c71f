"""Documents → the same documents in one style."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from agentv_ci.base.atomic import write_whole
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic, Kind
from agentv_ci.contracts.source import Mark, Source, diagnostic_at, locate
from agentv_ci.load.discover import discover, find_root
from agentv_ci.load.document import load
from agentv_ci.load.events import LINE_BREAK, Unparsable
from agentv_ci.load.layout import CannotBeLaidOut, layouts
from agentv_ci.load.parse import parse_yaml
from agentv_ci.validate.current_names import Renaming, renamings
from agentv_ci.validate.structure import contract_for


class FormattedFile(Struct, frozen=True):
    """A document, and what it is in one style."""

    path: Path
    before: str
    after: str
    refusals: tuple[Diagnostic, ...] = ()
    """Why it stays as it is."""

    @property
    def is_changed(self) -> bool:
        """Whether it was in another style."""
        return self.before != self.after

    def diff(self, name: str) -> Iterator[str]:
        """Yield the lines of a unified diff."""
        old, new = (text.splitlines(keepends=True) for text in (self.before, self.after))
        for line in difflib.unified_diff(old, new, name, name):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def format_paths(patterns: Sequence[str], *, cwd: Path) -> Iterator[FormattedFile]:
    """Yield every document that matches `patterns`.

    Raises UsageError for a path that does not exist.
    """
    for file in discover(patterns, cwd):
        root = find_root(file.path, cwd)
        if not file.named and not file.path.resolve().is_relative_to(root.resolve()):
            continue  # a link out of the repository that no path names
        source = load(file.path, root, named=file.named)
        errors = tuple(mistake for mistake in source.diagnostics if mistake.severity == "error")
        if errors:
            yield FormattedFile(file.path, source.text, source.text, errors)
        elif source.kind is not None and source.text:
            yield _formatted(source, source.kind)


def write(file: FormattedFile) -> None:
    """Replace a document by its formatted text; raises OSError."""
    write_whole(file.path, lambda out: out.write(file.after.encode()))


def _formatted(source: Source, kind: Kind) -> FormattedFile:
    text = source.text
    found = list(renamings(kind, source.data)) if _is_valid(kind, source.data) else []
    renamed = _renamed(source.text, source.mark, found)
    data = parse_yaml(renamed).data
    if _as_known(kind, _with_kinds(source.data, found)) != _as_known(kind, data):
        # A part behind an anchor, which has two names.
        renamed, data = source.text, source.data
    place = source.mark
    try:
        for after in layouts(renamed, parse_yaml(renamed).find_mark(), "evalcases"):
            if _is_same(after, data):
                return FormattedFile(source.path, text, after)
    except CannotBeLaidOut as error:
        place = Mark((error.line, 0), (error.line, 0), None)
    message = "the document cannot be formatted without changing its data"
    return FormattedFile(
        source.path, text, text, (diagnostic_at(place, "AV101", message, source.path),)
    )


def _is_valid(kind: Kind, data: JsonValue) -> bool:
    return _as_known(kind, data) is not None


def _as_known(kind: Kind, data: JsonValue) -> object:
    """Return a document as its contract sees it; None if it is invalid."""
    try:
        return contract_for(kind).model_validate(data)
    except ValidationError:
        return None


def _with_kinds(data: JsonValue, found: Sequence[Renaming]) -> JsonValue:
    changed: Any = copy.deepcopy(data)
    for pointer, is_key, name in found:
        *way, last = pointer
        part = changed
        for step in way:
            part = part[step]
        if not is_key:
            part[last] = name
    return changed  # type: ignore[no-any-return]


def _is_same(text: str, data: JsonValue) -> bool:
    """Whether a text has this data: with keys in the same order, and 1 is neither 1.0 nor true."""
    try:
        return json.dumps(parse_yaml(text).data) == json.dumps(data)
    except Unparsable:
        return False


def _renamed(text: str, mark: Mark, found: Sequence[Renaming]) -> str:
    starts = [0, *(line_break.end() for line_break in LINE_BREAK.finditer(text))]
    places: dict[tuple[int, int], str] = {}
    for pointer, is_key, name in found:
        place = locate(mark, pointer, key=is_key)
        first, end = (starts[line] + column for line, column in (place.start, place.end))
        places[first, end] = name
    for (first, end), name in sorted(places.items(), reverse=True):
        quote = text[first] if text[first] in "'\"" else ""
        text = f"{text[:first]}{quote}{name}{quote}{text[end:]}"
    return text
