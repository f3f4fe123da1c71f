"""Check documents against their contract: the model decides, the published schema explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Literal, Union, get_args, get_origin

from msgspec.structs import replace
from pydantic import ValidationError

from agentv_ci.contracts.base import Authored, JsonObject, JsonValue, fields_of, spellings
from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import Diagnostic, Kind
from agentv_ci.contracts.documents import Document
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.judge_evaluators import JudgeSetDocument
from agentv_ci.contracts.quarantine import QuarantineDocument
from agentv_ci.contracts.source import Pointer, spell
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.jsonschema.schemas import MOST_EXPLAINED, SCHEMAS
from agentv_ci.validate.findings import STAND_IN, Finder
from agentv_ci.validate.walk import mappings

if TYPE_CHECKING:
    from agentv_ci.jsonschema.violations import Violation

_CONTRACTS: Mapping[Kind, type[Document]] = {
    "eval": EvalDocument,
    "targets": TargetsDocument,
    "config": ConfigDocument,
    "judge-set": JudgeSetDocument,
    "quarantine": QuarantineDocument,
    "experiment": ExperimentDocument,
}

MOST_REPAIRS = 8
"""How often what is left of a document is checked again."""

KINDS = ("type", "provider")
"""Fields that cannot be filled in: the other fields depend on them."""


def contract_for(kind: Kind) -> type[Document]:
    """Return the contract of a kind of document."""
    return _CONTRACTS[kind]


def check_structure(finder: Finder, kind: Kind) -> tuple[Document | None, list[Diagnostic], Finder]:
    """Return the valid part of a document, the diagnostics of the rest, and a finder.

    Invalid parts are reported and dropped, missing ones filled in, until the rest is a document.
    So the rules can check it in the same pass. The finder is for the valid part.
    """
    authored = finder.source.data
    document = _model(kind, authored)
    if not isinstance(document, ValidationError):
        return document, [], finder
    # Slow to import, and most documents are valid.
    from agentv_ci.validate.wording import BEYOND_THE_SCHEMA, diagnostics, refused_parts

    refused = refused_parts(SCHEMAS[kind], document, authored)
    found = list(diagnostics(finder, refused))
    if len(refused) == MOST_EXPLAINED:
        found += [replace(last, message="and more errors", hint=None) for last in found[-1:]]
        return None, found, finder
    repair = _Repair(contract_for(kind))
    data = authored
    for _ in range(MOST_REPAIRS):
        if not refused or not repair.take(refused, finder, data):
            break
        data, finder = repair.apply(finder)
        document = _model(kind, data)
        if not isinstance(document, ValidationError):
            return document, found, finder
        refused = refused_parts(SCHEMAS[kind], document, data)
        # Of the items of a list, the model refuses one at a time.
        beyond = [part for part in refused if part.keyword == BEYOND_THE_SCHEMA]
        found += diagnostics(finder, beyond)
    return None, found, finder


def _model(kind: Kind, data: JsonValue) -> Document | ValidationError:
    try:
        return contract_for(kind).model_validate(data)
    except ValidationError as error:
        return error


class _Repair:
    """Which parts of a document are dropped, and which missing fields are filled in.

    As authored.
    """

    def __init__(self, contract: type[Authored]) -> None:
        self._contract = contract
        self._dropped: set[Pointer] = set()
        self._added: dict[Pointer, JsonObject] = {}
        """Mapping → its filled-in fields."""

    def take(self, refused: Iterable[Violation], find: Finder, data: JsonValue) -> bool:
        """Plan the repair of what was refused in `data`.

        False if the document cannot be repaired.
        """
        known = self._size()
        contracts = {way: contract for contract, _, way in mappings(self._contract, data)}
        for violation in refused:
            if violation.keyword != "required":
                self._dropped.add(find.authored(violation.pointer))
                continue
            parent, key = violation.pointer[:-1], str(violation.pointer[-1])
            place = find.authored(parent)
            if (
                not parent
                or parent not in contracts
                or key in KINDS
                or key in self._added.get(place, {})
            ):
                self._dropped.add(place)
            else:
                self._added.setdefault(place, {})[key] = _stand_in_for_field(contracts[parent], key)
        return () not in self._dropped and self._size() > known

    def _size(self) -> int:
        return len(self._dropped) + sum(map(len, self._added.values()))

    def apply(self, find: Finder) -> tuple[JsonValue, Finder]:
        """Return the repaired data, and its finder."""
        survivors: dict[Pointer, tuple[int, ...]] = {}
        data = self._repaired(find.source.data, (), survivors)
        stand_ins: set[str] = set()
        for pointer, fields in self._added.items():
            stand_ins.update(spell((*pointer, key)) for key in fields)
        dropped = frozenset(self._dropped)
        return data, replace(find, survivors=survivors, dropped=dropped, stand_ins=stand_ins)

    def _repaired(
        self, value: JsonValue, way: Pointer, survivors: dict[Pointer, tuple[int, ...]]
    ) -> JsonValue:
        if isinstance(value, dict):
            repaired: JsonObject = {
                key: self._repaired(item, (*way, key), survivors)
                for key, item in value.items()
                if (*way, key) not in self._dropped
            }
            return repaired | self._added.get(way, {})
        if isinstance(value, list):
            left = tuple(index for index in range(len(value)) if (*way, index) not in self._dropped)
            if len(left) < len(value):
                survivors[way] = left
            return [self._repaired(value[index], (*way, index), survivors) for index in left]
        return value


def _stand_in_for_field(contract: type[Authored], name: str) -> JsonValue:
    field = fields_of(contract)[name]
    return _stand_in(field.annotation, needs_items=_has_least(field.metadata))


def _stand_in(annotation: object, *, needs_items: bool) -> JsonValue:
    """Return a valid value of a field's type."""
    annotation = getattr(annotation, "__value__", annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _stand_in(arguments[0], needs_items=needs_items)
    if origin is Literal:
        return str(arguments[0])
    if origin is tuple and not needs_items:
        return []
    if origin is tuple:
        return [_stand_in(arguments[0], needs_items=False)]
    if origin in (Union, UnionType):
        return _stand_in(arguments[0], needs_items=needs_items)
    if isinstance(annotation, type) and issubclass(annotation, Authored):
        required = [name for name, field in fields_of(annotation).items() if field.is_required()]
        return {name: _stand_in_for_field(annotation, name) for name in required}
    return STAND_IN if annotation is str else 1


def _has_least(constraints: Iterable[object]) -> bool:
    return any(getattr(constraint, "min_length", None) for constraint in constraints)


def check_spellings(contract: type[Authored], find: Finder) -> Iterator[Diagnostic]:
    """AV314 for keys given in two spellings, or both outside and inside `settings`."""
    keys = find.source.keys
    if (
        keys is not None
        and keys.isdisjoint(_older_names())
        and all(key == key.lower() for key in keys)
    ):
        return
    for part, mapping, pointer in mappings(contract, find.source.data):
        names = spellings(part)
        winners: dict[str, str] = {}
        for key in sorted(filter(names.__contains__, mapping), key=lambda key: names[key][1]):
            winner = winners.setdefault(names[key][0], key)
            if winner != key:
                message = f"'{key}' is another spelling of '{winner}', which is also given and wins"
                yield find.at("AV314", message, (*pointer, key), key=True)


@cache
def _older_names() -> frozenset[str]:
    """Return the older names of fields of all contracts; other spellings have capital letters."""
    names: set[str] = set()
    contracts = [Authored]
    while contracts:
        contract = contracts.pop()
        contracts += contract.__subclasses__()
        names.update(*contract.older_names.values())
    return frozenset(names)
