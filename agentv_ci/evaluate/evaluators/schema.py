"""`type: schema`: 1 when the answer parses and a JSON Schema accepts it, else 0."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol

import regex
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import UnknownType, ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanSchemaEvaluator
from agentv_ci.evaluate.evaluators.structured import read_answer, unfenced
from agentv_ci.evaluate.submission import Submission

PATTERN_TIMEOUT_S = 2.0


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
            found = await asyncio.to_thread(lambda: list(validator.iter_errors(value)))
            errors = sorted(found, key=lambda error: error.json_path)
        except TimeoutError:
            return Score(error=f"a pattern of the schema took longer than {PATTERN_TIMEOUT_S:g} s")
        except Unresolvable as error:
            return Score(error=f"the schema refers to what it does not hold: {error.ref}")
        except (RecursionError, OverflowError, ValueError, regex.error, UnknownType) as error:
            # Schemas without end, patterns and types that are none, numbers that no float can hold.
            return Score(error=f"the answer cannot be checked with the schema: {type(error).__name__}: {error}")
        if not errors:
            return Score(1.0, hits=("Valid",))
        return Score(0.0, misses=tuple(f"{error.json_path}: {error.message}" for error in errors))

    def _parse(self, answer: str) -> JsonValue:
        return self._read_yaml(unfenced(answer)) if self._settings.format == "yaml" else read_answer(answer)


@cache
def _bounded(dialect: type[Validator]) -> type[Validator]:
    """Return a dialect whose patterns cannot hold up a run; its own are searched without a time limit."""
    keywords = {
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
    return regex.search(pattern, text, timeout=PATTERN_TIMEOUT_S) is not None


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
