"""`type: schema`: 1 when the answer parses and a JSON Schema accepts it, else 0."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Iterator, Mapping
from decimal import Decimal, localcontext
from functools import cache
from typing import Protocol

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import UnknownType, ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanSchemaEvaluator
from agentv_ci.evaluate.submission import Submission
from agentv_ci.outside import read_answer, shortened, unfenced
from agentv_ci.patterns import TIMEOUT_S, compiled, occurs

MAX_MESSAGE = 300
MAX_DIGITS = 1_000


class Schema:
    """See Evaluator."""

    def __init__(self, settings: PlanSchemaEvaluator, *, read_yaml: ReadYaml) -> None:
        self._settings = settings
        self._read_yaml = read_yaml

    async def evaluate(self, submission: Submission) -> Score:
        """Parse the answer, one code fence taken off, and list what the schema refuses by JSON path."""
        try:
            value = self._parse(submission.answer)
        except ValueError as error:
            return Score(0.0, misses=(f"not {self._settings.format.upper()}: {error}",))
        schema = self._settings.schema_
        # An empty registry: nothing is ever fetched.
        validator = _bounded(validators.validator_for(schema, default=Draft202012Validator))(
            schema, registry=Registry()
        )
        try:
            found = await asyncio.to_thread(_errors, validator, schema, value)
            errors = sorted(found, key=_place)
        except TimeoutError:
            return Score(error=f"a pattern of the schema took longer than {TIMEOUT_S:g} s")
        except Unresolvable as error:
            return Score(error=f"the schema refers to what it does not hold: {error.ref}")
        except (RecursionError, OverflowError, ValueError, UnknownType) as error:
            # Schemas without end, patterns and types that are none, numbers that no float can hold.
            return Score(error=f"the answer cannot be checked with the schema: {type(error).__name__}: {error}")
        if not errors:
            return Score(1.0, hits=("Valid",))
        return Score(0.0, misses=tuple(map(_sentence, errors)))

    def _parse(self, answer: str) -> JsonValue:
        return self._read_yaml(unfenced(answer)) if self._settings.format == "yaml" else read_answer(answer)


def _errors(validator: Validator, schema: JsonObject | bool, value: JsonValue) -> list[ValidationError]:
    # What jsonschema itself searches for `unevaluatedProperties` has no time limit; here it is tried with one.
    for pattern in _patterns(schema):
        for key in _keys(value):
            _occurs(pattern, key)
    return list(validator.iter_errors(value))


def _patterns(schema: JsonValue) -> set[str]:
    """The patterns of properties in a schema that asks for what is not evaluated; none in others."""
    if '"unevaluatedProperties"' not in json.dumps(schema):
        return set()
    return {key for each in _mappings(schema) for key in _keys_of(each.get("patternProperties"))}


def _keys(value: JsonValue) -> set[str]:
    return {key for each in _mappings(value) for key in each}


def _keys_of(value: JsonValue) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _mappings(value: JsonValue) -> Iterator[JsonObject]:
    """Yield every mapping in a value."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(item)


def _place(error: ValidationError) -> list[tuple[bool, int, str]]:
    """Where an error stands, as people count: 2 before 10."""
    steps = error.absolute_path
    return [(False, step, "") if isinstance(step, int) else (True, 0, step) for step in steps]


def _sentence(error: ValidationError) -> str:
    return f"{error.json_path}: {shortened(error.message, MAX_MESSAGE)}"


@cache
def _bounded(dialect: type[Validator]) -> type[Validator]:
    """Return a dialect that no answer can hold up: patterns have a time limit, items are compared by their digests."""
    keywords = {
        "multipleOf": _check_multiple,
        "uniqueItems": _check_unique,
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
    }
    bounded: type[Validator] = validators.extend(dialect, keywords)  # type: ignore[no-untyped-call]  # by the stubs
    return bounded


class _Descends(Protocol):
    """What keywords may ask of a validator, and its protocol leaves out."""

    def descend(
        self, instance: JsonValue, schema: JsonValue, path: str | None = None, schema_path: str | None = None
    ) -> Iterator[ValidationError]:
        """Yield what a schema refuses in a part of the value."""
        ...


def _occurs(pattern: str, text: str) -> bool:
    return occurs(compiled(pattern), text)


def _check_multiple(_: _Descends, factor: float, value: JsonValue, __: JsonObject) -> Iterator[ValidationError]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    with localcontext(prec=MAX_DIGITS):
        # By the digits that are written: 19.99 is 1999 times 0.01.
        rest = Decimal(str(value)) % Decimal(str(factor))
    if rest:
        yield ValidationError(f"{value!r} is not a multiple of {factor!r}")


def _check_unique(_: _Descends, unique: JsonValue, value: JsonValue, __: JsonObject) -> Iterator[ValidationError]:
    if unique and isinstance(value, list) and len({_identity(item) for item in value}) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _identity(value: JsonValue) -> Hashable:
    """What equal values have in common: 1 and 1.0 are one value, 1 and true are two."""
    match value:
        case dict():
            return frozenset((key, _identity(item)) for key, item in value.items())
        case list():
            return tuple(map(_identity, value))
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}'
        case _:
            return value


def _check_pattern(_: _Descends, pattern: str, value: JsonValue, __: JsonObject) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _occurs(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: _Descends, patterns: Mapping[str, JsonValue], value: JsonValue, _: JsonObject
) -> Iterator[ValidationError]:
    for pattern, schema in patterns.items() if isinstance(value, dict) else ():
        for key, item in value.items():  # type: ignore[union-attr]  # a mapping, or there were no patterns
            if _occurs(pattern, key):
                yield from validator.descend(item, schema, path=key, schema_path=pattern)


def _check_additional_properties(
    validator: _Descends, additional: JsonValue, value: JsonValue, schema: JsonObject
) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties") or {}, schema.get("patternProperties") or {}
    assert isinstance(known, dict)
    assert isinstance(patterns, dict)
    items = value.items() if isinstance(value, dict) else ()
    extra = {key: item for key, item in items if key not in known and not any(_occurs(each, key) for each in patterns)}
    if isinstance(additional, dict):
        for key, item in extra.items():
            yield from validator.descend(item, additional, path=key)
    elif extra and not additional:
        listed = ", ".join(map(repr, sorted(extra)))
        verb = "was" if len(extra) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({listed} {verb} unexpected)")
