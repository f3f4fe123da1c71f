"""Mistakes in answers that are JSON, in the layout of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.plan import json_text
from agentv_ci.contracts.proof import Operator
from agentv_ci.prove.damaged_text import FIGURE, Damage, other_figure
from agentv_ci.text import shortened, unfenced

LONGEST = 60

Path = tuple[str | int, ...]
Change = tuple[Operator, str, Path, tuple[JsonValue, ...]]
"""What is done, in a few words, where, and the value there afterwards; none if it is removed."""
_LAYOUTS: tuple[Callable[[JsonValue], str], ...] = (
    json_text,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False, indent=4),
    lambda value: json.dumps(value, ensure_ascii=False, indent=2),
)


def json_damages(text: str, value: JsonValue) -> Iterator[Damage]:
    """Yield every answer with one mistake."""
    inside = unfenced(text).strip()
    layout = next((each for each in _LAYOUTS if each(value) == inside), _LAYOUTS[-1])

    def written(path: Path, other: tuple[JsonValue, ...]) -> str:
        return text.replace(inside, layout(_replaced(value, path, other)))

    for operator, change, path, other in _changes(value, ()):
        yield operator, change, partial(written, path, other)


def _replaced(value: JsonValue, path: Path, other: tuple[JsonValue, ...]) -> JsonValue:
    """Return a copy with another value at a path, or with none."""
    if not path:
        return other[0]
    step, *rest = path
    parts: list[tuple[str | int, JsonValue]] = [*(value.items() if isinstance(value, dict) else enumerate(value))]  # type: ignore[arg-type]  # the path leads through it
    kept = [
        (key, item if key != step else _replaced(item, tuple(rest), other))
        for key, item in parts
        if other or rest or key != step
    ]
    return {str(key): item for key, item in kept} if isinstance(value, dict) else [item for _, item in kept]


def _changes(value: JsonValue, path: Path) -> Iterator[Change]:
    """Yield every mistake that can be made in a value."""
    items: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for step, item in items:
        place = (*path, step)
        name = f"'{step}'" if isinstance(step, str) else f"[{step}]"
        if isinstance(step, str):
            retyped: JsonValue = {"items": item} if isinstance(item, list) else [item]
            yield "json-field-removed", f"{name} is missing", place, ()
            yield "json-field-retyped", f"{name} became {_kind(retyped)}", place, (retyped,)
        for operator, change, other in _leaf(name, item):
            yield operator, change, place, (other,)
        yield from _changes(item, place)


def _kind(value: JsonValue) -> str:
    return "an object" if isinstance(value, dict) else "a list"


def _leaf(name: str, value: JsonValue) -> Iterator[tuple[Operator, str, JsonValue]]:
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
