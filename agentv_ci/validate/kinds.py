"""Messages for wrong kinds of evaluators and targets: misspelt, unknown, or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from typing_extensions import TypeAliasType

from agentv_ci.base.json_access import value_at
from agentv_ci.base.text import did_you_mean, nearest
from agentv_ci.contracts.base import (
    Authored,
    JsonValue,
    kind_in_short,
    members_of,
    short_fields,
    spellings,
)
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.source import Pointer, spell
from agentv_ci.contracts.targets import Target
from agentv_ci.jsonschema.violations import Violation
from agentv_ci.validate.equivalents import instead_of_type
from agentv_ci.validate.findings import Finder


def misspelt_kind(find: Finder, violation: Violation) -> Diagnostic | None:
    """Return what is wrong with the key of a kind.

    It is a misspelt `type` or `provider`, or a kind as a key.
    """
    *item, key = violation.pointer or ("",)
    mapping = value_at(find.source.data, *item)
    if (
        violation.keyword != "required"
        or key not in ("type", "provider")
        or not isinstance(mapping, dict)
    ):
        return None
    if (close := nearest(str(key), mapping)) is not None:
        message = f"unknown field '{close}' (did you mean '{key}'?)"
        return find.at("AV202", message, (*item, close), key=True)
    if union_of_kind(violation.pointer) is not AuthoredEvaluator:
        return None
    known = _known_fields(AuthoredEvaluator, "type")
    for field in mapping:
        if field in known:
            continue
        message = f"unknown field '{field}'"
        if field in members_of(AuthoredEvaluator, "type"):
            hint = f"write 'type: {field}'"
            return find.at("AV202", message, (*item, field), key=True, hint=hint)
        shorts = short_fields(AuthoredEvaluator, "type")
        if instead := instead_of_type(field) or did_you_mean(field, shorts):
            return find.at("AV202", f"{message}{instead}", (*item, field), key=True)
    return None


def beside_an_unknown_kind(
    find: Finder, violation: Violation, misspelt_kind: Diagnostic | None = None
) -> Iterator[Diagnostic]:
    """Yield the fields that no kind has."""
    if violation.keyword != "enum" and misspelt_kind is None:
        return
    pointer = violation.pointer
    union = union_of_kind(pointer)
    mapping = value_at(find.source.data, *pointer[:-1])
    if union is None or not isinstance(mapping, dict):
        return
    known = _known_fields(union, str(pointer[-1]))
    for key in mapping:
        way = (*pointer[:-1], key)
        if key not in known and (misspelt_kind is None or misspelt_kind.pointer != spell(way)):
            close = did_you_mean(key, in_the_style_of(key, sorted(known)))
            yield find.at("AV202", f"unknown field '{key}'{close}", way, key=True)


def _known_fields(union: TypeAliasType, key: str) -> set[str]:
    known = {"settings"}
    for member in members_of(union, key).values():
        if issubclass(member, Authored):
            known.update(spellings(member))
    return known


def several_types(find: Finder, refused: Iterable[Violation]) -> dict[Pointer, list[str]]:
    """Return the evaluators that name several types as keys."""
    items = {
        violation.pointer[:-1]
        for violation in refused
        if violation.keyword == "unknown" and violation.pointer[-3:-2] == ("evaluators",)
    }
    shorts = short_fields(AuthoredEvaluator, "type")
    several: dict[Pointer, list[str]] = {}
    for item in sorted(items, key=str):
        mapping = value_at(find.source.data, *item)
        if not isinstance(mapping, dict) or "type" in mapping:
            continue
        types = [key for key in mapping if key in shorts]
        if len(types) > 1 and kind_in_short(mapping, AuthoredEvaluator, "type") is None:
            several[item] = types
    return several


def one_type(find: Finder, item: Pointer, types: Sequence[str]) -> Diagnostic:
    """Return the diagnostic of an evaluator with several types."""
    named = " and ".join(f"'{kind}'" for kind in types)
    message = f"an evaluator has one type, not {named}"
    hint = "write each as an item of its own"
    return find.at("AV202", message, (*item, types[1]), key=True, hint=hint)


def spellings_of_main_field(kind: str) -> set[str]:
    """Return the spellings of the field that a type as a key stands for."""
    member = members_of(AuthoredEvaluator, "type")[kind]
    if not issubclass(member, Authored):
        return set()
    main = short_fields(AuthoredEvaluator, "type").get(kind)
    return {spelling for spelling, (field, _) in spellings(member).items() if field == main}


def union_of_kind(pointer: Pointer) -> TypeAliasType | None:
    """Return the union of all evaluators or targets, if this is the kind of one of them."""
    match pointer:
        case (*_, "evaluators", int(), "type"):
            return AuthoredEvaluator
        case (*_, "targets", int(), "provider"):
            return Target
        case _:
            return None


def in_the_style_of(key: str, names: Iterable[JsonValue]) -> list[str]:
    """Return the spellings of names to suggest for `key`: snake_case unless it has capitals."""
    if key == key.lower():
        return snake(names)
    return list(map(str, names))


def snake(keys: Iterable[JsonValue]) -> list[str]:
    """Return the keys without capitals."""
    return [str(key) for key in keys if str(key) == str(key).lower()]
