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
from agentv_ci.contracts.source import SHORT_FORMS, Pointer
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
    messages: dict[Pointer, str] = {}
    for refusal in refusals(error):
        pointer: Pointer = ()
        for step in refusal.place:
            # pydantic adds the branch of a union as a step.
            if value_at(data, *(way := as_written(data, (*pointer, step)))) is not None:
                pointer = way
        messages.setdefault(pointer, refusal.message)
    for pointer, message in messages.items():
        # A list whose only item is invalid is also reported as too short.
        if not any(other[: len(pointer)] == pointer for other in messages if other != pointer):
            yield Violation(BEYOND_THE_SCHEMA, pointer, (), value_at(data, *pointer), message)


def diagnostics(find: Finder, refused: Sequence[Violation]) -> Iterator[Diagnostic]:
    """Yield one diagnostic per mistake."""
    refused = _without_repeated_types(refused)
    several = several_types(find, refused)
    for item, types in several.items():
        yield one_type(find, item, types)
    refused = [violation for violation in refused if violation.pointer[:-1] not in several]
    fields = _by_mapping(refused)
    misspelt = _misspelt(fields.values())
    joint = _joint_mistakes(refused, fields, misspelt)
    meant_fields = {pointer for pointer, _ in misspelt.values()}
    for missing_and_unknown in filter(None, joint.values()):
        yield _joint(find, *missing_and_unknown)
    for violation in refused:
        if violation.keyword in ("required", "unknown") and violation.pointer[:-1] in joint:
            continue
        if (wrong_kind := misspelt_kind(find, violation)) is not None:
            yield wrong_kind
            yield from beside_an_unknown_kind(find, violation, wrong_kind)
            continue
        if violation.keyword == "required" and violation.pointer in meant_fields:
            continue
        diagnostic = _diagnostic(find, violation, misspelt)
        if _has_variables(find, violation):
            diagnostic = replace(diagnostic, hint=FREE_TEXTS)
        yield diagnostic
        yield from beside_an_unknown_kind(find, violation)


def _without_repeated_types(refused: Sequence[Violation]) -> list[Violation]:
    """Return the violations without wrong types where the allowed values are reported."""
    with_values = {part.pointer for part in refused if part.keyword in ("enum", "const")}
    return [part for part in refused if part.keyword != "type" or part.pointer not in with_values]


Fields = tuple[list[Violation], list[Violation]]
"""The missing and the unknown fields of a mapping."""


def _by_mapping(refused: Iterable[Violation]) -> dict[Pointer, Fields]:
    fields: dict[Pointer, Fields] = {}
    for violation in refused:
        if violation.keyword not in ("required", "unknown"):
            continue
        missing, unknown = fields.setdefault(violation.pointer[:-1], ([], []))
        if violation.keyword == "required":
            missing.append(violation)
        else:
            unknown.append(violation)
    return fields


def _joint_mistakes(
    refused: Iterable[Violation], fields: Mapping[Pointer, Fields], misspelt: Collection[Pointer]
) -> dict[Pointer, Fields | None]:
    """Return the mappings whose missing and unknown fields are one mistake.

    None when it is another one's follow-up.
    """
    joint: dict[Pointer, Fields | None] = {}
    for violation in refused:
        if violation.keyword == "enum" and violation.pointer[-1:] == ("type",):
            joint[violation.pointer[:-1]] = None
    for parent, (missing, unknown) in fields.items():
        if missing and unknown and _are_joint(missing, unknown, misspelt):
            joint.setdefault(parent, (missing, unknown))
    return joint


def _are_joint(
    missing: Sequence[Violation], unknown: Sequence[Violation], misspelt: Collection[Pointer]
) -> bool:
    # The violation of a missing field holds the whole mapping.
    whole = missing[0].found
    are_all = isinstance(whole, dict) and len(unknown) == len(whole)
    is_pair = len(missing) == len(unknown) == 1
    if _lack_spaces(missing, unknown):
        return are_all or is_pair
    # One that is nearly a known one is a mistake of its own.
    is_near = any(
        field.pointer in misspelt or did_you_mean(_key(field), map(str, field.expected))
        for field in unknown
    )
    return are_all and not is_pair and not is_near


