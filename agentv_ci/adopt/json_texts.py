"""JSON as other tools write it: with byte order marks and NaN."""

from __future__ import annotations

from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.lfs_pointers import LFS_POINTER, is_lfs_pointer
from agentv_ci.json_access import read_json
from agentv_ci.left_files import read_regular

MAX_BYTES = 512 * 1024 * 1024
"""Of a file, or of what an archive holds."""


def text_in(path: Path) -> str:
    """Return the text of a file; raises OSError and ValueError."""
    content = read_regular(path, MAX_BYTES)
    if is_lfs_pointer(content):
        raise ValueError(f"it is {LFS_POINTER}")
    return content.decode("utf-8-sig")


def json_in(text: str) -> JsonValue:
    """Return the value of a JSON text, NaN and Infinity as their names; raises ValueError."""
    return read_json(text, names_constants=True)


def lines_in(text: str) -> list[JsonObject]:
    """Return the objects of a text with one per line; raises ValueError."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = json_in(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {error}") from error
            if not isinstance(value, dict):
                raise ValueError(f"line {number} is not a JSON object")
            found.append(value)
    return found
