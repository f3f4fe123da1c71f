"""Messages for violations of the published schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace
from pydantic import ValidationError

from agentv_ci.base.case_rows import VARIABLE, is_template
from agentv_ci.base.json_access import text_at, value_at
from agentv_ci.base.model_errors import refusals
from agentv_ci.base.text import did_you_mean, listed, nearest, shortened
from agentv_ci.contracts.answer_evaluators import FIELD_PATH
from agentv_ci.contracts.base import JsonValue, kind_in_short, members_of, short_fields
from agentv_ci.contracts.diagnostics import SPACE_HINT, Diagnostic
from agentv_ci.contracts.environment_references import ENVIRONMENT_REFERENCE
from agentv_ci.contracts.evals import CaseExecution, SuiteExecution
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.gate import PERCENTAGE
from agentv_ci.contracts.source import Pointer
from agentv_ci.jsonschema.schemas import SchemaName
from agentv_ci.jsonschema.violations import Violation, violations
from agentv_ci.validate.equivalents import instead_of_field, instead_of_type
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.kinds import (
    beside_an_unknown_kind,
    in_the_style_of,
    misspelt_kind,
    one_type,
    several_types,
    snake,
    spellings_of_main_field,
    union_of_kind,
)
from agentv_ci.validate.walk import as_written

BEYOND_THE_SCHEMA = "value"
"""Keyword of violations that only the model sees."""
MANY = 8
"""A longer list is shown in the hint."""

ARTICLES: Mapping[str, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


BOUNDS: Mapping[str, str] = {
    "minLength": "must not be empty",
    "minItems": "must not be empty",
    "minimum": "must be at least {limit}, not {found}",
    "exclusiveMinimum": "must be greater than {limit}, not {found}",
    "maximum": "must be at most {limit}, not {found}",
    "pattern": "has an invalid format: {found}",
}

FREE_TEXTS = "variables of rows are filled in free texts only"

KINDS = ("type", "provider")

INCREASE = ("_increase", "Increase")
"""How the fields with a percentage end."""

PATTERNS: Mapping[str, str] = {
    ENVIRONMENT_REFERENCE: "must be an environment reference, ${{{{ NAME }}}}, not {found}",
    PERCENTAGE: "must be a percentage such as 10%, not {found}",
    FIELD_PATH: "must be a path such as a.b[0].c, not {found}",
}


def refused_parts(name: SchemaName, error: ValidationError, data: JsonValue) -> list[Violation]:
    """Return the violations of the published schema; if there are none, those of the model."""
    return violations(name, data) or list(refused_by_the_model(error, data))


def refused_by_the_model(error: ValidationError, data: JsonValue) -> Iterator[Violation]:
    """Yield what JSON Schema cannot express, such as infinite numbers."""
    found: dict[Pointer, str] = {}
    for each in refusals(error):
        pointer: Pointer = ()
        for step in each.place:
            # pydantic adds the branch of a union as a step.
            if value_at(data, *(way := as_written(data, (*pointer, step)))) is not None:
                pointer = way
        found.setdefault(pointer, each.message)
    for pointer, message in found.items():
        # A list whose only item is invalid is also reported as too short.
        if not any(other[: len(pointer)] == pointer for other in found if other != pointer):
            yield Violation(BEYOND_THE_SCHEMA, pointer, (), value_at(data, *pointer), message)


def diagnostics(find: Finder, refused: Sequence[Violation]) -> Iterator[Diagnostic]:
    """Yield one diagnostic per mistake."""
    listed_values = {each.pointer for each in refused if each.keyword in ("enum", "const")}
    refused = [
        each for each in refused if each.keyword != "type" or each.pointer not in listed_values
    ]
    several = several_types(find, refused)
    yield from (one_type(find, item, types) for item, types in several.items())
    refused = [each for each in refused if each.pointer[:-1] not in several]
    fields = _by_mapping(refused)
    misspelt = _misspelt(fields.values())
    joint = _joint_mistakes(refused, fields, misspelt)
    meant_fields = {pointer for pointer, _ in misspelt.values()}
    yield from (_joint(find, *each) for each in joint.values() if each is not None)
    for violation in refused:
        if violation.keyword in ("required", "unknown") and violation.pointer[:-1] in joint:
            continue
        if (wrong_kind := misspelt_kind(find, violation)) is not None:
            yield wrong_kind
            yield from beside_an_unknown_kind(find, violation, wrong_kind)
            continue
        if violation.keyword == "required" and violation.pointer in meant_fields:
            continue
        found = _diagnostic(find, violation, misspelt)
        yield replace(found, hint=FREE_TEXTS) if _has_variables(find, violation) else found
        yield from beside_an_unknown_kind(find, violation)


Fields = tuple[list[Violation], list[Violation]]
"""The missing and the unknown fields of a mapping."""


def _by_mapping(refused: Iterable[Violation]) -> dict[Pointer, Fields]:
    found: dict[Pointer, Fields] = {}
    for each in refused:
        if each.keyword in ("required", "unknown"):
            missing, unknown = found.setdefault(each.pointer[:-1], ([], []))
            (missing if each.keyword == "required" else unknown).append(each)
    return found


def _joint_mistakes(
    refused: Iterable[Violation], fields: Mapping[Pointer, Fields], misspelt: Collection[Pointer]
) -> dict[Pointer, Fields | None]:
    """Return the mappings whose missing and unknown fields are one mistake.

    None when it is another one's follow-up.
    """
    types = (
        each.pointer
        for each in refused
        if each.keyword == "enum" and each.pointer[-1:] == ("type",)
    )
    joint: dict[Pointer, Fields | None] = {pointer[:-1]: None for pointer in types}
    for parent, (missing, unknown) in fields.items():
        if not missing or not unknown:
            continue
        # The violation of a missing field holds the whole mapping.
        whole = missing[0].found
        are_all = isinstance(whole, dict) and len(unknown) == len(whole)
        is_pair = len(missing) == len(unknown) == 1
        # One that is nearly a known one is a mistake of its own.
        is_near = any(
            each.pointer in misspelt or did_you_mean(_key(each), map(str, each.expected))
            for each in unknown
        )
        begun = {_key(each).partition(":")[0] for each in unknown if ":" in _key(each)}
        lack_spaces = begun and begun <= {_key(each) for each in missing}
        is_joint = (
            (are_all or is_pair) if lack_spaces else (are_all and not is_pair and not is_near)
        )
        if is_joint:
            joint.setdefault(parent, (missing, unknown))
    return joint


def _key(violation: Violation) -> str:
    return str(violation.pointer[-1])


def _joint(find: Finder, missing: Sequence[Violation], unknown: Sequence[Violation]) -> Diagnostic:
    lacks, has = (listed(f"'{_key(each)}'" for each in fields) for fields in (missing, unknown))
    fields, are = (
        ("field" if len(unknown) == 1 else "fields"),
        ("is" if len(missing) == 1 else "are"),
    )
    hint = "put a space after the colon" if any(":" in _key(each) for each in unknown) else None
    message = f"unknown {fields} {has}{_owner(find, missing[0].pointer)}; {lacks} {are} missing"
    return find.at("AV202", message, unknown[0].pointer, key=True, hint=hint)


def _misspelt(fields: Iterable[Fields]) -> dict[Pointer, tuple[Pointer, str]]:
    """Return the unknown keys that are misspelt missing ones: pointer → the pointer and spelling of the missing key."""
    pairs: dict[Pointer, tuple[Pointer, str]] = {}
    for missing, unknown in fields:
        for violation in unknown:
            key = _key(violation)
            meant = {
                str(spelling): each.pointer
                for each in missing
                for spelling in in_the_style_of(key, each.expected or each.pointer[-1:])
            }
            short = (
                short_fields(AuthoredEvaluator, "type").get(key)
                if violation.pointer[-3:-2] == ("evaluators",)
                else None
            )
            if close := short if short in meant else nearest(key, meant):
                pairs[violation.pointer] = (meant[close], close)
    return pairs


def _diagnostic(
    find: Finder, violation: Violation, misspelt: Mapping[Pointer, tuple[Pointer, str]]
) -> Diagnostic:
    pointer, found, expected = violation.pointer, violation.found, violation.expected
    key = str(pointer[-1]) if pointer else "the document"
    what = _named(pointer)
    match violation.keyword:
        case "required":
            hint = (
                "write expected: [] if there is no reference answer"
                if key == "expected_messages"
                else None
            )
            return find.at(
                "AV201", f"missing field {what}{_owner(find, pointer)}", pointer, hint=hint
            )
        case "unknown":
            return _unknown(find, violation, misspelt)
        case "type" if "content" in pointer[-2:]:
            message = f"content must be a text or a list of texts and blocks, not {_quoted(found)}"
            return find.at("AV206", message, pointer)
        case "type":
            types = " or ".join(ARTICLES.get(str(each), str(each)) for each in expected)
            place, hint = _type_hint(violation)
            message = f"{what} must be {types}, not {_quoted(found)}"
            return find.at("AV203", message, place, key=place != pointer, hint=hint)
        case "enum" if key == "role":
            return find.at(
                "AV205", f"unknown role {_quoted(found)}; expected {listed(expected)}", pointer
            )
        case "enum" | "const":
            close = _meant_value(found, pointer, expected) if isinstance(found, str) else ""
            if isinstance(found, str) and "/" in found and key in KINDS:
                hint = (
                    "the name of a plugin has lower-case letters, digits, '-' and '_': prefix/name"
                )
                return find.at("AV204", f"{what} cannot be {_quoted(found)}", pointer, hint=hint)
            if len(expected) > MANY:
                hint = f"{what} is one of {listed(expected)}"
                return find.at(
                    "AV204", f"{what} cannot be {_quoted(found)}{close}", pointer, hint=hint
                )
            return find.at(
                "AV204",
                f"{what} must be one of {listed(expected)}, not {_quoted(found)}{close}",
                pointer,
            )
        case _:
            return find.at("AV204", f"{what} {_bound(violation)}", pointer)


def _has_variables(find: Finder, violation: Violation) -> bool:
    """Whether the refused text has variables of rows."""
    case = value_at(find.source.data, *violation.pointer[:2])
    text = violation.pointer[-1] if violation.keyword == "unknown" else violation.found
    return is_template(case) and isinstance(text, str) and VARIABLE.search(text) is not None


def _meant_value(found: str, pointer: Pointer, expected: Sequence[JsonValue]) -> str:
    if pointer[-2:-1] == ("evaluators",) and found in members_of(AuthoredEvaluator, "type"):
        return (
            f"; write '{found}: …'"
            if found in short_fields(AuthoredEvaluator, "type")
            else f"; write 'type: {found}'"
        )
    instead = instead_of_type(found) if union_of_kind(pointer) is AuthoredEvaluator else ""
    return instead or did_you_mean(found, map(str, expected))


def _unknown(
    find: Finder, violation: Violation, misspelt: Mapping[Pointer, tuple[Pointer, str]]
) -> Diagnostic:
    pointer, key = violation.pointer, _key(violation)
    if key.startswith("-"):
        return find.at("AV202", f"unknown field '{key}'", pointer, key=True, hint=SPACE_HINT)
    place = _place_hint(find, pointer)
    short = kind_in_short(value_at(find.source.data, *pointer[:-1]), AuthoredEvaluator, "type")
    if short is not None and key in spellings_of_main_field(short):
        close = f"; '{short}' gives it already"
    elif pointer in misspelt:
        close = f" (did you mean '{misspelt[pointer][1]}'?)"
    else:
        known = list(map(str, violation.expected))
        close = instead_of_field(key, known) or (
            "" if place else did_you_mean(key, in_the_style_of(key, known))
        )
    hint = None if close else place or f"known fields: {listed(snake(violation.expected))}"
    return find.at("AV202", f"unknown field {_named(pointer)}{close}", pointer, key=True, hint=hint)


PLAIN_ITEM = re.compile(r"[\w][\w .-]{0,60}")
"""What needs no quotes in a list."""


def _type_hint(violation: Violation) -> tuple[Pointer, str | None]:
    """Return where a value of the wrong type is reported, and its hint."""
    match violation.expected, violation.found:
        case ("array",), dict() as found:
            dash = next((each for each in found if each.startswith("-")), None)
            return (
                ((*violation.pointer, dash), SPACE_HINT)
                if dash
                else (violation.pointer, "start each item with '- '")
            )
        case _, str() as path if violation.pointer[-1:] in (("cases_from",), ("casesFrom",)):
            return violation.pointer, f"write 'cases_from: {{file: {shortened(path, 80)}}}'"
        case ("array",), str() | int() | float() as found if PLAIN_ITEM.fullmatch(str(found)):
            return violation.pointer, f"write [{found}]"
        case ("string",), bool() if violation.pointer[-1:] == ("skip",):
            return violation.pointer, "write why the case is skipped, or leave 'skip' out"
        case ("string",), int() | float() as found if str(violation.pointer[-1]).endswith(INCREASE):
            return violation.pointer, f"write the percent sign: {found}%"
        case ("string",), bool() | int() | float():
            return violation.pointer, "quote it"
        case _:
            return violation.pointer, None


def _named(pointer: Pointer) -> str:
    """Name what is refused: a field with the mapping that it is in, such as 'healthcheck.url'."""
    if not pointer:
        return "the document"
    if not isinstance(pointer[-1], str):
        return _item(pointer)
    *_, parent, field = (None, *pointer)
    return f"'{parent}.{field}'" if isinstance(parent, str) else f"'{field}'"


def _item(pointer: Pointer) -> str:
    """Name the items of a list."""
    name = next((step for step in reversed(pointer) if isinstance(step, str)), None)
    return f"each item of '{name}'" if name else "each item"


def _owner(find: Finder, pointer: Pointer) -> str:
    """Name the evaluator of a field; cases and targets are in the label."""
    if pointer[-3:-2] != ("evaluators",):
        return ""
    item = value_at(find.source.data, *pointer[:-1])
    name = (
        text_at(item, "name")
        or text_at(item, "type")
        or kind_in_short(item, AuthoredEvaluator, "type")
    )
    return f" of evaluator '{name}'" if name is not None else ""


def _place_hint(find: Finder, pointer: Pointer) -> str | None:
    """Return where a field belongs that was written at the top of a file, in a case, or in its `execution`."""
    key, parent = str(pointer[-1]), pointer[:-1]
    in_a_case = parent[:1] == ("evalcases",) and parent[2:] in ((), ("execution",))
    if find.source.kind != "eval" or not (parent == () or in_a_case):
        return None
    if in_a_case and key in SuiteExecution.model_fields.keys() - CaseExecution.model_fields.keys():
        return f"'{key}' belongs under the 'execution' of the file"
    return f"'{key}' belongs under 'execution'" if key in SuiteExecution.model_fields else None


def _bound(violation: Violation) -> str:
    limit = violation.expected[0] if violation.expected else None
    sentence = BOUNDS.get(violation.keyword, "is not accepted: {message}")
    if violation.keyword == "pattern" and isinstance(limit, str):
        sentence = PATTERNS.get(limit, sentence)
    return sentence.format(limit=limit, found=_quoted(violation.found), message=violation.message)


def _quoted(value: JsonValue) -> str:
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
            return shortened(json.dumps(value), 40)
