"""JSON as other tools write it: with byte order marks and NaN."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from agentv_ci.base.json_access import read_json, require_text
from agentv_ci.base.left_files import read_regular
from agentv_ci.contracts.base import JsonObject, JsonValue

MAX_BYTES = 512 * 1024 * 1024
"""Of a file, or of what an archive holds."""


def text_in(path: Path) -> str:
    """Return the text of a file; raises OSError and ValueError."""
    content = require_text(read_regular(path, MAX_BYTES))
    # PowerShell writes what is redirected to a file in UTF-16.
    encoding = "utf-8-sig"
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"it is not in UTF-8 (byte {error.start}: {error.reason}); write it in UTF-8"
        ) from error


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
