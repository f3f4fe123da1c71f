"""Free data in JSON lines: as JSON text and lists, so that a column has one type in every run.

Readers such as DuckDB infer the type of a map from its keys. In memory, in YAML, for scripts and in rows of earlier
versions, the data stays as it is.
"""

import json
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, SerializationInfo, ValidationInfo

from agentv_ci.contracts.base import JsonObject, JsonValue, Recorded

AS_TEXT = {"free_data": "text"}
"""The context of pydantic in which JSON lines are written and read."""


class ToolCount(Recorded):
    """Calls of one tool."""

    name: str = Field(description="Name of the tool.")
    count: int = Field(description="Number of calls.")


COUNT = {"name", "count"}


def _text(value: JsonValue, info: SerializationInfo) -> JsonValue:
    if value is None or info.context != AS_TEXT:
        return value
    return "{}" if value == {} else _ENCODER.encode(value)


def _data(written: object, info: ValidationInfo) -> object:
    if info.context != AS_TEXT or not isinstance(written, str):
        return written
    if written == "{}":
        return {}
    try:
        return _STRICT.decode(written)
    except ValueError:
        return written


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Made once: `json.dumps` and `json.loads` would make one for each text.
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_STRICT = json.JSONDecoder(parse_constant=_refuse)


def _counts(counts: Mapping[str, int], info: SerializationInfo) -> list[ToolCount] | dict[str, int]:
    if info.context != AS_TEXT:
        return dict(counts)
    return [ToolCount(name=name, count=count) for name, count in counts.items()]


def _by_name(written: object) -> object:
    if isinstance(written, list) and all(
        isinstance(each, dict) and each.keys() == COUNT and isinstance(each["name"], str) for each in written
    ):
        return {each["name"]: each["count"] for each in written}
    return written


FreeValue = Annotated[JsonValue, BeforeValidator(_data), PlainSerializer(_text, JsonValue, "json")]
"""Any data, in JSON lines as JSON text."""
ObjectText = Annotated[str, Field(pattern=r"^\{")]
FreeObject = Annotated[JsonObject, BeforeValidator(_data), PlainSerializer(_text, ObjectText | JsonObject, "json")]
"""An object, in JSON lines as JSON text."""
CountsByName = Annotated[
    dict[str, int], BeforeValidator(_by_name), PlainSerializer(_counts, list[ToolCount] | dict[str, int], "json")
]
"""Name → count, in JSON lines as a list."""
