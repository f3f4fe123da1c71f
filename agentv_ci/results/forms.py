"""The two forms of a results file, and how its rows are read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol, assert_never

from agentv_ci.contracts.results import ResultRow

ResultsFormat = Literal["jsonl", "yaml"]


class Form(Protocol):
    """How rows are written."""

    def encode(self, row: ResultRow) -> str:
        """Return a row as it is appended to a file."""
        ...

    def items(self, path: Path) -> Iterator[bytes]:
        """Yield the rows of a file as they stand there; raises OSError."""
        ...

    def is_torn(self, item: bytes) -> bool:
        """Whether an item is the beginning of a row whose writer did not come to its end."""
        ...

    def parse(self, item: bytes, path: Path, number: int) -> ResultRow:
        """Return what row `number` of a file says; raises ValueError with the place of what is no row."""
        ...


def form_of(path: Path) -> ResultsFormat:
    """Return the form of a results file, by its name."""
    return "yaml" if path.suffix in (".yaml", ".yml") else "jsonl"


def form(name: ResultsFormat) -> Form:
    """Return a form by its name."""
    match name:
        case "jsonl":
            from agentv_ci.results import jsonl

            return jsonl
        case "yaml":
            from agentv_ci.results import yaml

            return yaml
        case _:
            assert_never(name)


def read(path: Path, name: ResultsFormat) -> Iterator[ResultRow]:
    """Yield the rows of a results file; raises OSError, and ValueError with the place of what is no row."""
    how = form(name)
    return (how.parse(item, path, number) for number, item in enumerate(how.items(path), 1))


def read_whole(path: Path, name: ResultsFormat) -> Iterator[tuple[bytes, ResultRow]]:
    """Yield the rows of a file whose writer may have been killed, as they stand there and as what they say.

    A last one that was torn counts as absent. Raises what `read` raises.
    """
    how = form(name)
    number, last = 0, b""
    for item in how.items(path):
        if number:
            yield last, how.parse(last, path, number)
        number, last = number + 1, item
    # A disk that lost its power may leave zeros at the end.
    if not last.strip(b"\0\r\n") or how.is_torn(last):
        return
    yield last, how.parse(last, path, number)
