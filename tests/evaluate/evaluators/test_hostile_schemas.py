"""Bounded dialects of JSON Schema decide as the plain ones do, and no answer holds them up; so with what is read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import validators
from referencing import Registry

from agentv_ci.contracts.config import Price
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.results import EvaluatorResult, Usage
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.evaluate.replies import first_object, last_score
from agentv_ci.prices import cost_of_response
from agentv_ci.redaction import Redactor
from tests.evaluate.evaluators.test_schema import check
from tests.support import REPOSITORY

HANGS_S = 120
"""What takes so long holds up every case that runs beside it."""

DRAFTS = (
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
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
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "unevaluatedItems": inner,
            "propertyNames": inner,
            "items": inner,
            "contains": inner,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "dependentSchemas": st.dictionaries(KEYS, inner, max_size=1),
            "$ref": st.just("#/$defs/d"),
        },
    )


LEAVES: st.SearchStrategy[Any] = st.booleans() | st.fixed_dictionaries({"type": TYPES})
SCHEMAS = keywords(st.recursive(LEAVES, keywords, max_leaves=4))


@settings(derandomize=True, max_examples=100)
@given(SCHEMAS, LEAVES, VALUES, st.sampled_from(DRAFTS))
def test_bounded_dialect_decides_as_the_plain_one(schema: dict[str, Any], leaf: Any, value: Any, draft: str) -> None:
    whole = {**schema, "$schema": draft, "$defs": {"d": leaf}}
    plain = validators.validator_for(whole)(whole, registry=Registry())
    outcome = check(whole, json.dumps(value))
    assert (outcome.status, outcome.score) == ("ok", float(plain.is_valid(value)))


@settings(derandomize=True, max_examples=150)
@given(st.lists(VALUES, max_size=5), st.sampled_from(DRAFTS))
def test_items_are_unique_as_the_plain_dialect_has_it(items: list[Any], draft: str) -> None:
    schema = {"$schema": draft, "uniqueItems": True}
    assert check(schema, json.dumps(items)).score == float(validators.validator_for(schema)(schema).is_valid(items))


@settings(derandomize=True, max_examples=150)
@given(st.integers(-(10**6), 10**6), st.integers(1, 1_000), st.sampled_from([1, 10, 100]))
def test_multiples_are_those_of_the_written_digits(number: int, factor: int, parts: int) -> None:
    outcome = check({"multipleOf": factor / parts}, json.dumps(number / parts))
    assert outcome.score == float(number % factor == 0)


@pytest.mark.parametrize(
    ("items", "score"),
    [
        ("[1, true]", 1.0),
        ('[0, false, null, ""]', 1.0),
        ("[1, 1.0]", 0.0),
        ("[[1], [true]]", 1.0),
        ('[{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]', 0.0),
        ('["1", 1]', 1.0),
        ('["true", true, "\\"true"]', 1.0),
        ("[[], {}]", 1.0),
        ('[[["a", 1]], {"a": 1}]', 1.0),
        ("[0, -0.0]", 0.0),
        ("[9007199254740993, 9007199254740992.0]", 1.0),
    ],
)
def test_equal_items_are_found(items: str, score: float) -> None:
    assert check({"uniqueItems": True}, items).score == score


@pytest.mark.parametrize(
    ("schema", "answer", "score"),
    [
        ({"multipleOf": 3}, "1" + "0" * 2_000, 0.0),
        ({"multipleOf": 2}, "1" + "0" * 4_000, 1.0),
        ({"multipleOf": 0.01}, "1" + "0" * 1_500, 1.0),
        ({"multipleOf": 1e-300}, "1e300", 1.0),
        ({"multipleOf": 0.01}, "19.99", 1.0),
        ({"multipleOf": 5}, "-0.0", 1.0),
    ],
)
def test_long_number_of_an_answer_is_a_multiple_or_none(schema: dict[str, Any], answer: str, score: float) -> None:
    outcome = check(schema, answer)
    assert (outcome.status, outcome.score) == ("ok", score)


@pytest.mark.parametrize("draft", DRAFTS[1:])
@pytest.mark.parametrize(
    ("pattern", "key"), [(r"^\p{L}+$", "é"), ("^(?<year>[0-9]+)$", "12"), (r"\A\X\z", "a"), ("^a{e}$", "a{e}")]
)
def test_pattern_means_one_thing_in_all_keywords(pattern: str, key: str, draft: str) -> None:
    listed = {"$schema": draft, "patternProperties": {pattern: True}}
    additional = check({**listed, "additionalProperties": False}, json.dumps({key: 1}))
    unevaluated = check({**listed, "unevaluatedProperties": False}, json.dumps({key: 1}))
    assert (unevaluated.status, unevaluated.score) == (additional.status, additional.score)


DEEP = """
from tests.evaluate.evaluators.test_schema import check

