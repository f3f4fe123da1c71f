"""Results files: their two forms, and how rows are read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, Protocol, assert_never

from pydantic import ValidationError

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import RESULT_VERSION, ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.model_errors import sentence
from agentv_ci.results import jsonl

ResultsFormat = Literal["jsonl", "yaml"]


class UnreadableResults(UsageError):
    """A results file that cannot be opened, or something in it that is no row; the message says where."""


class Form(Protocol):
    """How rows are written."""

    NOT_A_ROW: str
    """What is said of an item that is no row: `{path}`, `{number}` and `{error}` say which and why."""

    def encode(self, row: ResultRow) -> str:
        """Return a row as it is appended to a file."""
        ...

    def items(self, path: Path) -> Iterator[bytes]:
        """Yield the rows of a file as they stand there; raises OSError."""
        ...

    def is_torn(self, item: bytes) -> bool:
        """Whether an item is the beginning of a row whose writer did not come to its end."""
        ...

    def load(self, item: bytes) -> JsonValue:
        """Return the value of an item; raises ValueError and RecursionError for what is none."""
        ...


def form_of(path: Path) -> ResultsFormat:
    """Return the form of a results file, by its name."""
    return "yaml" if path.suffix in (".yaml", ".yml") else "jsonl"


def form(name: ResultsFormat) -> Form:
    """Return a form by its name."""
    match name:
        case "jsonl":
            return jsonl
        case "yaml":
            from agentv_ci.results import yaml

            return yaml
        case _:
            assert_never(name)


def read_rows(path: Path, name: ResultsFormat | None = None, *, allow_torn: bool = False) -> Iterator[ResultRow]:
    """Yield the rows of a results file; raises what `read_items` raises."""
    return (row for _, row in read_items(path, name, allow_torn=allow_torn))


def read_items(
    path: Path, name: ResultsFormat | None = None, *, allow_torn: bool = False
) -> Iterator[tuple[bytes, ResultRow]]:
    """Yield the rows of a results file, as they stand there and as what they say; raises UnreadableResults.

    The form is that of the file's name unless it is given. With `allow_torn` the writer may have been killed: a last
    row that was torn counts as absent.
    """
    how = form(name or form_of(path))
    try:
        items = how.items(path)
        for number, item in enumerate(_without_torn(items, how) if allow_torn else items, 1):
            try:
                row = row_of(how.load(item))
            except (ValueError, RecursionError) as error:
                raise UnreadableResults(how.NOT_A_ROW.format(path=path, number=number, error=error)) from error
            yield item, row
    except OSError as error:
        raise UnreadableResults(f"cannot read '{path}': {error.strerror}") from error


def _without_torn(items: Iterable[bytes], how: Form) -> Iterator[bytes]:
    last = b""
    for item in items:
        if last:
            yield last
        last = item
    # A disk that lost its power may leave zeros at the end.
    if last.strip(b"\0\r\n") and not how.is_torn(last):
        yield last


def row_of(data: object) -> ResultRow:
    """Return the row that a value is; raises ValueError with a sentence about what it lacks."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > RESULT_VERSION:
        raise ValueError(f"its schema_version is {version}, and this version of agentv-ci reads {RESULT_VERSION}")
    try:
        return ResultRow.model_validate(data)
    except ValidationError as error:
        raise ValueError(sentence(error)) from error
