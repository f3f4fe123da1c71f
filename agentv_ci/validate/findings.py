"""Create diagnostics from pointers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from msgspec import Struct, field

from agentv_ci.base.json_access import text_at
from agentv_ci.base.text import shortened
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext, ReferencedFile
from agentv_ci.contracts.source import Pointer, Source, diagnostic_at, locate, spell
from agentv_ci.validate.walk import as_written

STAND_IN = "(missing)"
"""The value of a missing string."""

_STEP = re.compile(r"(?=[.\[])")

LONGEST = 2_000
"""Characters of a message; names and lists in documents are not limited."""


class Finder(Struct, frozen=True, dict=True):
    """Creates diagnostics about one source."""

    source: Source
    context: DocumentContext
    survivors: Mapping[Pointer, tuple[int, ...]] = field(default_factory=dict)
    """Lists with dropped items: pointer (as authored) → authored index of each remaining item."""
    dropped: Collection[Pointer] = ()
    """Invalid parts that were dropped from the document; as authored."""
    stand_ins: Collection[str] = ()
    """Missing parts that were filled in so that the rest can be checked; as spelled."""

    def lost_part(self, pointer: Pointer, *, deep: bool = False) -> bool:
        """Whether an invalid part of this mapping (with `deep`, anywhere below it) was dropped.

        A setting that seems to be missing may be the dropped one, which is reported already.
        """
        holders = self._ancestors if deep else self._parents
        return self.authored(pointer) in holders

    @cached_property
    def _parents(self) -> frozenset[Pointer]:
        return frozenset(pointer[:-1] for pointer in self.dropped)

    @cached_property
    def _ancestors(self) -> frozenset[Pointer]:
        ancestors: set[Pointer] = set()
        for pointer in self.dropped:
            ancestors.update(pointer[:length] for length in range(len(pointer)))
        return frozenset(ancestors)

    def is_missing(self, pointer: Pointer) -> bool:
        """Whether the author did not write this field."""
        return bool(self.stand_ins) and spell(self.authored(pointer)) in self.stand_ins

    def is_stand_in(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic is about a part that the author did not write."""
        if not self.stand_ins:
            return False
        steps = _STEP.split(diagnostic.pointer or "")
        return any(way in self.stand_ins for way in accumulate(steps))

    def authored(self, pointer: Pointer) -> Pointer:
        """Return the authored pointer of a part of the checked document."""
        way: Pointer = ()
        for checked in pointer:
            step = checked
            left = self.survivors.get(way)
            if left is not None and isinstance(checked, int):
                step = left[checked]
            way = (*way, step)
        return way

    def at(
        self,
        rule: str,
        message: str,
        pointer: Pointer,
        *,
        key: bool = False,
        hint: str | None = None,
    ) -> Diagnostic:
        """Return a diagnostic about the value at `pointer`, or with `key` about the key itself.

        `pointer` is in the checked document.
        """
        pointer = as_written(self.source.data, self.authored(pointer))
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

    def duplicates(
        self, what: str, names: Iterable[str], pointer: Pointer, *key: str
    ) -> Iterator[Diagnostic]:
        """AV301 for every repeated name of a list: its items, or what they have under a key."""
        first: dict[str, Pointer] = {}
        for index, name in enumerate(names):
            place = (*pointer, index, *key)
            if first.setdefault(name, place) != place:
                line = locate(self.source.mark, self.authored(first[name])).start[0] + 1
                message = f"{what} '{name}' is given twice; first on line {line}"
                yield self.at("AV301", message, place)

    def file(self, file_reference: str) -> tuple[Path, ReferencedFile]:
        """Return the path of a file reference, and the file there."""
        path = self.source.resolve(file_reference)
        return path, self.inspect(path)

    def inspect(self, path: Path) -> ReferencedFile:
        """Return the file at a path inside the document's repository."""
        # A document outside any repository may refer to files beside it.
        return self.context.inspect_file(path, (self.source.root, self.source.path.parent))

    def _label(self, pointer: Pointer, collection: str, key: str) -> str | None:
        if len(pointer) < 2 or pointer[0] != collection:
            return None
        return text_at(self.source.data, *pointer[:2], key) or spell(pointer[:2])
