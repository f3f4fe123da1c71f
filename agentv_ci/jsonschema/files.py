"""Files of authors' schemas: JSON or YAML, by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentv_ci.base.json_access import read_json
from agentv_ci.contracts.base import JsonValue

SCHEMA_SUFFIXES = (".json", ".yaml", ".yml")
"""What the name of a schema file ends in, in any case."""


def is_schema_name(path: Path) -> bool:
    """Whether a path has the name of a schema file."""
    return path.suffix.lower() in SCHEMA_SUFFIXES


def read_schema(path: Path, text: str, read_yaml: Callable[[str], JsonValue]) -> JsonValue:
    """Return the value in a schema file; raises ValueError."""
    if path.suffix.lower() != ".json":
        return read_yaml(text)
    try:
        return read_json(text.removeprefix("\ufeff"), strict=True)
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from error
