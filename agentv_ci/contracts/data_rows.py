"""Rows of data, each of which makes a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from agentv_ci.contracts.base import JsonObject

DATA_SUFFIXES = (".csv", ".jsonl", ".json", ".yaml", ".yml")
"""File formats of rows."""
ANY_LENGTH = 2**31 - 1
"""Characters of the longest field for `csv`, which refuses one of more than 128 KiB by default."""


class DataRow(NamedTuple):
    """A row, and its place; lines and columns count from 1."""

    values: JsonObject
    path: Path
    line: int
    column: int
    end_line: int
    header: int | None = None
    """The line with the names of the columns, if all rows share them."""


class DataProblem(NamedTuple):
    """A mistake in a row, or in the file from this place on."""

    rule: str
    message: str
    path: Path
    line: int
    column: int
    hint: str | None = None


ReadRows = Callable[[Path], Iterator[DataRow | DataProblem]]
"""Read the rows of a file one by one; after a mistake, it ends or goes on with the next row."""
