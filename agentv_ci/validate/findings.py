"""Turning a pointer into a diagnostic with a place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext, ReferencedFile
from agentv_ci.contracts.source import Pointer, Source, diagnostic_at, locate, spell
from agentv_ci.json_access import text_at
from agentv_ci.text import shortened

STAND_IN = "(missing)"
"""The text in place of one that is missing."""

_STEP = re.compile(r"(?=[.\[])")

LONGEST = 2_000
"""Characters of a message; names and lists in documents have no limit."""


@dataclass(frozen=True)
class Finder:
    """Writes diagnostics about one source, checked in its context."""

    source: Source
    context: DocumentContext
    survivors: Mapping[Pointer, tuple[int, ...]] = field(default_factory=dict)
    """Lists that lost wrong items: pointer (as authored) → authored index of each item that is left."""
    dropped: Collection[Pointer] = ()
    """What is left out of the understood document, because it is wrong; as authored."""
    stand_ins: Collection[str] = ()
    """What is missing and stood in for, so that the rest can be understood; as it is spelled."""

    def lost_something(self, pointer: Pointer, *, deep: bool = False) -> bool:
        """Whether a mapping of the understood document lacks something that the author gave it.

        What is missing there may be what was meant, and one mistake is one diagnostic. With `deep`, anything below
        counts too.
        """
        return self.authored(pointer) in (self._holders if deep else self._parents)

    @cached_property
    def _parents(self) -> frozenset[Pointer]:
        return frozenset(each[:-1] for each in self.dropped)

    @cached_property
    def _holders(self) -> frozenset[Pointer]:
        return frozenset(each[:length] for each in self.dropped for length in range(len(each)))

    def is_missing(self, pointer: Pointer) -> bool:
        """Whether a field of the understood document is not the author's."""
        return spell(self.authored(pointer)) in self.stand_ins

    def is_stand_in(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic is about something that the author did not write."""
        steps = accumulate(_STEP.split(diagnostic.pointer or "")) if self.stand_ins else ()
        return any(way in self.stand_ins for way in steps)

    def authored(self, pointer: Pointer) -> Pointer:
        """Return where a part of the understood document stands in the authored one."""
        way: Pointer = ()
        for step in pointer:
            left = self.survivors.get(way)
            way = (*way, left[step] if left is not None and isinstance(step, int) else step)
        return way

    def at(
        self, rule: str, message: str, pointer: Pointer, *, key: bool = False, hint: str | None = None
    ) -> Diagnostic:
        """Return a diagnostic about the value at `pointer`, or with `key` about the key itself.

        `pointer` leads through the understood document.
        """
        pointer = self.authored(pointer)
        return diagnostic_at(
            locate(self.source.mark, pointer, key=key),
            rule,
            shortened(message, LONGEST),
            self.source.path,
            pointer=spell(pointer) or None,
            case=self._label(pointer, "evalcases", "id"),
            target=self._label(pointer, "targets", "name"),
            hint=shortened(hint, LONGEST) if hint else None,
        )

    def duplicates(self, what: str, names: Iterable[tuple[Pointer, str]]) -> Iterator[Diagnostic]:
        """AV301 for every name that was given before."""
        first: dict[str, Pointer] = {}
        for pointer, name in names:
            if name in first:
                line = locate(self.source.mark, self.authored(first[name])).start[0] + 1
                yield self.at("AV301", f"{what} '{name}' is given twice; first on line {line}", pointer)
            else:
                first[name] = pointer

    def file(self, file_reference: str) -> tuple[Path, ReferencedFile]:
        """Return the path that a file file_reference means, and what it leads to."""
        path = self.source.resolve(file_reference)
        return path, self.inspect(path)

    def inspect(self, path: Path) -> ReferencedFile:
        """Return what a path leads to, if it stays inside the document's repository."""
        # A file outside of any repository may still refer to what lies beside it.
        return self.context.inspect_file(path, (self.source.root, self.source.path.parent))

    def _label(self, pointer: Pointer, collection: str, key: str) -> str | None:
        if len(pointer) < 2 or pointer[0] != collection:
            return None
        return text_at(self.source.data, *pointer[:2], key) or spell(pointer[:2])
