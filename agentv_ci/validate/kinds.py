"""Messages for wrong kinds of evaluators and targets: misspelt, unknown, or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from typing_extensions import TypeAliasType

from agentv_ci.base.json_access import value_at
from agentv_ci.base.text import did_you_mean, nearest
from agentv_ci.contracts.base import Authored, JsonValue, members_of, short_fields, spellings
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.source import Pointer, spell
from agentv_ci.contracts.targets import Target
from agentv_ci.jsonschema.violations import Violation
from agentv_ci.validate.equivalents import instead_of_type
from agentv_ci.validate.findings import Finder


def misspelt_kind(find: Finder, violation: Violation) -> Diagnostic | None:
    """Return what is wrong with the key of a kind: a misspelt `type` or `provider`, or a kind as a key."""
    *item, key = violation.pointer or ("",)
    mapping = value_at(find.source.data, *item)
    if (
        violation.keyword != "required"
        or key not in ("type", "provider")
        or not isinstance(mapping, dict)
    ):
        return None
    if (found := nearest(str(key), mapping)) is not None:
        return find.at(
            "AV202", f"unknown field '{found}' (did you mean '{key}'?)", (*item, found), key=True
        )
    if union_of_kind(violation.pointer) is not AuthoredEvaluator:
        return None
    for found in (each for each in mapping if each not in _known_fields(AuthoredEvaluator, "type")):
        is_kind = found in members_of(AuthoredEvaluator, "type")
        close = instead_of_type(found) or did_you_mean(
            found, short_fields(AuthoredEvaluator, "type")
        )
        if is_kind or close:
            hint = f"write 'type: {found}'" if is_kind else None
            return find.at(
                "AV202",
                f"unknown field '{found}'{'' if is_kind else close}",
                (*item, found),
                key=True,
                hint=hint,
            )
    return None


def beside_an_unknown_kind(
    find: Finder, violation: Violation, misspelt_kind: Diagnostic | None = None
) -> Iterator[Diagnostic]:
    """Yield the fields that no kind has."""
    pointer = violation.pointer
    if (violation.keyword != "enum" and misspelt_kind is None) or (
        union := union_of_kind(pointer)
    ) is None:
        return
    known = _known_fields(union, str(pointer[-1]))
    mapping = value_at(find.source.data, *pointer[:-1])
    for key in mapping if isinstance(mapping, dict) else ():
        place = (*pointer[:-1], key)
        if key not in known and (misspelt_kind is None or misspelt_kind.pointer != spell(place)):
            close = did_you_mean(key, in_the_style_of(key, sorted(known)))
            yield find.at("AV202", f"unknown field '{key}'{close}", place, key=True)


def _known_fields(union: TypeAliasType, key: str) -> set[str]:
    members = members_of(union, key).values()
    return {
        spelling for each in members if issubclass(each, Authored) for spelling in spellings(each)
    } | {"settings"}


def several_types(find: Finder, refused: Iterable[Violation]) -> dict[Pointer, list[str]]:
    """Return the evaluators that name several types as keys."""
    items = {
        each.pointer[:-1]
        for each in refused
        if each.keyword == "unknown" and each.pointer[-3:-2] == ("evaluators",)
    }
    shorts = short_fields(AuthoredEvaluator, "type")
    found: dict[Pointer, list[str]] = {}
    for item in sorted(items, key=str):
        mapping = value_at(find.source.data, *item)
        types = (
            [key for key in mapping if key in shorts]
            if isinstance(mapping, dict) and "type" not in mapping
            else []
        )
        if len(types) > 1:
            found[item] = types
    return found


def one_type(find: Finder, item: Pointer, types: Sequence[str]) -> Diagnostic:
    """Return the diagnostic of an evaluator with several types."""
    named = " and ".join(f"'{each}'" for each in types)
    message = f"an evaluator has one type, not {named}"
    return find.at(
        "AV202", message, (*item, types[1]), key=True, hint="write each as an item of its own"
    )


def spellings_of_main_field(kind: str) -> set[str]:
    """Return the spellings of the field that a type as a key stands for."""
    field, member = (
        short_fields(AuthoredEvaluator, "type").get(kind),
        members_of(AuthoredEvaluator, "type")[kind],
    )
    named = spellings(member) if issubclass(member, Authored) else {}
    return {spelling for spelling, (each, _) in named.items() if each == field}


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
    return snake(names) if key == key.lower() else list(map(str, names))


def snake(keys: Iterable[JsonValue]) -> list[str]:
    """Return the keys without capitals."""
    return [str(key) for key in keys if str(key) == str(key).lower()]
