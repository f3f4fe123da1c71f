"""Making the rest of a wrong document one that can be checked further."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from agentv_ci.contracts.base import Authored, JsonObject, JsonValue, fields_of
from agentv_ci.contracts.source import Pointer, Source
from agentv_ci.jsonschema.schemas import Violation
from agentv_ci.validate.findings import STAND_IN, Finder, Losses
from agentv_ci.validate.walk import mappings

KINDS = ("type", "provider")
"""Fields that nothing can stand in for: what else belongs beside them depends on them."""


class Repair:
    """What of a document is left out, and what is put in the place of missing fields; all as authored."""

    def __init__(self, contract: type[Authored]) -> None:
        self._contract = contract
        self._dropped: set[Pointer] = set()
        self._stand_ins: dict[Pointer, JsonValue] = {}

    def take(self, refused: Iterable[Violation], find: Finder, data: JsonValue) -> bool:
        """Note how to mend what was refused in `data`; False when nothing of the document would be left."""
        known = len(self._dropped) + len(self._stand_ins)
        contracts = {way: contract for contract, _, way in mappings(self._contract, data)}
        for violation in refused:
            parent, key = violation.pointer[:-1], violation.pointer[-1:]
            if violation.keyword != "required":
                self._dropped.add(find.authored(violation.pointer))
                continue
            contract, place = contracts.get(parent), (*find.authored(parent), *key)
            if not parent or contract is None or key[0] in KINDS or place in self._stand_ins:
                self._dropped.add(find.authored(parent))
            else:
                self._stand_ins[place] = _stand_in_for_field(contract, str(key[0]))
        return () not in self._dropped and len(self._dropped) + len(self._stand_ins) > known

    def apply(self, source: Source) -> tuple[JsonValue, Finder]:
        """Return the mended data, and how to speak of it."""
        survivors: dict[Pointer, tuple[int, ...]] = {}
        added: dict[Pointer, JsonObject] = {}
        for place, value in self._stand_ins.items():
            added.setdefault(place[:-1], {})[str(place[-1])] = value
        data = self._mended(source.data, (), survivors, added)
        return data, Finder(source, survivors, Losses.of(self._dropped, self._stand_ins))

    def _mended(
        self,
        value: JsonValue,
        way: Pointer,
        survivors: dict[Pointer, tuple[int, ...]],
        added: Mapping[Pointer, JsonObject],
    ) -> JsonValue:
        if isinstance(value, dict):
            mended: JsonObject = {
                key: self._mended(item, (*way, key), survivors, added)
                for key, item in value.items()
                if (*way, key) not in self._dropped
            }
            return mended | added.get(way, {})
        if isinstance(value, list):
            kept = tuple(index for index in range(len(value)) if (*way, index) not in self._dropped)
            if len(kept) < len(value):
                survivors[way] = kept
            return [self._mended(value[index], (*way, index), survivors, added) for index in kept]
        return value


def _stand_in_for_field(contract: type[Authored], name: str) -> JsonValue:
    field = fields_of(contract)[name]
    return _stand_in(field.annotation, needs_items=_has_least(field.metadata))


def _stand_in(annotation: object, *, needs_items: bool) -> JsonValue:
    """Return a value that the type of a field takes."""
    annotation = getattr(annotation, "__value__", annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _stand_in(arguments[0], needs_items=_has_least(arguments[1:]))
    if origin is Literal:
        return str(arguments[0])
    if origin is tuple:
        return [_stand_in(arguments[0], needs_items=False)] if needs_items else []
    if origin in (Union, UnionType):
        return _stand_in(arguments[0], needs_items=needs_items)
    if isinstance(annotation, type) and issubclass(annotation, Authored):
        required = [name for name, field in fields_of(annotation).items() if field.is_required()]
        return {name: _stand_in_for_field(annotation, name) for name in required}
    return STAND_IN if annotation is str else 1


def _has_least(constraints: Iterable[object]) -> bool:
    return any(getattr(each, "min_length", None) for each in constraints)
