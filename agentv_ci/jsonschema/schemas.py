"""The published schemas: found at run time, asked for what is wrong.

The door to jsonschema. Nothing is ever fetched: all documents are in one registry. How the schemas come from the
contracts is in `rendering.py`, the references of authors' schemas in `references.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.environment_references import ENVIRONMENT_REFERENCE
from agentv_ci.contracts.source import Pointer

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

BASE_ID = "https://org.github.io/agentv-action/schemas/"

SchemaName = Literal[
    "eval-v2",
    "targets-v2",
    "config-v2",
    "plan-v1",
    "result-v1",
    "report-v1",
    "diagnostics-v1",
    "baseline-v1",
    "judge-set-v1",
]

TITLES: Mapping[SchemaName, str] = {
    "eval-v2": "agentv-ci eval document",
    "targets-v2": "agentv-ci targets document",
    "config-v2": "agentv-ci config document",
    "plan-v1": "agentv-ci plan",
    "result-v1": "agentv-ci result row",
    "report-v1": "agentv-ci run report",
    "diagnostics-v1": "agentv-ci diagnostics",
    "baseline-v1": "agentv-ci baseline",
    "judge-set-v1": "agentv-ci judge set",
}


def schema_id(name: SchemaName) -> str:
    """Return the `$id` under which a schema is published."""
    return f"{BASE_ID}{name}.schema.json"


def text(name: SchemaName) -> str:
    """Return a published schema as it is shipped: from the wheel, else from the checkout."""
    here = Path(__file__).parent.parent
    shipped = here / "published" / f"{name}.schema.json"
    return (shipped if shipped.exists() else here.parent / "schemas" / shipped.name).read_text("utf-8")


@cache
def document(name: SchemaName) -> JsonObject:
    """Return a published schema as data."""
    loaded: JsonObject = json.loads(text(name))
    return loaded


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing a schema refuses."""

    keyword: str
    """`required`, `unknown`, `type`, or the schema's own keyword."""
    pointer: Pointer
    """To the value; for `required` and `unknown` the last step is the key."""
    expected: tuple[JsonValue, ...]
    """Type names, allowed values, known keys, spellings of what is missing, or the keyword's value."""
    found: JsonValue
    message: str
    """The validator's own sentence, for keywords without a better one."""


def violations(name: SchemaName, instance: JsonValue) -> list[Violation]:
    """Return everything a published schema refuses in `instance`; for unions, what the meant branch refuses."""
    return [found for error in _validator(name).iter_errors(instance) for found in _explain(_refusal(error), ())]


def invalid_schema(schema: JsonValue, part_of: JsonValue = None) -> str | None:
    """Return why `schema` is not a JSON Schema, or None.

    Its dialect is the one it names, else that of the schema it is `part_of`, else 2020-12.
    """
    from jsonschema import Draft202012Validator, SchemaError, validators

    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return "a schema is a mapping, or true or false"
    if reason := _unknown_dialect(schema.get("$schema", DIALECTS[0])):
        return reason
    whole = part_of if isinstance(part_of, dict) else {}
    default = validators.validator_for(whole, default=Draft202012Validator)
    try:
        validators.validator_for(schema, default=default).check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message}"
    except RecursionError:
        return "it is nested too deep"
    except ValueError as error:
        return f"its $schema or $id is no address: {error}"
    return None


DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    *(f"http://json-schema.org/draft-0{number}/schema#" for number in (7, 6, 4, 3)),
)
"""What `$schema` may say."""


def _unknown_dialect(named: JsonValue) -> str | None:
    from agentv_ci.text import did_you_mean, listed

    if not isinstance(named, str):
        return "$.$schema: the dialect is named by a text"
    if named.rstrip("#") in (each.rstrip("#") for each in DIALECTS):
        return None
    return f"$.$schema: unknown dialect '{named}'{did_you_mean(named, DIALECTS)}; known are {listed(DIALECTS)}"


