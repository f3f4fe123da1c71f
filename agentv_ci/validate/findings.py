"""Turning a pointer into a diagnostic with a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import RULES, Diagnostic
from agentv_ci.contracts.source import Pointer, Source, locate, spell

STAND_IN = "(missing)"
"""The text in place of one that is missing."""


@dataclass(frozen=True, slots=True)
class Finder:
    """Writes diagnostics about one source."""

    source: Source
    survivors: Mapping[Pointer, tuple[int, ...]] = field(default_factory=dict)
    """Lists that lost wrong items: pointer (as authored) → authored index of each item that is left."""

    dropped: frozenset[Pointer] = frozenset()
    """What was left out because it is wrong, as authored."""
    stand_ins: frozenset[Pointer] = frozenset()
    """What is missing and stood in for, so that the rest can be understood."""

    def lost_something(self, pointer: Pointer, *, deep: bool = False) -> bool:
        """Whether a mapping of the understood document lacks something that the author gave it.

        What is missing there may be what was meant, and one mistake is one diagnostic. With `deep`, anything below
        counts too.
        """
        if not self.dropped:
            return False
        pointer = self.authored(pointer)
        return any((each[: len(pointer)] if deep else each[:-1]) == pointer for each in self.dropped)

    def is_stand_in(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic is about something that nobody wrote."""
        about = f"{diagnostic.pointer}."
        return any(about.startswith((f"{place}.", f"{place}[")) for place in map(spell, self.stand_ins))

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
            message=message,
            path=str(self.source.path),
            line=mark.start[0] + 1,
            column=mark.start[1] + 1,
            end_line=mark.end[0] + 1,
            end_column=mark.end[1] + 1,
            pointer=spell(pointer) or None,
            case=self._label(pointer, "evalcases", "id"),
            target=self._label(pointer, "targets", "name"),
            hint=hint,
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