schema = {"allOf": [{"items": {"allOf": [{"$ref": "#"}]}}], "not": {"type": "null"}}
for depth in range(90, 196):
    check(schema, "[" * depth + "]" * depth)
print("no crash")
"""
HOSTILE: Mapping[str, str] = {
    "deep answers": DEEP,
    "endless schema": """
from tests.evaluate.evaluators.test_schema import check

assert check({"not": {"type": "null"}, "$ref": "#"}, "1").status == "error"
print("no crash")
""",
    "backtracking": """
import json
from tests.evaluate.evaluators.test_schema import check

check({"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False}, json.dumps({"a" * 60 + "!": 1}))
print("no crash")
""",
    "many properties": """
import json
from tests.evaluate.evaluators.test_schema import check

many = json.dumps({str(number): 1 for number in range(100_000)})
check({"patternProperties": {"^[0-9]": True}, "unevaluatedProperties": False}, many)
print("no crash")
""",
    "many items": """
import json
from tests.evaluate.evaluators.test_schema import check

check({"contains": {"type": "integer"}, "unevaluatedItems": False}, json.dumps([1] * 100_000))
print("no crash")
""",
    "long quotations": """
from tests.evaluate.evaluators.test_schema import check

items = ",".join(["1"] * 60_000)
check({"type": "string", "items": {"$ref": "#"}}, "[" * 150 + items + "]" * 150)
print("no crash")
""",
    "unique items": """
import json
from tests.evaluate.evaluators.test_schema import check

check({"uniqueItems": True}, json.dumps([[number, {"a": number}] for number in range(50_000)]))
print("no crash")
""",
    "unknown properties": """
import json
from tests.evaluate.evaluators.test_schema import check

check({"additionalProperties": False}, json.dumps({str(number): 1 for number in range(100_000)}))
print("no crash")
""",
}


@pytest.fixture(scope="module")
def ends() -> Mapping[str, str]:
    """How hostile answers end, each in a process of its own, side by side: what hangs cannot be interrupted inside."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", program], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name, program in HOSTILE.items()
    }
    ended = {}
    until = time.monotonic() + HANGS_S
    for name, process in running.items():
        try:
            out, told = process.communicate(timeout=max(0.1, until - time.monotonic()))
            ended[name] = out.strip() or told.strip().rsplit("\n", 1)[-1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            ended[name] = "hangs"
    return ended


@pytest.mark.parametrize("name", HOSTILE)
def test_no_answer_holds_up_or_breaks_the_run(ends: Mapping[str, str], name: str) -> None:
    assert ends[name] == "no crash"


# --- What is read from judges and scripts ---


@pytest.mark.parametrize(
    "text",
    [
        '{"%s": {"score": 1}}' % ("k" * 300),
        '{"%s": {"score": 1}}' % ("\\u0041" * 201),
        '{%s"quoted": {"score": 1}}' % (" " * 1_001),
    ],
)
def test_what_stands_inside_an_object_is_never_the_reply(text: str) -> None:
    assert "score" not in (first_object(text) or {})
    assert last_score(text) is None


@settings(derandomize=True, max_examples=200)
@given(st.lists(st.dictionaries(st.sampled_from(["score", "x"]), st.sampled_from([0, 0.5, 1, {"score": 1}, "y"]))))
def test_last_object_with_a_score_scores(objects: list[dict[str, Any]]) -> None:
    scores = [each["score"] for each in objects if isinstance(each.get("score"), (int, float))]
    found = last_score(" and ".join(map(json.dumps, objects)))
    assert (found.score if found else None) == (scores[-1] if scores else None)


@settings(derandomize=True, max_examples=200)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), st.text(max_size=20))
def test_first_object_is_the_first_whatever_follows(value: dict[str, Any], after: str) -> None:
    assume(all(len(key) < 200 for key in value))
    assert first_object("Verdict: " + json.dumps(value) + after) == value