def _lack_spaces(missing: Sequence[Violation], unknown: Sequence[Violation]) -> bool:
    """Whether unknown keys such as `id:a` are missing ones without a space after the colon."""
    begun = {_key(field).partition(":")[0] for field in unknown if ":" in _key(field)}
    return bool(begun) and begun <= set(map(_key, missing))


def _key(violation: Violation) -> str:
    return str(violation.pointer[-1])


def _joint(find: Finder, missing: Sequence[Violation], unknown: Sequence[Violation]) -> Diagnostic:
    has = _quoted_keys(unknown)
    lacks = _quoted_keys(missing)
    fields = "field" if len(unknown) == 1 else "fields"
    are = "is" if len(missing) == 1 else "are"
    hint = None
    if any(":" in _key(field) for field in unknown):
        hint = "put a space after the colon"
    message = f"unknown {fields} {has}{_owner(find, missing[0].pointer)}; {lacks} {are} missing"
    return find.at("AV202", message, unknown[0].pointer, key=True, hint=hint)


def _quoted_keys(fields: Iterable[Violation]) -> str:
    return listed(f"'{_key(field)}'" for field in fields)


def _misspelt(fields: Iterable[Fields]) -> dict[Pointer, tuple[Pointer, str]]:
    """Return the unknown keys that are misspelt missing ones.

    Pointer → the pointer and spelling of the missing key.
    """
    pairs: dict[Pointer, tuple[Pointer, str]] = {}
    for missing, unknown in fields:
        for violation in unknown:
            meant = _spellings_of(missing, _key(violation))
            if close := _meant_key(violation, meant):
                pairs[violation.pointer] = (meant[close], close)
    return pairs


def _spellings_of(missing: Iterable[Violation], key: str) -> dict[str, Pointer]:
    """Return the spellings of missing fields to suggest for a key, each with the pointer."""
    meant: dict[str, Pointer] = {}
    for field in missing:
        for spelling in in_the_style_of(key, field.expected or field.pointer[-1:]):
            meant[spelling] = field.pointer
    return meant


def _meant_key(violation: Violation, meant: Collection[str]) -> str | None:
    key = _key(violation)
    if violation.pointer[-3:-2] == ("evaluators",):
        short = short_fields(AuthoredEvaluator, "type").get(key)
        if short is not None and short in meant:
            return short
    return nearest(key, meant)


def _diagnostic(
    find: Finder, violation: Violation, misspelt: Mapping[Pointer, tuple[Pointer, str]]
) -> Diagnostic:
    pointer, found, expected = violation.pointer, violation.found, violation.expected
    key = str(pointer[-1]) if pointer else "the document"
    what = _named(pointer)
    match violation.keyword:
        case "required":
            hint = None
            if key == "expected_messages":
                hint = "write expected: [] if there is no reference answer"
            message = f"missing field {_as_beside(find, pointer)}{_owner(find, pointer)}"
            return find.at("AV201", message, pointer, hint=hint)
        case "unknown":
            return _unknown(find, violation, misspelt)
        case "type" if "content" in pointer[-2:]:
            message = f"content must be a text or a list of texts and blocks, not {_quoted(found)}"
            return find.at("AV206", message, pointer)
        case "type":
            types = " or ".join(ARTICLES.get(str(kind), str(kind)) for kind in expected)
            place, hint = _type_hint(violation)
            message = f"{what} must be {types}, not {_quoted(found)}"
            return find.at("AV203", message, place, key=place != pointer, hint=hint)
        case "enum" if key == "role":
            message = f"unknown role {_quoted(found)}; expected {listed(expected)}"
            return find.at("AV205", message, pointer)
        case "enum" | "const":
            return _unlisted(find, violation, what)
        case _:
            return find.at("AV204", f"{what} {_bound(violation)}", pointer)


