"""Parse YAML 1.2 core into plain data, with the position of every part.

Constructors of our own read the event stream of ruamel's C parser, ten times faster than a
round-trip load: first the one in `plain.py`, then, for all other files and for positions, the one
below. The C parser (libyaml 0.1.7) rejects a few valid documents and may be missing; then ruamel's
own parser decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from agentv_ci.base.text import listed
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.source import Mark
from agentv_ci.load.c_events import Event, c_parser, in_full
from agentv_ci.load.events import (
    BLOCKS,
    LINE_BREAK,
    Point,
    Problem,
    Unparsable,
    block_end,
    marks,
    own_events,
    span,
    syntax_error,
)
from agentv_ci.load.plain import MAX_DEPTH, MAX_NODES, NotPlain, plain, read_plain

MAX_DIRECTIVES = 100
"""Lines that start with %; the C parser takes quadratic time for them."""
MAX_SECOND_OPINION = 200_000
"""Characters; ruamel's own parser reads about 100,000 per second."""


class Parsed(Struct, frozen=True):
    """The first document of a file."""

    data: JsonValue
    find_mark: Callable[[], Mark]
    """Return the positions of all parts; parses again, since most files have no diagnostics."""
    problems: tuple[Problem, ...] = ()
    keys: frozenset[str] | None = None
    """All keys in it, if known."""
    find_items: Callable[[str], list[Mark] | None] = lambda _: None
    """Return the positions of the items of a top-level list, if faster than `find_mark`."""


def parse_yaml(text: str) -> Parsed:
    """Return the document in `text`; raises Unparsable."""
    if text.startswith("%") and text.count("\n%") > MAX_DIRECTIVES:
        raise Unparsable(f"more than {MAX_DIRECTIVES} directives")
    try:
        document = read_plain(text)
    except NotPlain as error:
        if isinstance(error.__cause__, YAMLError):
            return _second_opinion(text, error.__cause__)
        return _construct(text)

    def find_items(key: str) -> list[Mark] | None:
        if key not in document.items:
            return None
        return list(marks(text, document.items[key]))

    return Parsed(
        document.data,
        lambda: _construct(text).find_mark(),
        keys=document.keys,
        find_items=find_items,
    )


def _construct(text: str) -> Parsed:
    next_event = c_parser(text)
    if next_event is None:
        return _second_opinion(text, None)
    try:
        return _Constructor(text, map(in_full, iter(next_event, None))).document()
    except YAMLError as error:
        return _second_opinion(text, error)


def _second_opinion(text: str, refusal: YAMLError | None) -> Parsed:
    """Parse with ruamel's own parser what the C parser rejects.

    Unless that would take many seconds.
    """
    try:
        if refusal is not None and len(text) > MAX_SECOND_OPINION:
            raise refusal
        return _Constructor(text, own_events(text)).document()
    except YAMLError as error:
        raise syntax_error(text, error) from error


class _Node(Struct):
    value: JsonValue
    mark: Mark
    size: int = 1
    depth: int = 0
    text: str | None = None
    """The text of a scalar, for mapping keys."""
    merges: bool = False


