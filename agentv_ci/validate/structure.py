"""What the published schema says: the model decides fast, the schema explains completely."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import Document
from agentv_ci.contracts.source import Kind, Pointer, Source
from agentv_ci.schemas import SchemaName, Violation, violations
from agentv_ci.suggestions import did_you_mean, listed, nearest
from agentv_ci.validate.findings import Finder, value_at

SCHEMAS: Mapping[Kind, SchemaName] = {"eval": "eval-v2", "targets": "targets-v2", "config": "config-v2"}

MANY = 8
"""A list longer than this stands in the hint."""

ARTICLES: Mapping[str, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Structure:
    """The understood part of a document, what is wrong with the rest, and how to speak of either."""

    document: Document | None
    diagnostics: tuple[Diagnostic, ...]
    find: Finder


def check_structure(source: Source, kind: Kind) -> Structure:
    """Read a source as a document of its kind.

    Wrong parts are reported and left out, again and again, until the rest is a document; so one pass can also
    report what is wrong with the right parts.
    """
    finder = Finder(source)
    document = _model(kind, source.data)
    if not isinstance(document, ValidationError):
        return Structure(document, (), finder)
    refused = violations(SCHEMAS[kind], source.data) or list(_only_the_model_sees(document, source.data))
    found = tuple(_diagnostics(finder, refused))
    dropped: set[Pointer] = set()
    while refused:
        dropped |= {finder.authored(pointer) for pointer in map(_to_drop, refused)}
        if () in dropped:
            break
        survivors: dict[Pointer, tuple[int, ...]] = {}
        rest = _without(source.data, (), dropped, survivors)
        finder = Finder(source, survivors, frozenset(dropped))
        document = _model(kind, rest)
        if not isinstance(document, ValidationError):
            return Structure(document, found, finder)
        refused = violations(SCHEMAS[kind], rest) or list(_only_the_model_sees(document, rest))
    return Structure(None, found, Finder(source))


def contract_of(kind: Kind) -> type[Document]:
    """Return what documents of a kind must fulfil; the contracts load when they are needed."""
    match kind:
        case "eval":
            from agentv_ci.contracts.evals import EvalDocument

            return EvalDocument
        case "targets":
            from agentv_ci.contracts.targets import TargetsDocument

            return TargetsDocument
        case "config":
            from agentv_ci.contracts.config import ConfigDocument

            return ConfigDocument


def _model(kind: Kind, data: JsonValue) -> Document | ValidationError:
    try:
        return contract_of(kind).model_validate(data)
    except ValidationError as error:
        return error


def _only_the_model_sees(error: ValidationError, data: JsonValue) -> Iterator[Violation]:
    """What JSON Schema has no word for, such as infinite numbers."""
    found: dict[Pointer, str] = {}
    for each in error.errors(include_url=False, include_context=False):
        pointer: Pointer = ()
        for step in each["loc"]:
            # The model names the branch of a union as if it were a key.
            if value_at(data, (*pointer, step)) is not None:
                pointer = (*pointer, step)
        found.setdefault(pointer, each["msg"])
    for pointer, message in found.items():
        # A list that lost its only item to an error is then called too short, which is no mistake of its own.
        if not any(other[: len(pointer)] == pointer for other in found if other != pointer):
            yield Violation("value", pointer, (), value_at(data, pointer), message)


def _to_drop(violation: Violation) -> Pointer:
    return violation.pointer[:-1] if violation.keyword == "required" else violation.pointer


def _without(
    value: JsonValue, way: Pointer, dropped: set[Pointer], survivors: dict[Pointer, tuple[int, ...]]
) -> JsonValue:
    if isinstance(value, dict):
        return {
            key: _without(item, (*way, key), dropped, survivors)
            for key, item in value.items()
            if (*way, key) not in dropped
        }
    if isinstance(value, list):
        kept = tuple(index for index in range(len(value)) if (*way, index) not in dropped)
        if len(kept) < len(value):
            survivors[way] = kept
        return [_without(value[index], (*way, index), dropped, survivors) for index in kept]
    return value


def _diagnostics(find: Finder, refused: Sequence[Violation]) -> Iterator[Diagnostic]:
    misspelt = _misspelt(refused)
    for violation in refused:
        if (meant := _misspelt_kind(find, violation)) is not None:
            key, pointer = str(violation.pointer[-1]), (*violation.pointer[:-1], meant)
            yield find.at("AV202", f"unknown field '{meant}' (did you mean '{key}'?)", pointer, key=True)
            continue
        if violation.keyword == "required" and any(violation.pointer == meant for meant, _ in misspelt.values()):
            continue
        yield _diagnostic(find, violation, misspelt)


def _misspelt_kind(find: Finder, violation: Violation) -> str | None:
    """Return the key that was meant to say what kind a mapping is: until that is known, no key is unknown."""
    if violation.keyword != "required" or violation.pointer[-1] not in ("type", "provider"):
        return None
    mapping = value_at(find.source.data, violation.pointer[:-1])
    return nearest(str(violation.pointer[-1]), mapping) if isinstance(mapping, dict) else None


def _misspelt(refused: Sequence[Violation]) -> dict[Pointer, tuple[Pointer, str]]:
    """Unknown keys that were meant to be a missing one: their pointer → the missing one's, and how to spell it."""
    missing = [violation for violation in refused if violation.keyword == "required"]
    pairs: dict[Pointer, tuple[Pointer, str]] = {}
    for violation in refused:
        if violation.keyword != "unknown":
            continue
        parent, key = violation.pointer[:-1], str(violation.pointer[-1])
        meant = {
            str(spelling): each.pointer
            for each in missing
            if each.pointer[:-1] == parent
            for spelling in _in_the_style_of(key, each.expected or each.pointer[-1:])
        }
        if close := nearest(key, meant):
            pairs[violation.pointer] = (meant[close], close)
    return pairs