# --- Secrets and costs ---

SECRET = "Sk" + "".join(chr(97 + number * 7 % 26) for number in range(46)) + "!Z"


def printed(text: str) -> tuple[EvaluatorResult, bool]:
    result = EvaluatorResult(
        name="n",
        type="code",
        status="ok",
        score=1.0,
        weight=1.0,
        required=False,
        verdict="pass",
        hits=(text,),
        misses=(text,),
        reasoning=text,
        raw_response=text,
        stderr=text,
    )
    return Redactor([SECRET]).result(result)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 7 + SECRET * 2_000, id="secrets-alone"),
        pytest.param("\x1b[31m\x1b[0m" * 4_442 + "x" * 10 + SECRET + "y" * 50_000 + "\x1b[0m" * 10_000, id="colours"),
        pytest.param("x" * 39_970 + SECRET + "x" * 100_000, id="at-the-cut"),
        pytest.param("x" * 3_980 + SECRET + "x" * 100_000, id="at-the-last-cut"),
        pytest.param("x" * 100_000 + SECRET + "x" * 39_970, id="at-the-end"),
    ],
)
def test_no_part_of_a_secret_is_left_by_cutting(text: str) -> None:
    outcome, _ = printed(text)
    shown = [outcome.reasoning, outcome.raw_response or "", outcome.stderr or "", *outcome.hits, *outcome.misses]
    for part in (SECRET[:12], SECRET[-12:]):
        assert not [each for each in shown if part in each]


@settings(derandomize=True, max_examples=100)
@given(st.text("ab \n", max_size=30), st.text("ab \n", max_size=30))
def test_outcome_says_that_a_secret_was_in_it(before: str, after: str) -> None:
    outcome, is_masked = printed(before + SECRET + after)
    assert is_masked
    assert SECRET not in repr(outcome)
    assert printed(before + after)[1] is False


@pytest.mark.parametrize(
    ("usage", "cost", "expected"),
    [
        (Usage(input_tokens=1_000_000, output_tokens=0), None, 1.0),
        (Usage(input_tokens=1_000_000, output_tokens=1_000_000), None, 3.0),
        (Usage(input_tokens=10, output_tokens=10, cached_tokens=1_000), None, 0.000025),
        (Usage(input_tokens=0, output_tokens=0), None, 0.0),
        (Usage(input_tokens=None, output_tokens=5), None, None),
        (None, None, None),
        (None, 0.0, 0.0),
        (Usage(input_tokens=1_000_000, output_tokens=0), 0.25, 0.25),
    ],
)
def test_answer_costs_what_the_provider_says_else_its_tokens(
    usage: Usage | None, cost: float | None, expected: float | None
) -> None:
    prices = {"m": Price(input_per_mtok=1.0, output_per_mtok=2.0, cached_input_per_mtok=0.5)}
    response = Response("x", (), has_trace=False, model="m", usage=usage, cost_usd=cost)
    assert cost_of_response(MockTarget(name="t", provider="mock"), response, prices) == expected