class _Constructor:
    def __init__(self, text: str, events: Iterator[Event]) -> None:
        self._text = text
        self._next = events.__next__
        self._anchors: dict[str, _Node | None] = {}
        self._problems: list[Problem] = []
        self._nodes = 0

    def document(self) -> Parsed:
        event = self._next()
        while isinstance(event, (StreamStartEvent, DocumentStartEvent)):
            event = self._next()
        if isinstance(event, StreamEndEvent):
            return Parsed(None, lambda: Mark((0, 0), (0, 0), None))
        node = self._node(event, 1)
        while not isinstance(event := self._next(), StreamEndEvent):
            if isinstance(event, DocumentStartEvent):
                self._note(
                    "AV106",
                    "a second YAML document starts here; a file must contain only one",
                    event,
                )
                break
            assert isinstance(event, DocumentEndEvent)
        return Parsed(node.value, lambda: node.mark, tuple(self._problems))

    def _node(self, event: Event, depth: int) -> _Node:
        self._count(1, event)
        if isinstance(event, ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, AliasEvent):
            return self._alias(event, depth)
        elif depth > MAX_DEPTH:
            raise Unparsable(f"nested deeper than {MAX_DEPTH} levels", *span(event))
        else:
            self._refuse_tag(event, _MAP if isinstance(event, MappingStartEvent) else _SEQ)
            if event.anchor:  # type: ignore[attr-defined]  # both collection events have it
                self._anchors[event.anchor] = None  # type: ignore[attr-defined]
            node = (
                self._mapping(event, depth)
                if isinstance(event, MappingStartEvent)
                else self._sequence(event, depth)
            )
        if event.anchor:  # type: ignore[attr-defined]
            self._anchors[event.anchor] = node  # type: ignore[attr-defined]
        return node

    def _count(self, nodes: int, event: Event) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise Unparsable(
                f"more than {MAX_NODES:,} values after expanding aliases", *span(event)
            )

    def _refuse_tag(self, event: Event, *known: str) -> None:
        tag = event.tag  # type: ignore[attr-defined]  # all tagged events have it
        if tag not in (None, "!", *known):
            hint = "quote the value if it is text"
            raise Unparsable(f"tag '{tag}' is not in the YAML core schema", *span(event), hint=hint)

    def _alias(self, event: AliasEvent, depth: int) -> _Node:
        name = str(event.anchor)
        if name not in self._anchors:
            hint = "quote the value if it is text"
            raise Unparsable(f"alias *{name} has no anchor above it", *span(event), hint=hint)
        node = self._anchors[name]
        if node is None:
            raise Unparsable(f"alias *{name} is inside its own anchor", *span(event))
        self._count(node.size, event)
        if depth + node.depth > MAX_DEPTH:
            raise Unparsable(f"nested deeper than {MAX_DEPTH} levels", *span(event))
        mark = Mark(*span(event), node.mark.parts)
        return _Node(node.value, mark, node.size, node.depth, node.text, node.merges)

    def _scalar(self, event: ScalarEvent) -> _Node:
        text: str = event.value
        start, end = span(event)
        if event.style in BLOCKS:
            end = block_end(self._lines(), start, end)
        if not text.isascii():
            text = _paired(text, start, end)
        self._refuse_tag(event, _STR, *_SCALAR_TAGS)
        tag = event.tag
        value: JsonValue = text
        if tag in _SCALAR_TAGS or (tag is None and event.implicit[0]):
            value = self._plain(text, event)
        if tag in _SCALAR_TAGS and not isinstance(value, _SCALAR_TAGS[str(tag)]):
            raise Unparsable(f"'{text}' does not match its tag '{tag}'", start, end)
        return _Node(
            value,
            Mark(start, end, None),
            text=text,
            merges=text == "<<" and bool(event.implicit[0]),
        )

    def _plain(self, text: str, event: ScalarEvent) -> JsonValue:
        try:
            return plain(text)
        except ValueError:
            self._note("AV204", "the number is too long", event)
            return text

    def _sequence(self, event: Event, depth: int) -> _Node:
        items: list[JsonValue] = []
        marks: list[Mark] = []
        size, deepest = 1, 0
        start, last = span(event)
        while not isinstance(event := self._next(), SequenceEndEvent):
            node = self._node(event, depth + 1)
            items.append(node.value)
            marks.append(node.mark)
            last = node.mark.end
            size += node.size
            deepest = max(deepest, node.depth)
        return _Node(
            items, Mark(start, self._collection_end(event, last), marks), size, deepest + 1
        )

    def _mapping(self, event: Event, depth: int) -> _Node:
        data: dict[str, JsonValue] = {}
        marks: dict[str, tuple[Mark, Mark]] = {}
        merged: list[_Node] = []
        merge_mark = Mark((0, 0), (0, 0), None)
        twice: list[tuple[str, Mark, Mark]] = []
        """Key, its first place, its second place."""
        size, deepest = 1, 0
        start, last = span(event)
        while not isinstance(event := self._next(), MappingEndEvent):
            key = self._node(event, depth + 1)
            node = self._node(self._next(), depth + 1)
            last = node.mark.end
            size += node.size + 1
            deepest = max(deepest, node.depth)
            if key.merges:
                if merged:
                    twice.append(("<<", merge_mark, key.mark))
                merged, merge_mark = [*merged, node], key.mark
                continue
            if key.text is None:
                raise self._bad_key(key.mark)
            if key.text in data:
                twice.append((key.text, marks[key.text][0], key.mark))
            data[key.text] = node.value
            marks[key.text] = (key.mark, node.mark)
        if twice:
            self._note_duplicates(twice)
        for node in merged:
            _merge(node, data, marks)
        return _Node(data, Mark(start, self._collection_end(event, last), marks), size, deepest + 1)

    def _bad_key(self, mark: Mark) -> Unparsable:
        line, column = mark.start
        hint = None
        if self._lines()[line][max(column - 1, 0) :].startswith(("{{", "{")):
            hint = "quote a value that starts with {; an environment reference is '${{ NAME }}'"
        return Unparsable(
            "a key must be a string, not a mapping or a list", mark.start, mark.end, hint=hint
        )

    def _collection_end(self, event: Event, last: Point) -> Point:
        """Return the end of a collection.

        The end event of a block collection is at the next token.
        """
        start, end = span(event)
        return end if end > start else last

    def _lines(self) -> list[str]:
        if not hasattr(self, "_split"):
            self._split = LINE_BREAK.split(self._text)
        return self._split

    def _note(self, rule: str, message: str, event: Event) -> None:
        self._problems.append(Problem(rule, message, *span(event)))

    def _note_duplicates(self, twice: list[tuple[str, Mark, Mark]]) -> None:
        """Report duplicate keys of a mapping as one problem: usually a new item lacks its dash."""
        (key, first, second), *others = twice
        message = f"key '{key}' is given twice; first on line {first.start[0] + 1}"
        hint = None
        if others:
            message += f"; so are {listed(repr(other) for other, _, _ in others)}"
            hint = "if a new list item starts here, put '- ' before it"
        self._problems.append(Problem("AV104", message, second.start, second.end, hint))


def _paired(text: str, start: Point, end: Point) -> str:
    """Return a text without surrogates: JSON writes characters beyond U+FFFF as two escapes."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise Unparsable("unpaired surrogate escape", start, end) from error


def _merge(node: _Node, data: dict[str, JsonValue], marks: dict[str, tuple[Mark, Mark]]) -> None:
    values = node.value if isinstance(node.value, list) else [node.value]
    parts = node.mark.parts if isinstance(node.mark.parts, list) else [node.mark]
    for value, mark in zip(values, parts, strict=True):
        if not isinstance(value, dict) or not isinstance(mark.parts, dict):
            raise Unparsable(
                "'<<' must be a mapping or a list of mappings", node.mark.start, node.mark.end
            )
        for key in value:
            if key not in data:
                data[key] = value[key]
                marks[key] = mark.parts[key]


_STR, _MAP, _SEQ = map("tag:yaml.org,2002:{}".format, ("str", "map", "seq"))
_SCALAR_TAGS: dict[str, tuple[type, ...]] = {
    "tag:yaml.org,2002:null": (type(None),),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
}
