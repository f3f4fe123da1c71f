"""One YAML sequence that is well-formed after every row; long text in block scalars. A door to ruamel.yaml."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import ResultRow


def encode(row: ResultRow) -> str:
    """Return a row as one item of the sequence."""
    writer = YAML()
    writer.width = 1_000_000
    writer.indent(sequence=2, offset=0)
    out = io.StringIO()
    writer.dump([_styled(row.model_dump(exclude_none=True))], out)
    return out.getvalue()


def _styled(value: JsonValue) -> object:
    if isinstance(value, dict):
        return {key: _styled(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_styled(item) for item in value]
    if isinstance(value, str) and "\n" in value:
        fits = value.strip() and all(line.isprintable() and line == line.rstrip() for line in value.split("\n"))
        return LiteralScalarString(value) if fits else DoubleQuotedScalarString(value)
    return value


def read(path: Path) -> Iterator[ResultRow]:
    """Yield the rows of a file; raises ValueError for what is none."""
    try:
        listed: JsonValue = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from error
    for number, item in enumerate(listed if isinstance(listed, list) else (), 1):
        try:
            yield ResultRow.model_validate(item)
        except ValidationError as error:
            raise ValueError(f"{path}: item {number} is not a result row: {error}") from error
