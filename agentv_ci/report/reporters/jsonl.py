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


def read(path: Path) -> Iterator[ResultRow]:
    """Yield the rows of a file; raises ValueError naming the line that is no row."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield ResultRow.model_validate(json.loads(line))
            except (ValueError, ValidationError, RecursionError) as error:
                raise ValueError(f"{path}:{number}: not a result row: {error}") from error