def _unlisted(find: Finder, violation: Violation, what: str) -> Diagnostic:
    """Return the diagnostic of a value that is none of those allowed."""
    pointer, found, expected = violation.pointer, violation.found, violation.expected
    close = ""
    if isinstance(found, str):
        if "/" in found and pointer and _key(violation) in KINDS:
            hint = "the name of a plugin has lower-case letters, digits, '-' and '_': prefix/name"
            return find.at("AV204", f"{what} cannot be {_quoted(found)}", pointer, hint=hint)
        close = _meant_value(found, pointer, expected)
    if len(expected) > MANY:
        hint = f"{what} is one of {listed(expected)}"
        return find.at("AV204", f"{what} cannot be {_quoted(found)}{close}", pointer, hint=hint)
    message = f"{what} must be one of {listed(expected)}, not {_quoted(found)}{close}"
    return find.at("AV204", message, pointer)


def _has_variables(find: Finder, violation: Violation) -> bool:
    """Whether the refused text has variables of rows."""
    case = value_at(find.source.data, *violation.pointer[:2])
    text = violation.pointer[-1] if violation.keyword == "unknown" else violation.found
    return is_template(case) and isinstance(text, str) and VARIABLE.search(text) is not None


def _meant_value(found: str, pointer: Pointer, expected: Sequence[JsonValue]) -> str:
    if pointer[-2:-1] == ("evaluators",) and found in members_of(AuthoredEvaluator, "type"):
        if found in short_fields(AuthoredEvaluator, "type"):
            return f"; write '{found}: …'"
        return f"; write 'type: {found}'"
    if union_of_kind(pointer) is AuthoredEvaluator and (instead := instead_of_type(found)):
        return instead
    return did_you_mean(found, map(str, expected))


def _unknown(
    find: Finder, violation: Violation, misspelt: Mapping[Pointer, tuple[Pointer, str]]
) -> Diagnostic:
    pointer, key = violation.pointer, _key(violation)
    if key.startswith("-"):
        return find.at("AV202", f"unknown field '{key}'", pointer, key=True, hint=SPACE_HINT)
    message = f"unknown field {_named(pointer)}"
    belongs = _place_hint(find, pointer)
    short = kind_in_short(value_at(find.source.data, *pointer[:-1]), AuthoredEvaluator, "type")
    known = list(map(str, violation.expected))
    if short is not None and key in spellings_of_main_field(short):
        close = f"; '{short}' gives it already"
    elif pointer in misspelt:
        close = f" (did you mean '{misspelt[pointer][1]}'?)"
    else:
        close = instead_of_field(key, known)
    if not close and not belongs:
        close = did_you_mean(key, in_the_style_of(key, known))
    if close:
        return find.at("AV202", f"{message}{close}", pointer, key=True)
    hint = belongs or f"known fields: {listed(snake(violation.expected))}"
    return find.at("AV202", message, pointer, key=True, hint=hint)


PLAIN_ITEM = re.compile(r"[\w][\w .-]{0,60}")
"""What needs no quotes in a list."""


def _as_beside(find: Finder, pointer: Pointer) -> str:
    """Return a missing field by the name that other items of its list give it."""
    short = SHORT_FORMS.get(str(pointer[-1])) if pointer else None
    items = value_at(find.source.data, *pointer[:-2])
    if short is None or not isinstance(items, list):
        return _named(pointer)
    is_usual = any(isinstance(item, dict) and short in item for item in items)
    return _named((*pointer[:-1], short)) if is_usual else _named(pointer)


def _type_hint(violation: Violation) -> tuple[Pointer, str | None]:
    """Return where a value of the wrong type is reported, and its hint."""
    match violation.expected, violation.found:
        case ("array",), dict() as found:
            for key in found:
                if key.startswith("-"):
                    return (*violation.pointer, key), SPACE_HINT
            return violation.pointer, "start each item with '- '"
        case _, str() as path if violation.pointer[-1:] in (("cases_from",), ("casesFrom",)):
            return violation.pointer, f"write 'cases_from: {{file: {shortened(path, 80)}}}'"
        case ("array",), str() | int() | float() as found if PLAIN_ITEM.fullmatch(str(found)):
            return violation.pointer, f"write [{found}]"
        case ("string",), list() if violation.pointer[-1:] == ("contains",):
            return violation.pointer, "use 'contains_any' or 'contains_all' for several texts"
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
    match pointer:
        case (*_, str() as parent, field):
            return f"'{parent}.{field}'"
        case _:
            return f"'{pointer[-1]}'"


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
    """Return where a field belongs that is elsewhere.

    It was written at the top of a file, in a case, or in its `execution`.
    """
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
