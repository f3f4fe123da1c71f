"""One YAML sequence that is well-formed after every row; long text in block scalars. A door to ruamel.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import ResultRow
from agentv_ci.outside import MAX_DEPTH, well_formed
from agentv_ci.report.yaml_text import item

LAST = re.compile(rb"\n  dry_run: (true|false)\r?\n\Z")
"""The last field of a row, which is always written."""
WITHIN = (b" ", b"\n", b"\r", b"#")
"""What lines inside an item begin with."""
MAX_INDICATORS = 5_000
"""Characters that may open a level, up to which an item is surely not too deep."""


def encode(row: ResultRow) -> str:
    """Return a row as one item of the sequence."""
    # YAML cannot hold lone surrogates, not even in escapes.
    return item(well_formed(row.model_dump(mode="json", exclude_none=True), 2 * MAX_DEPTH))


def items(path: Path) -> Iterator[bytes]:
    """Cut the sequence at its dashes: a file of many rows is never held as a whole. Raises OSError."""
    lines: list[bytes] = []
    with path.open("rb") as file:
        for line in file:
            # A dash, or what a machine that lost its power may leave at the end.
            if lines and line[:1] not in WITHIN:
                yield b"".join(lines)
                lines = []
            lines.append(line)
    if lines:
        yield b"".join(lines)


def is_torn(item: bytes) -> bool:
    """Whether an item is the beginning of a row, and not its end."""
    head = b"- schema_version: 1"
    return (item.startswith(head) or head.startswith(item)) and not LAST.search(item)


def parse(item: bytes, path: Path, number: int) -> ResultRow:
    """Return the row that item `number` is; raises ValueError for what is none."""
    try:
        return ResultRow.model_validate(_load(item.decode("utf-8")))
    except (YAMLError, ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: item {number} is not a result row: {error}") from error


def _load(item: str) -> JsonValue:
    # The C parser's recursion has no limit but the process's stack; ruamel's own has Python's.
    is_deep = sum(map(item.count, "[{-?:")) > MAX_INDICATORS
    listed: JsonValue = YAML(typ="safe", pure=is_deep).load(item)
    if not isinstance(listed, list) or len(listed) != 1:
        raise YAMLError("not an item of a sequence")
    return listed[0]
