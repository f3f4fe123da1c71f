"""One JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from agentv_ci.contracts.results import ResultRow


def encode(row: ResultRow) -> str:
    """Return a row as one line, line break included."""
    # ASCII: a lone surrogate or a line separator inside an answer cannot break the file.
    return json.dumps(row.model_dump(exclude_none=True)) + "\n"


def items(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; one that was torn has no line break. Raises OSError."""
    with path.open("rb") as file:
        yield from file


def parse(item: bytes, path: Path, number: int) -> ResultRow:
    """Return the row in line `number`; raises ValueError naming a line that is none."""
    try:
        return ResultRow.model_validate(json.loads(item))
    except (ValueError, ValidationError, RecursionError) as error:
        raise ValueError(f"{path}:{number}: not a result row: {error}") from error
