"""`type: contains`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess


def contains(value: str, answer: str, **given: Any) -> EvaluatorResult:
    return assess(ContainsEvaluator(name="c", type="contains", value=value, **given), answer)


@pytest.mark.parametrize(
    ("value", "answer", "score"),
    [
        ("hello", "well, hello there", 1.0),
        ("hello", "hello", 1.0),
        ("hello", "Hello", 0.0),
        ("hello", "hel lo", 0.0),
        ("hello", "", 0.0),
        (" ", "a b", 1.0),
        ("a\nb", "1\na\nb\n2", 1.0),
        (".*", "anything", 0.0),
        ("{{ x }}", "see {{ x }}", 1.0),
        ("é", "e\u0301", 0.0),
    ],
)
def test_answer_scores_one_when_it_contains_the_text(value: str, answer: str, score: float) -> None:
    assert contains(value, answer).score == score


@pytest.mark.parametrize(
    ("value", "answer", "score"), [("hello", "HELLO", 1.0), ("HELLO", "hello", 1.0), ("straße", "STRASSE", 1.0)]
)
def test_case_is_ignored_when_it_does_not_matter(value: str, answer: str, score: float) -> None:
    assert contains(value, answer, case_sensitive=False).score == score


def test_hit_names_the_text_when_it_is_there() -> None:
    outcome = contains("Hello", "oh, hello", case_sensitive=False)
    assert (outcome.hits, outcome.misses) == (("contains 'Hello'",), ())


def test_miss_names_the_text_when_it_is_not_there() -> None:
    outcome = contains("Hello", "goodbye")
    assert (outcome.hits, outcome.misses) == ((), ("does not contain 'Hello'",))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.text(), st.text(min_size=1), st.text())
def test_text_is_found_wherever_it_stands(before: str, value: str, after: str) -> None:
    assert contains(value, before + value + after).score == 1.0