def _diagnostic(find: Finder, violation: Violation, misspelt: Mapping[Pointer, tuple[Pointer, str]]) -> Diagnostic:
    pointer, found, expected = violation.pointer, violation.found, violation.expected
    key = str(pointer[-1]) if pointer else "the document"
    what = f"'{key}'" if pointer and isinstance(pointer[-1], str) else "this item" if pointer else key
    match violation.keyword:
        case "required":
            return find.at("AV201", f"missing field '{key}'", pointer)
        case "unknown":
            if pointer in misspelt:
                close = f" (did you mean '{misspelt[pointer][1]}'?)"
            else:
                close = did_you_mean(key, _in_the_style_of(key, expected))
            hint = None if close else f"known here: {listed(_snake(expected))}"
            return find.at("AV202", f"unknown field '{key}'{close}", pointer, key=True, hint=hint)
        case "type" if "content" in pointer[-2:]:
            message = f"content must be a text or a list of texts and blocks, not {_shown(found)}"
            return find.at("AV206", message, pointer)
        case "type":
            wanted = " or ".join(ARTICLES.get(str(each), str(each)) for each in expected)
            return find.at("AV203", f"{what} must be {wanted}, not {_shown(found)}", pointer)
        case "enum" if key == "role":
            return find.at("AV205", f"unknown role {_shown(found)}; roles are {listed(expected)}", pointer)
        case "enum" | "const":
            close = did_you_mean(found, [str(each) for each in expected]) if isinstance(found, str) else ""
            if len(expected) > MANY:
                hint = f"{what} is one of {listed(expected)}"
                return find.at("AV204", f"{what} cannot be {_shown(found)}{close}", pointer, hint=hint)
            return find.at("AV204", f"{what} must be one of {listed(expected)}, not {_shown(found)}{close}", pointer)
        case _:
            return find.at("AV204", f"{what} {_bound(violation)}", pointer)


def _bound(violation: Violation) -> str:
    limit = violation.expected[0] if violation.expected else None
    match violation.keyword:
        case "minLength" | "minItems":
            return "must not be empty"
        case "minimum":
            return f"must be at least {limit}, not {_shown(violation.found)}"
        case "exclusiveMinimum":
            return f"must be more than {limit}, not {_shown(violation.found)}"
        case "maximum":
            return f"must be at most {limit}, not {_shown(violation.found)}"
        case "pattern":
            return f"has a form that is not accepted: {_shown(violation.found)}"
        case _:
            return f"is not accepted: {violation.message}"


def _in_the_style_of(key: str, names: Iterable[JsonValue]) -> list[str]:
    """Several spellings of a name may be known; suggest in the one the author writes."""
    return _snake(names) if key == key.lower() else list(map(str, names))


def _snake(keys: Iterable[JsonValue]) -> list[str]:
    return [str(key) for key in keys if str(key) == str(key).lower()]


def _shown(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return f"'{value}'" if len(value) <= 40 else f"'{value[:40]}…'"
        case _:
            return json.dumps(value)