@cache
def _validator(name: SchemaName) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resources = [(schema_id(name), DRAFT202012.create_resource(document(name)))]
    return Draft202012Validator(document(name), registry=Registry().with_resources(resources))


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A ValidationError in types of its own."""

    rule: str
    value: JsonValue
    """The keyword's value."""
    found: JsonValue
    message: str
    pointer: Pointer
    """From the parent refusal."""
    schema: JsonObject
    branches: Mapping[int, tuple[_Refusal, ...]]
    """Of a union: what each branch refuses."""

    @property
    def is_wrong_type(self) -> bool:
        """Whether the value as a whole is of another type."""
        return self.rule == "type" and not self.pointer


def _refusal(error: ValidationError) -> _Refusal:
    fields = vars(error)
    branches: dict[int, tuple[_Refusal, ...]] = {}
    for sub in error.context or ():
        index = int(sub.schema_path[0])
        branches[index] = (*branches.get(index, ()), _refusal(sub))
    return _Refusal(
        rule=str(error.validator),
        value=fields["validator_value"],
        found=fields["instance"],
        message=error.message,
        pointer=tuple(error.relative_path),
        schema=fields["schema"] if isinstance(fields["schema"], dict) else {},
        branches=branches,
    )


def _explain(refusal: _Refusal, prefix: Pointer) -> Iterator[Violation]:
    pointer = (*prefix, *refusal.pointer)
    value, found, message = refusal.value, refusal.found, refusal.message
    match refusal.rule:
        case "anyOf":
            yield from _explain_choice(refusal, pointer)
        case "required":
            keys = value if isinstance(value, list) else []
            missing = next(str(key) for key in keys if message.startswith(repr(key)))
            yield Violation("required", (*pointer, missing), (), found, message)
        case "additionalProperties":
            yield from _explain_unknown(refusal, pointer)
        case rule:
            expected = tuple(value) if isinstance(value, list) else (value,)
            yield Violation(rule, pointer, expected, found, message)


def _explain_unknown(refusal: _Refusal, pointer: Pointer) -> Iterator[Violation]:
    properties = refusal.schema.get("properties")
    known = tuple(properties) if isinstance(properties, dict) else ()
    patterns = refusal.schema.get("patternProperties")
    free = tuple(patterns) if isinstance(patterns, dict) else ()
    known += tuple(name for pattern in free for name in _alternatives(pattern))
    for key, value in refusal.found.items() if isinstance(refusal.found, dict) else ():
        if key not in known and not any(re.search(pattern, key) for pattern in free):
            yield Violation("unknown", (*pointer, key), known, value, refusal.message)


def _alternatives(pattern: str) -> list[str]:
    """Return the names that a pattern lists: those of `^(keep_output_files|keepOutputFiles)$`."""
    listed = re.fullmatch(r"\^\(?([\w|]+)\)?\$", pattern)
    return listed[1].split("|") if listed else []


def _explain_choice(refusal: _Refusal, pointer: Pointer) -> Iterator[Violation]:
    """Explain a union by the branch that was meant: the one whose type fits."""
    spelled = _spellings(refusal.value)
    if spelled:
        yield Violation("required", (*pointer, spelled[0]), tuple(spelled), refusal.found, refusal.message)
        return
    listed = refusal.value if isinstance(refusal.value, list) else []
    meant = [found for index, found in refusal.branches.items() if not _is_environment_reference(listed[index])]
    fitting = [found for found in meant if not any(each.is_wrong_type for each in found)]
    if len(fitting) == 1 or len(meant) == 1:
        for each in (fitting or meant)[0]:
            yield from _explain(each, pointer)
        return
    wanted = dict.fromkeys(str(each.value) for found in meant for each in found if each.is_wrong_type)
    yield Violation("type", pointer, tuple(wanted), refusal.found, refusal.message)


def _spellings(branches: JsonValue) -> list[str]:
    """Return the spellings of the missing field, when the union only lists those of one."""
    names: list[str] = []
    for branch in branches if isinstance(branches, list) else ():
        required = branch.get("required") if isinstance(branch, dict) else None
        if not isinstance(required, list):
            return []
        names += [str(name) for name in required if name != "settings"]
    return names


def _is_environment_reference(branch: JsonValue) -> bool:
    return isinstance(branch, dict) and branch.get("pattern") == ENVIRONMENT_REFERENCE
