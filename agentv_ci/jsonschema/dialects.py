"""Dialects of JSON Schema with time limits; a door to jsonschema."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from decimal import Decimal, localcontext
from functools import cache
from itertools import islice
from reprlib import Repr
from typing import Protocol

from attrs import fields
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import UnknownType, ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from agentv_ci.base.patterns import TIMEOUT_S, compiled, occurs
from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import JsonObject, JsonValue

MAX_MESSAGE = 300
MAX_EXPONENT = 700
MAX_FOUND = 1_000
"""Violations after which the check stops."""

_QUOTES = Repr()
_QUOTES.maxdict = _QUOTES.maxlist = 20
_QUOTES.maxstring = _QUOTES.maxlong = 200


class CannotCheck(Exception):
    """A schema cannot be applied to an answer."""


def check(schema: JsonObject | bool, value: JsonValue) -> list[str]:
    """Return the violations of a value, each with its JSON path; raises CannotCheck."""
    # An empty registry: nothing is downloaded.
    dialect = _bounded(validators.validator_for(schema, default=Draft202012Validator))
    try:
        errors = dialect(schema, registry=Registry()).iter_errors(value)
        found = sorted(islice(errors, MAX_FOUND), key=_place)
    except TimeoutError as error:
        raise CannotCheck(f"a pattern of the schema took longer than {TIMEOUT_S:g} s") from error
    except Unresolvable as error:
        raise CannotCheck(f"unresolved reference in the schema: {error.ref}") from error
    except (RecursionError, OverflowError, ValueError, re.error, UnknownType) as error:
        # Endless schemas, invalid patterns and types, numbers beyond float.
        raise CannotCheck(
            f"cannot check the answer with the schema: {type(error).__name__}: {error}"
        ) from error
    except BaseException as error:
        # rpds, the maps of jsonschema, panics on a stack overflow.
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise CannotCheck("cannot check the answer with the schema: nested too deep") from error
    return [f"{error.json_path}: {shortened(error.message, MAX_MESSAGE)}" for error in found]


def _place(error: ValidationError) -> list[tuple[bool, int, str]]:
    """Return the sort key of an error: its path, numbers in numeric order."""
    return list(map(_step, error.absolute_path))


def _step(step: str | int) -> tuple[bool, int, str]:
    if isinstance(step, int):
        return False, step, ""
    return True, 0, step


_OWN: set[type[Validator]] = set()
"""The bounded dialects."""


@cache
def _bounded(dialect: type[Validator]) -> type[Validator]:
    """Return a dialect whose patterns have a time limit; unique items are compared by hash."""
    if dialect in _OWN:
        return dialect
    own = {
        "type": _check_type,
        "multipleOf": _check_multiple,
        "uniqueItems": _check_unique,
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
    }
    standard = Draft202012Validator.VALIDATORS
    # Keywords that a dialect lacks or defines differently stay: a draft-03 type may be a schema.
    shared = {
        name: check for name, check in own.items() if dialect.VALIDATORS.get(name) is standard[name]
    }
    bounded: type[Validator] = validators.extend(dialect, shared)  # type: ignore[no-untyped-call]  # by the stubs

    def evolve(validator: Validator, **changes: object) -> Validator:
        # Otherwise a subschema with $schema, such as each part of a bundle, would get the library's
        # own dialect.
        schema = changes.get("schema", validator.schema)
        chosen = _bounded(validators.validator_for(schema, default=type(validator)))  # type: ignore[arg-type]  # a schema
        attributes = fields(type(validator))  # type: ignore[arg-type]  # made with attrs
        given = {field.alias: getattr(validator, field.name) for field in attributes if field.init}
        return chosen(**given | changes)

    setattr(bounded, "evolve", evolve)  # noqa: B010  # the protocol declares methods only
    _OWN.add(bounded)
    return bounded


class _Descends(Protocol):
    """Methods of a validator that its protocol does not declare."""

    def descend(
        self,
        instance: JsonValue,
        schema: JsonValue,
        path: str | None = None,
        schema_path: str | None = None,
    ) -> Iterator[ValidationError]:
        """Yield the violations of a part of the value."""
        ...

    def is_type(self, instance: JsonValue, type: str) -> bool:  # noqa: A002  # the library's name
        """Whether a value is of a type; raises UnknownType."""
        ...


def pattern_occurs(pattern: str, text: str) -> bool:
    """Whether a pattern of a schema matches somewhere in a text; raises TimeoutError."""
    return occurs(compiled(pattern), text)


def _check_type(
    validator: _Descends, types: str | list[str], value: JsonValue, _: JsonObject
) -> Iterator[ValidationError]:
    names = [types] if isinstance(types, str) else types
    if not any(validator.is_type(value, name) for name in names):
        # Abbreviated: otherwise every level repeats all of a large answer.
        yield ValidationError(f"{_QUOTES.repr(value)} is not of type {', '.join(map(repr, names))}")


def _check_multiple(
    _: _Descends, factor: float, value: JsonValue, __: JsonObject
) -> Iterator[ValidationError]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    digits = [str(value), str(factor)]
    # The exponent bounds the digits of a float.
    with localcontext(prec=MAX_EXPONENT + sum(map(len, digits))):
        # As decimals: 19.99 is a multiple of 0.01.
        rest = Decimal(digits[0]) % Decimal(digits[1])
    if rest:
        yield ValidationError(f"{value!r} is not a multiple of {factor!r}")


def _check_unique(
    _: _Descends, unique: JsonValue, value: JsonValue, __: JsonObject
) -> Iterator[ValidationError]:
    if unique and isinstance(value, list) and len(set(map(_identity, value))) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _identity(value: JsonValue) -> Hashable:
    """Return a hashable that is equal for equal JSON values.

    1 and 1.0 are equal, 1 and true are not.
    """
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


def _check_pattern(
    _: _Descends, pattern: str, value: JsonValue, __: JsonObject
) -> Iterator[ValidationError]:
    if isinstance(value, str) and not pattern_occurs(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: _Descends, patterns: Mapping[str, JsonValue], value: JsonValue, _: JsonObject
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, schema in patterns.items():
        for key, item in value.items():
            if pattern_occurs(pattern, key):
                yield from validator.descend(item, schema, path=key, schema_path=pattern)


def _check_additional_properties(
    validator: _Descends, additional: JsonValue, value: JsonValue, schema: JsonObject
) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties") or {}, schema.get("patternProperties") or {}
    assert isinstance(known, dict)
    assert isinstance(patterns, dict)
    if not isinstance(value, dict):
        return
    extra: JsonObject = {}
    for key, item in value.items():
        if key not in known and not any(pattern_occurs(pattern, key) for pattern in patterns):
            extra[key] = item
    if isinstance(additional, dict):
        for key, item in extra.items():
            yield from validator.descend(item, additional, path=key)
    elif extra and not additional:
        listed = ", ".join(map(repr, sorted(extra)))
        verb = "was" if len(extra) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({listed} {verb} unexpected)")
