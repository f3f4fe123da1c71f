"""`type: is_json`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.evaluators import IsJsonEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def parse(answer: str) -> EvaluatorResult:
    return assess(IsJsonEvaluator(name="j", type="is_json"), answer)


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        "[]",
        '"text"',
        "1",
        "-0",
        "1.5e3",
        "null",
        "true",
        ' \r\n\t{"a": [1, {}]}\n',
        '"\\ud83d\\ude00"',
        '"\\u0000"',
    ],
)
def test_answer_scores_one_when_it_is_json(answer: str) -> None:
    outcome = parse(answer)
    assert (outcome.score, outcome.hits, outcome.misses) == (1.0, ("is JSON",), ())


@pytest.mark.parametrize(
    "answer",
    [
        "", " ", "{", "{a: 1}", "{'a': 1}", '{"a": 1,}', "{} {}", "Here: {}", "01", "+1", ".5", "1.", "0x10", "True",
        "NaN", "[Infinity]", '"\x00"', '"a\nb"', "// x\n1", "\ufeff{}", "\u00a01", "1_000", "١",
    ],
)  # fmt: skip
def test_answer_scores_zero_when_it_is_not_json(answer: str) -> None:
    outcome = parse(answer)
    assert (outcome.status, outcome.score, outcome.hits, len(outcome.misses)) == ("ok", 0.0, (), 1)


@pytest.mark.parametrize("answer", ["```json\n{}\n```", "```\n{}\n```\n", "\n```json\n{\n```"])
def test_miss_says_that_the_answer_stands_in_a_code_fence(answer: str) -> None:
    outcome = parse(answer)
    assert (outcome.score, outcome.misses) == (0.0, ("not JSON: it is in a code fence",))


def test_miss_says_where_the_answer_stops_being_json() -> None:
    assert parse('{"a" 1}').misses == ("not JSON: Expecting ':' delimiter: line 1 column 6 (char 5)",)
    assert parse("NaN").misses == ("not JSON: NaN is not JSON",)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(values, st.sampled_from([None, 0, 2]), st.booleans())
def test_whatever_json_writes_is_json(value: Any, indent: int | None, escapes: bool) -> None:
    assert parse(json.dumps(value, indent=indent, ensure_ascii=escapes)).score == 1.0
