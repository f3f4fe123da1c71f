"""Results files: their two formats, and reading rows back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol, TypeVar, assert_never

from pydantic import ValidationError

from agentv_ci.base.model_errors import sentence
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import AS_TEXT, RESULT_VERSION, ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.results import jsonl

R = TypeVar("R")

ResultsFormat = Literal["jsonl", "yaml"]
_FIRST_FIELD = b"schema_version"
RESULTS_SUFFIXES = ("", ".jsonl", ".ndjson", ".yaml", ".yml")


class UnreadableResults(UsageError):
    """A results file cannot be opened, or an item in it is not a row; the message has the place."""


class Form(Protocol):
    """A format of results files."""

    NOT_A_ROW: str
    """The message for an item that is not a row, with `{path}`, `{number}` and `{error}`."""
    FREE_DATA_IS_TEXT: bool
    """Whether metadata, requests and tool calls are JSON text."""

    def encode(self, row: ResultRow) -> str:
        """Return a row as it is appended to a file."""
        ...

    def items(self, path: Path) -> Iterator[bytes]:
        """Yield the rows of a file as bytes; raises OSError."""
        ...

    def is_torn(self, item: bytes) -> bool:
        """Whether an item is an incomplete row, whose writer was stopped."""
        ...

    def current(self, item: bytes, /) -> ResultRow | None:
        """Return a row that is written as in this version.

        None for any other item, which `load` is for.
        """
        ...

    def stored(self, item: bytes, /) -> ResultRow | None:
        """Return a row of this version several times faster, without methods and data of its own.

        Only fields and properties of what it returns can be used; free data in it may be text. None
        for any other item.
        """
        ...

    def load(self, item: bytes) -> JsonValue:
        """Return the value of an item; raises ValueError and RecursionError for an invalid one."""
        ...


def form_named(path: Path) -> ResultsFormat:
    """Return the format that the name of a results file stands for."""
    if path.suffix in (".yaml", ".yml"):
        return "yaml"
    return "jsonl"


def form_of(path: Path) -> ResultsFormat:
    """Return the format of a results file: by its first character, else by its name.

    Raises OSError.
    """
    match _beginning(path)[:1]:
        case b"{":
            return "jsonl"
        case b"-":
            return "yaml"
        case _:
            return form_named(path)


def holds_rows(path: Path) -> bool:
    """Whether a file can be results. Raises OSError.

    A name in `.json` is also that of plans, reports and baselines.
    """
    return path.suffix != ".json" or _FIRST_FIELD in _beginning(path)


def _beginning(path: Path) -> bytes:
    """Return the first characters of a file; of a pipe, which can be read only once, none."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(len(_FIRST_FIELD) + 2)


def form(name: ResultsFormat) -> Form:
    """Return the code of a format."""
    match name:
        case "jsonl":
            return jsonl
        case "yaml":
            from agentv_ci.results import yaml

            return yaml
        case _:
            assert_never(name)


def read_rows(
    path: Path, name: ResultsFormat | None = None, *, allow_torn: bool = False
) -> Iterator[ResultRow]:
    """Yield the rows of a results file; raises what `read_items` raises."""
    return map(itemgetter(1), read_items(path, name, allow_torn=allow_torn))


def scan_rows(
    path: Path, name: ResultsFormat | None = None, *, allow_torn: bool = False
) -> Iterator[ResultRow]:
    """Yield the rows of a results file as `Form.stored` returns them, which is fastest.

    Raises what `read_items` raises.
    """
    how = _form_in(path, name)
    return map(itemgetter(1), _read(path, how, how.stored, allow_torn=allow_torn))


def read_items(
    path: Path, name: ResultsFormat | None = None, *, allow_torn: bool = False
) -> Iterator[tuple[bytes, ResultRow]]:
    """Yield the rows of a results file, each as bytes and parsed; raises UnreadableResults.

    Without `name`, the file's content and name decide the format. With `allow_torn`, an incomplete
    last row, as a killed writer leaves it, is ignored.
    """
    how = _form_in(path, name)
    return _read(path, how, how.current, allow_torn=allow_torn)


def _form_in(path: Path, name: ResultsFormat | None) -> Form:
    try:
        return form(name or form_of(path))
    except OSError as error:
        raise UnreadableResults(f"cannot read '{path}': {error.strerror}") from error


def _read(
    path: Path, how: Form, current: Callable[[bytes], R | None], *, allow_torn: bool
) -> Iterator[tuple[bytes, R | ResultRow]]:
    try:
        items = how.items(path)
        for number, item in enumerate(_without_torn(items, how) if allow_torn else items, 1):
            try:
                row: R | ResultRow | None = current(item)
                if row is None:
                    row = row_of(how.load(item), free_data_is_text=how.FREE_DATA_IS_TEXT)
            except (ValueError, RecursionError) as error:
                if b"evalcases:" in item or b"agentv-eval-v" in item:
                    raise UnreadableResults(
                        f"'{path}' is an eval file, not results of a run"
                    ) from None
                raise UnreadableResults(
                    how.NOT_A_ROW.format(path=path, number=number, error=error)
                ) from error
            yield item, row
    except OSError as error:
        raise UnreadableResults(f"cannot read '{path}': {error.strerror}") from error


def _without_torn(items: Iterable[bytes], how: Form) -> Iterator[bytes]:
    last = b""
    for item in items:
        if last:
            yield last
        last = item
    # After a power failure there may be zeros at the end.
    if last.strip(b"\0\r\n") and not how.is_torn(last):
        yield last


def row_of(data: object, *, free_data_is_text: bool = True) -> ResultRow:
    """Validate a value as a row; raises ValueError with a readable message."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > RESULT_VERSION:
        raise ValueError(
            f"schema_version {version} is not supported; "
            f"this version of agentv-ci reads {RESULT_VERSION}"
        )
    if isinstance(data, dict) and data.get("usage", ...) is None:
        # The schema of earlier versions allows it.
        data = {**data, "usage": {}}
    # Rows of earlier versions hold the data itself, in which a text is a text.
    has_texts = (
        free_data_is_text and isinstance(data, dict) and isinstance(data.get("metadata"), str)
    )
    try:
        context = AS_TEXT if has_texts else None
        return ResultRow.model_validate(data, context=context)
    except ValidationError as error:
        raise ValueError(sentence(error)) from error
