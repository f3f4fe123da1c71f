"""Violations of the published schemas, and of meta-schemas by authors' schemas.

A door to jsonschema. Nothing is downloaded: the registry is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice

from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators
from msgspec import Struct
from referencing import Registry

from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.base import PLUGIN_NAME, JsonObject, JsonValue
from agentv_ci.contracts.environment_references import ENVIRONMENT_REFERENCE
from agentv_ci.contracts.source import Pointer
from agentv_ci.jsonschema.schemas import MOST_EXPLAINED, SchemaName, document

DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    *(f"http://json-schema.org/draft-0{number}/schema#" for number in (7, 6, 4, 3)),
)
"""Supported values of `$schema`."""


class Violation(Struct, frozen=True):
    """One violation of a schema."""

    keyword: str
    """`required`, `unknown`, `type`, or the schema's own keyword."""
    pointer: Pointer
    """To the value; for `required` and `unknown` the last step is the key."""
    expected: tuple[JsonValue, ...]
    """Type names, allowed values, known keys, spellings of what is missing, or the keyword's value.
    """
    found: JsonValue
    message: str
    """The validator's message, for keywords without a better one."""


def violations(name: SchemaName, instance: JsonValue) -> list[Violation]:
    """Return the violations of a published schema, at most MOST_EXPLAINED.

    For unions, those of the intended branch.
    """
    explained = (_explain(error, ()) for error in _validator(name).iter_errors(instance))
    return list(islice(chain.from_iterable(explained), MOST_EXPLAINED))


def invalid_schema(schema: JsonValue, part_of: JsonValue = None) -> str | None:
    """Return why `schema` is not a JSON Schema, or None.

    Its dialect is its own `$schema`, else that of the schema it is `part_of`, else 2020-12.
    """
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return "expected a mapping, true or false"
    if reason := _unknown_dialect(schema.get("$schema", DIALECTS[0])):
        return reason
    whole = part_of if isinstance(part_of, dict) else {}
    default = validators.validator_for(whole, default=Draft202012Validator)
    try:
        validators.validator_for(schema, default=default).check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message}"
    except RecursionError:
        return "nested too deep"
    except ValueError as error:
        return f"its $schema or $id is not a valid URI: {error}"
    return None


def _unknown_dialect(named: JsonValue) -> str | None:
    if not isinstance(named, str):
        return "$.$schema: must be a string"
    if named.rstrip("#") in (dialect.rstrip("#") for dialect in DIALECTS):
        return None
    close = did_you_mean(named, DIALECTS)
    return f"$.$schema: unknown dialect '{named}'{close}; expected one of {listed(DIALECTS)}"


@cache
def _validator(name: SchemaName) -> Draft202012Validator:
    return Draft202012Validator(document(name), registry=Registry())


def _explain(error: ValidationError, prefix: Pointer) -> Iterator[Violation]:
    pointer = (*prefix, *error.relative_path)
    fields = vars(error)  # the stubs allow them to be unset
    value, found = fields["validator_value"], fields["instance"]
    if _is_of_rule(fields["schema"], str(error.validator)):
        return
    match str(error.validator):
        case "anyOf":
            yield from _explain_choice(error, pointer)
        case "required":
            missing = next(str(key) for key in value if error.message.startswith(repr(key)))
            yield Violation("required", (*pointer, missing), (), found, error.message)
        case "additionalProperties":
            yield from _explain_unknown(fields["schema"], found, pointer, error.message)
        case rule:
            expected = tuple(value) if isinstance(value, list) else (value,)
            yield Violation(rule, pointer, expected, found, error.message)


def _is_of_rule(schema: JsonObject, keyword: str) -> bool:
    """Whether a keyword states a rule for tools that only have the schema.

    The rule itself says more.
    """
    return "$comment" in schema and keyword in ("pattern", "anyOf")


def _explain_unknown(
    schema: Mapping[str, JsonObject], found: JsonObject, pointer: Pointer, message: str
) -> Iterator[Violation]:
    patterns = [*schema.get("patternProperties", {})]
    alternatives = chain.from_iterable(map(_alternatives, patterns))
    known = (*schema.get("properties", {}), *alternatives)
    for key, value in found.items():
        if key not in known and not any(re.search(pattern, key) for pattern in patterns):
            yield Violation("unknown", (*pointer, key), known, value, message)


def _alternatives(pattern: str) -> list[str]:
    """Return the names that a pattern lists: those of `^(keep_output_files|keepOutputFiles)$`."""
    names = re.fullmatch(r"\^\(?([\w|]+)\)?\$", pattern)
    return names[1].split("|") if names is not None else []


def _explain_choice(error: ValidationError, pointer: Pointer) -> Iterator[Violation]:
    """Explain a union by its intended branch: the one whose type fits."""
    fields = vars(error)
    choices, found = fields["validator_value"], fields["instance"]
    if spellings := _spellings(choices):
        yield Violation(
            "required", (*pointer, spellings[0]), tuple(spellings), found, error.message
        )
        return
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.schema_path[0]), []).append(inner)
    meant = [errors for index, errors in branches.items() if not _is_never_meant(choices[index])]
    fitting = [errors for errors in meant if not any(map(_is_wrong_type, errors))]
    if len(fitting) == 1 or len(meant) == 1:
        for inner in (fitting or meant)[0]:
            yield from _explain(inner, pointer)
        return
    refused = filter(_is_wrong_type, chain.from_iterable(meant))
    types = dict.fromkeys(str(vars(inner)["validator_value"]) for inner in refused)
    yield Violation("type", pointer, tuple(types), found, error.message)


def _is_wrong_type(error: ValidationError) -> bool:
    """Whether the whole value has another type."""
    return error.validator == "type" and not error.relative_path


def _spellings(branches: JsonValue) -> list[str]:
    """Return the spellings of a missing field, if the union only lists those of one field."""
    names: list[str] = []
    if not isinstance(branches, list):
        return names
    for branch in branches:
        match branch:
            case {"required": list(required)}:
                names += (str(name) for name in required if name != "settings")
            case _:
                return []
    return names


def _is_never_meant(branch: JsonValue) -> bool:
    """Whether a branch is for environment references, for plugins, or for older names."""
    patterns = (ENVIRONMENT_REFERENCE, PLUGIN_NAME)
    return isinstance(branch, dict) and (
        branch.get("pattern") in patterns or "deprecated" in branch
    )
