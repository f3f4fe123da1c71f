"""Where the items of a list at the top level stand, found without building what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    CollectionEndEvent,
    CollectionStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from agentv_ci.contracts.source import Mark
from agentv_ci.load.places import LINE_BREAK, Point, block_end, span
from agentv_ci.load.skim import c_parser


def item_marks(text: str, key: str) -> list[Mark] | None:
    """Return where the items of the list under a top-level key begin and end, in a text that was read before.

    None: nothing but reading it with care can tell.
    """
    next_event = c_parser(text)
    if next_event is None:
        return None
    try:
        return _Outline(text, next_event).items(key)
    except YAMLError:
        return None


class _Outline:
    def __init__(self, text: str, next_event: Callable[[], Any]) -> None:
        self._lines = LINE_BREAK.split(text)
        self._next = next_event

    def items(self, key: str) -> list[Mark] | None:
        event = self._next()
        while event is not None and not isinstance(event, NodeEvent):
            event = self._next()
        if not isinstance(event, MappingStartEvent):
            return None
        while isinstance(event := self._next(), ScalarEvent):
            name, value = event.value, self._next()
            if name == key and isinstance(value, SequenceStartEvent):
                return list(self._marks())
            if name in (key, "<<"):
                return None
            self._end_of(value)
        return None

    def _marks(self) -> Iterator[Mark]:
        while not isinstance(event := self._next(), SequenceEndEvent):
            yield Mark(span(event)[0], self._end_of(event), None)

    def _end_of(self, event: NodeEvent) -> Point:
        """Read to the end of a node and return its end: of a block collection, that of its last part."""
        last, depth = event, 0
        while True:
            if isinstance(event, CollectionStartEvent):
                depth += 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
                if event.end_mark.index > event.start_mark.index:  # of a flow collection it is a bracket
                    last = event
            else:
                last = event
            if not depth:
                break
            event = self._next()
        start, end = span(last)
        return block_end(self._lines, start, end) if isinstance(last, ScalarEvent) and last.style in ("|", ">") else end
