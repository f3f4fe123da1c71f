"""One JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.reading import row_of


def encode(row: ResultRow) -> str:
    """Return a row as one line, line break included."""
    # ASCII: a lone surrogate or a line separator inside an answer cannot break the file.
    return json.dumps(row.model_dump(exclude_none=True)) + "\n"


def items(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; one that was torn has no line break. Raises OSError."""
    with path.open("rb") as file:
        yield from file


def is_torn(item: bytes) -> bool:
    """Whether a line is the beginning of a row, and not its end."""
    head = b'{"schema_version": 1,'
    if not (item.startswith(head) or head.startswith(item)):
        return False
    try:
        json.loads(item)
    except (ValueError, RecursionError):
        return True
    return not item.endswith(b"\n")


def parse(item: bytes, path: Path, number: int) -> ResultRow:
    """Return the row in line `number`; raises ValueError naming a line that is none."""
    try:
        return row_of(json.loads(item))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}:{number}: not a result row: {error}") from error
