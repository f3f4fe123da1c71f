"""Mistakes in answers that are JSON, in the layout of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.plan import json_text
from agentv_ci.contracts.proof import Operator
from agentv_ci.prove.damaged_text import FIGURE, other_figure
from agentv_ci.text import shortened, unfenced

LONGEST = 60

Change = tuple[Operator, str, JsonValue]
"""What is done, in a few words, and the value afterwards."""
_LAYOUTS: tuple[Callable[[JsonValue], str], ...] = (
    json_text,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False, indent=4),
    lambda value: json.dumps(value, ensure_ascii=False, indent=2),
)


def json_damages(text: str, value: JsonValue) -> Iterator[tuple[Operator, str, str]]:
    """Yield operator, change and text of every answer with one mistake."""
    inside = unfenced(text).strip()
    layout = next((each for each in _LAYOUTS if each(value) == inside), _LAYOUTS[-1])
    for operator, change, damaged in _changes(value):
        yield operator, change, text.replace(inside, layout(damaged)) if inside else layout(damaged)


def _changes(value: JsonValue) -> Iterator[Change]:
    """Yield a value with one mistake somewhere in it."""
    match value:
        case dict():
            yield from _fields(value)
        case list():
            for place, item in enumerate(value):
                for operator, change, damaged in (*_leaf(f"[{place}]", item), *_changes(item)):
                    yield operator, change, [*value[:place], damaged, *value[place + 1 :]]
        case _:
            return


def _fields(fields: dict[str, JsonValue]) -> Iterator[Change]:
    for key, item in fields.items():
        yield "json-field-removed", f"'{key}' is missing", {name: fields[name] for name in fields if name != key}
        retyped: JsonValue = {"items": item} if isinstance(item, list) else [item]
        yield "json-field-retyped", f"'{key}' became {_kind(retyped)}", {**fields, key: retyped}
        for operator, change, damaged in (*_leaf(f"'{key}'", item), *_changes(item)):
            yield operator, change, {**fields, key: damaged}


def _kind(value: JsonValue) -> str:
    return "an object" if isinstance(value, dict) else "a list"


def _leaf(name: str, value: JsonValue) -> Iterator[Change]:
    match value:
        case bool():
            yield "negation", f"{name} became {json.dumps(not value)}", not value
        case int() | float():
            other = 2 * value + 1
            yield "number", f"{name} became {other}", other
        case str():
            for figure in FIGURE.finditer(value):
                text = value[: figure.start()] + other_figure(figure[0]) + value[figure.end() :]
                yield "number", f"{name} became '{shortened(text, LONGEST)}'", text
        case _:
            return
