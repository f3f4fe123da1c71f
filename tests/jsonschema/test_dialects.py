"""Bounded dialects of JSON Schema decide as the plain ones do, and end on every value."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import validators
from referencing import Registry

from agentv_ci.contracts.base import JsonObject
from agentv_ci.jsonschema.dialects import CannotCheck, check
from tests.support import REPOSITORY

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFTS = (DRAFT_07, "https://json-schema.org/draft/2019-09/schema", DRAFT_2020)
KEYS = st.sampled_from(["a", "b", "ab", "x1", "é", ""])
PATTERNS = st.sampled_from(["^a", "b$", "[0-9]", "é", "a{1}", "^$", "."])
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, -1, 1.0, -0.0, 2.5, 3, 6, 0.5, 1e3, "", "a", "ab", "é", "1", "true", '"a', "x1"]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "null", "boolean"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=2)
    applied = ["additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "items"]
    applied += ["contains", "not", "if", "then"]
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "const": VALUES,
            "uniqueItems": st.booleans(),
            "multipleOf": st.sampled_from([1, 2, 0.5, 3, 2.5, 1.0]),
            "pattern": PATTERNS,
            "properties": st.dictionaries(KEYS, inner, max_size=2),
            "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
            "dependentSchemas": st.dictionaries(KEYS, inner, max_size=1),
            "$ref": st.just("#/$defs/d"),
            **dict.fromkeys(applied, inner),
            **dict.fromkeys(["allOf", "anyOf", "oneOf"], some),
        },
    )


LEAVES: st.SearchStrategy[Any] = st.booleans() | st.fixed_dictionaries({"type": TYPES})
SCHEMAS = keywords(st.recursive(LEAVES, keywords, max_leaves=4))


@pytest.mark.slow
@settings(max_examples=100)
@given(SCHEMAS, LEAVES, VALUES, st.sampled_from(DRAFTS))
def test_bounded_dialect_decides_as_the_plain_one(schema: dict[str, Any], leaf: Any, value: Any, draft: str) -> None:
    whole = {**schema, "$schema": draft, "$defs": {"d": leaf}}
    plain = validators.validator_for(whole)(whole, registry=Registry())
    assert (not check(whole, value)) == plain.is_valid(value)


@given(st.lists(VALUES, max_size=5), st.sampled_from(DRAFTS))
def test_unique_items_are_those_of_the_plain_dialect(items: list[Any], draft: str) -> None:
    schema: JsonObject = {"$schema": draft, "uniqueItems": True}
    assert (not check(schema, items)) == validators.validator_for(schema)(schema).is_valid(items)


@given(st.integers(-(10**6), 10**6), st.integers(1, 1_000), st.sampled_from([1, 10, 100]))
def test_multiples_are_those_of_the_written_digits(number: int, factor: int, parts: int) -> None:
    assert (not check({"multipleOf": factor / parts}, number / parts)) == (number % factor == 0)


@pytest.mark.parametrize(
    ("items", "is_unique"),
    [
        ("[[1], [true]]", True),
        ('[{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]', False),
        ('["true", true, "\\"true"]', True),
        ("[9007199254740993, 9007199254740992.0]", True),
    ],
)
def test_items_are_equal_as_json_has_it(items: str, is_unique: bool) -> None:
    assert (not check({"uniqueItems": True}, json.loads(items))) is is_unique


@pytest.mark.parametrize(
    ("factor", "number", "is_multiple"),
    [
        (3, 10**2_000, False),
        (2, 10**4_000, True),
        (0.01, 10**1_500, True),
        (1e-300, 1e300, True),
        (0.01, 19.99, True),
        (5, -0.0, True),
    ],
)
def test_numbers_of_any_size_are_multiples_or_not(factor: float, number: float, is_multiple: bool) -> None:
    assert (not check({"multipleOf": factor}, number)) is is_multiple


@pytest.mark.parametrize("draft", [DRAFT_07, DRAFT_2020])
@pytest.mark.parametrize("inside", ["#", "urn:part", "#/definitions/part"])
def test_pattern_is_bounded_in_every_part(draft: str, inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a bundle name their dialect, too."""
    monkeypatch.setattr("agentv_ci.base.patterns.TIMEOUT_S", 0.1)
    slow: JsonObject = {"$schema": draft, "pattern": "^(a|a)*$"}
    schema: JsonObject = {"$id": "urn:whole", **slow, "definitions": {"part": {"$id": "urn:part", **slow}}}
    with pytest.raises(CannotCheck, match="a pattern of the schema took longer than 2 s"):
        check({**schema, "items": {"$ref": inside}}, ["a" * 60 + "!"])


LARGE = """
from contextlib import suppress
from agentv_ci.contracts.base import JsonObject
from agentv_ci.jsonschema.dialects import CannotCheck, check

deep = {"allOf": [{"items": {"allOf": [{"$ref": "#"}]}}], "not": {"type": "null"}}
for depth in range(90, 196, 5):
    value = []
    for _ in range(depth):
        value = [value]
    with suppress(CannotCheck):
        check(deep, value)
nested = [1] * 60_000
for _ in range(100):
    nested = [nested]
check({"type": "string", "items": {"$ref": "#"}}, nested)
check({"uniqueItems": True}, [[number, {"a": number}] for number in range(50_000)])
check({"additionalProperties": False}, {str(number): 1 for number in range(100_000)})
with suppress(CannotCheck):
    check({"not": {"type": "null"}, "$ref": "#"}, 1)
"""


@pytest.mark.slow
def test_deep_and_large_values_are_checked_in_time() -> None:
    # In another process: a crash or a hang cannot be caught here.
    done = subprocess.run(
        [sys.executable, "-c", LARGE], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
