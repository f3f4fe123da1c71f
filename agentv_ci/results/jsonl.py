"""JSONL: one row per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from msgspec import DecodeError
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

from agentv_ci.base.left_files import open_named
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import AS_TEXT, ResultRow
from agentv_ci.results.stored_rows import row_reader

FREE_DATA_IS_TEXT = True
"""Programs read this format."""
NOT_A_ROW = "{path}:{number}: not a result row: {error}"

HEADS = (b'{"schema_version":1,', b'{"schema_version": 1,')
"""How rows begin, in this version and in those that wrote spaces."""
METADATA_AS_TEXT = b'],"metadata":"'
"""What a row of this version has behind its tags; quotes inside a text would be escaped."""
REPLACED = "\\ufffd"
"""The escape of U+FFFD, which replaces characters that are not valid."""


def encode(row: ResultRow) -> str:
    """Return a row as one line, including the line break."""
    # ASCII: a line separator inside an answer cannot break the file.
    try:
        line = row.model_dump_json(ensure_ascii=True, context=AS_TEXT)
    except PydanticSerializationError:
        line = REPLACED
    if REPLACED in line:
        # Perhaps a lone surrogate, which JSON can hold: pydantic refuses it in values, not in keys.
        line = json.dumps(row.model_dump(mode="json", context=AS_TEXT), separators=(",", ":"))
    return f"{line}\n"


def items(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; a torn one ends without a line break. Raises OSError."""
    with open_named(path) as file:
        yield from file


def is_torn(item: bytes) -> bool:
    """Whether a line is an incomplete row."""
    if not any(item.startswith(head) or head.startswith(item) for head in HEADS):
        return False
    try:
        json.loads(item)
    except (ValueError, RecursionError):
        return True
    return not item.endswith(b"\n")


def current(item: bytes) -> ResultRow | None:
    """Return a row as this version writes it, without a value in between.

    None for any other line.
    """
    if not _is_current(item):
        return None
    try:
        return ResultRow.model_validate_json(item, context=AS_TEXT)
    except ValidationError:
        return None


def stored(item: bytes) -> ResultRow | None:
    """Return a row of this version, of which only fields and properties can be used.

    Free data stays text. None for any other line.
    """
    if not _is_current(item):
        return None
    try:
        return row_reader()(item)
    except (DecodeError, UnicodeError, RecursionError):
        return None


def _is_current(item: bytes) -> bool:
    return item.startswith(HEADS[0]) and METADATA_AS_TEXT in item


def load(item: bytes) -> JsonValue:
    """Return the value of a line; raises ValueError and RecursionError when it is not JSON."""
    value: JsonValue
    try:
        value = from_json(item)
    except ValueError:
        # from_json refuses lone surrogates, and its messages are less precise.
        value = json.loads(item)
    return value
