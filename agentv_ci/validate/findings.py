"""Turning a pointer into a diagnostic with a place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import RULES, Diagnostic
from agentv_ci.contracts.source import Pointer, Source, locate, spell
from agentv_ci.text import shortened

STAND_IN = "(missing)"
"""The text in place of one that is missing."""


_STEP = re.compile(r"(?=[.\[])")

LONGEST = 2_000
"""Characters of a message; names and lists in documents have no limit."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Where the understood document differs from the authored one."""

    in_: frozenset[Pointer] = frozenset()
    """What lost something directly inside it, because it is wrong; as authored."""
    below: frozenset[Pointer] = frozenset()
    """What lost something anywhere inside it."""
    stand_ins: frozenset[str] = frozenset()
    """What is missing and stood in for, so that the rest can be understood; spelled."""

    @classmethod
    def of(cls, dropped: Iterable[Pointer], stand_ins: Iterable[Pointer]) -> Losses:
        """Return the losses when these are left out, and these put in."""
        below = frozenset(each[:length] for each in dropped for length in range(len(each)))
        return cls(frozenset(each[:-1] for each in dropped), below, frozenset(map(spell, stand_ins)))


@dataclass(frozen=True, slots=True)
class Finder:
    """Writes diagnostics about one source."""

    source: Source
    survivors: Mapping[Pointer, tuple[int, ...]] = field(default_factory=dict)
    """Lists that lost wrong items: pointer (as authored) → authored index of each item that is left."""

    losses: Losses = field(default_factory=Losses)

    def lost_something(self, pointer: Pointer, *, deep: bool = False) -> bool:
        """Whether a mapping of the understood document lacks something that the author gave it.

        What is missing there may be what was meant, and one mistake is one diagnostic. With `deep`, anything below
        counts too.
        """
        return self.authored(pointer) in (self.losses.below if deep else self.losses.in_)

    def is_missing(self, pointer: Pointer) -> bool:
        """Whether a field of the understood document is not the author's."""
        return spell(self.authored(pointer)) in self.losses.stand_ins

    def is_stand_in(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic is about something that nobody wrote."""
        if not self.losses.stand_ins:
            return False
        steps = accumulate(_STEP.split(diagnostic.pointer or ""))
        return any(way in self.losses.stand_ins for way in steps)

    def authored(self, pointer: Pointer) -> Pointer:
        """Return where a part of the understood document stands in the authored one."""
        way: Pointer = ()
        for step in pointer:
            kept = self.survivors.get(way)
            way = (*way, kept[step] if kept is not None and isinstance(step, int) else step)
        return way

    def at(
        self, rule: str, message: str, pointer: Pointer, *, key: bool = False, hint: str | None = None
    ) -> Diagnostic:
        """Return a diagnostic about the value at `pointer`, or with `key` about the key itself.

        `pointer` leads through the understood document.
        """
        pointer = self.authored(pointer)
        mark = locate(self.source.mark, pointer, key=key)
        return Diagnostic(
            rule=rule,
            severity=RULES[rule].severity,
            message=shortened(message, LONGEST),
            path=str(self.source.path),
            line=mark.start[0] + 1,
            column=mark.start[1] + 1,
            end_line=mark.end[0] + 1,
            end_column=mark.end[1] + 1,
            pointer=spell(pointer) or None,
            case=self._label(pointer, "evalcases", "id"),
            target=self._label(pointer, "targets", "name"),
            hint=shortened(hint, LONGEST) if hint else None,
        )

    def _label(self, pointer: Pointer, collection: str, key: str) -> str | None:
        if len(pointer) < 2 or pointer[0] != collection:
            return None
        item = value_at(self.source.data, pointer[:2])
        label = item.get(key) if isinstance(item, dict) else None
        return label if isinstance(label, str) and label else spell(pointer[:2])


def value_at(data: JsonValue, pointer: Pointer) -> JsonValue:
    """Return the value at `pointer`, None when there is none."""
    for step in pointer:
        if isinstance(data, dict) and step in data:
            data = data[str(step)]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return None
    return data
