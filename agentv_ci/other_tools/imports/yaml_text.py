"""Documents as YAML that people would write.

They are short, with anchors, comments and texts of several lines as blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

WIDTH = 110
"""Characters of a line that holds a whole mapping."""
_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_ ./@()+;!'-]*[A-Za-z0-9_./@()+;!'-])?")
"""Text that is a string in every YAML, also inside brackets, where libyaml refuses a question mark.
"""
_WORDS = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null", "e"))
_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_.-]*")
_LINES = re.compile(
    r"[\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff\n]*"
)


@dataclass(frozen=True, slots=True)
class Anchored:
    """A value that others repeat."""

    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Alias:
    """The value of an anchor."""

    name: str


@dataclass(frozen=True, slots=True)
class Commented:
    """A value with comments before it, each a line without `#`."""

    lines: tuple[str, ...]
    value: Node


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping that is never on one line."""

    value: Mapping[str, Node]


Node = Union[  # noqa: UP007  # it refers to itself
    str,
    int,
    float,
    bool,
    None,
    Sequence["Node"],
    Mapping[str, "Node"],
    Anchored,
    Alias,
    Commented,
    Block,
]


def yaml_text(document: Mapping[str, Node], comments: Sequence[str] = ()) -> str:
    """Return a document as YAML, after its comments."""
    lines = [*_comment(comments, ""), *_entries(document, "")]
    return "\n".join(lines) + "\n"


def _comment(lines: Sequence[str], indent: str) -> Iterator[str]:
    yield from (f"{indent}# {line}".rstrip() for line in lines)


def _entries(mapping: Mapping[str, Node], indent: str) -> Iterator[str]:
    for key, value in mapping.items():
        inner = value
        if isinstance(value, Commented):
            yield from _comment(value.lines, indent)
            inner = value.value
        yield from _entry(f"{indent}{_key(key)}:", inner, indent)


def _entry(prefix: str, value: Node, indent: str) -> Iterator[str]:
    if isinstance(value, Anchored):
        prefix, value = f"{prefix} &{value.name}", value.value
    if (
        isinstance(value, str)
        and "\n" in value
        and (block := _block(value, indent + "  ")) is not None
    ):
        yield f"{prefix} {block}"
    elif (line := _flow(value)) is not None and (
        not _is_nested(value) or len(prefix) + len(line) < WIDTH
    ):
        yield f"{prefix} {line}"
    elif isinstance(value, (Mapping, Block)):
        yield prefix
        yield from _entries(_mapping(value), indent + "  ")
    else:
        assert isinstance(value, Sequence)
        yield prefix
        for item in value:
            yield from _item(item, indent + "  ")


def _item(item: Node, indent: str) -> Iterator[str]:
    if isinstance(item, Commented):
        yield from _comment(item.lines, indent)
        item = item.value
    anchor = ""
    if isinstance(item, Anchored):
        anchor, item = f" &{item.name}", item.value
    line = _flow(item)
    is_short = isinstance(item, Mapping) and len(item) == 1 and not anchor
    fits = line is not None and len(indent) + len(anchor) + len(line) < WIDTH
    if isinstance(item, (Mapping, Block)) and (is_short or not fits) and _mapping(item):
        if anchor:
            yield f"{indent}-{anchor}"
        first, *rest = _entries(_mapping(item), indent + "  ")
        if anchor:
            yield f"{indent}  {first.lstrip()}"
        else:
            yield f"{indent}- {first[len(indent) + 2 :]}"
        yield from rest
    else:
        yield from _entry(f"{indent}-{anchor}", item, indent)


def _mapping(value: Mapping[str, Node] | Block) -> Mapping[str, Node]:
    if isinstance(value, Block):
        return value.value
    return value


def _is_nested(value: Node) -> bool:
    return isinstance(value, (list, tuple, Mapping)) and bool(value)


def _flow(value: Node) -> str | None:
    """Return a value on one line; None if it needs more."""
    match value:
        case Block() | Anchored() | Commented():
            return None
        case Alias(name):
            return f"*{name}"
        case str():
            return _scalar(value)
        case Mapping():
            parts = [(_key(key), _flow(item)) for key, item in value.items()]
            if any(part is None for _, part in parts):
                return None
            return "{" + ", ".join(f"{key}: {part}" for key, part in parts) + "}"
        case list() | tuple():
            items = list(map(_flow_item, value))
            if None in items:
                return None
            return "[" + ", ".join(item or "" for item in items) + "]"
        case _:
            return json.dumps(value)


def _flow_item(item: Node) -> str | None:
    line = _flow(item)
    if line and isinstance(item, Mapping) and len(item) == 1:
        return line[1:-1]
    return line


def _key(key: str) -> str:
    if key == "<<" or (_KEY.fullmatch(key) and key.lower() not in _WORDS):
        return key
    return _quoted(key)


def _scalar(text: str) -> str | None:
    if "\n" in text and _block(text, "  ") is not None:
        return None
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    if "\n" in text or "\t" in text or not _LINES.fullmatch(text):
        return "".join(
            character if _LINES.fullmatch(character) else _escaped(character)
            for character in json.dumps(text, ensure_ascii=False)
        )
    return "'" + text.replace("'", "''") + "'"


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _block(text: str, indent: str) -> str | None:
    """Return a text of several lines as a literal block; None if that would change it."""
    if (
        not _LINES.fullmatch(text)
        or text.startswith((" ", "\t", "\n"))
        or text.endswith("\n\n")
        or "\t" in text
    ):
        return None
    ends = "" if text.endswith("\n") else "-"
    lines = text.removesuffix("\n").split("\n")
    if any(line != line.rstrip() for line in lines):
        return None
    return f"|{ends}\n" + "\n".join(f"{indent}{line}" if line else "" for line in lines)
