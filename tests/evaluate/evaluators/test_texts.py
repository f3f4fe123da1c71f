"""`type: contains_any`, `contains_all`, `equals`, `starts_with`, `ends_with`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.evaluators import (
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    StartsWithEvaluator,
)
from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess


def contains_any(values: list[str], answer: str, **given: Any) -> EvaluatorResult:
    return assess(ContainsAnyEvaluator(name="c", type="contains_any", value=tuple(values), **given), answer)


def contains_all(values: list[str], answer: str, **given: Any) -> EvaluatorResult:
    return assess(ContainsAllEvaluator(name="c", type="contains_all", value=tuple(values), **given), answer)


def equals(value: str, answer: str, **given: Any) -> EvaluatorResult:
    return assess(EqualsEvaluator(name="e", type="equals", value=value, **given), answer)


def starts_with(value: str, answer: str, **given: Any) -> EvaluatorResult:
    return assess(StartsWithEvaluator(name="s", type="starts_with", value=value, **given), answer)


def ends_with(value: str, answer: str, **given: Any) -> EvaluatorResult:
    return assess(EndsWithEvaluator(name="e", type="ends_with", value=value, **given), answer)


@pytest.mark.parametrize(
    ("values", "answer", "any_score", "all_score"),
    [
        (["a", "b"], "a and b", 1.0, 1.0),
        (["a", "x"], "a and b", 1.0, 0.5),
        (["x", "b", "y"], "a and b", 1.0, 1 / 3),
        (["x", "y"], "a and b", 0.0, 0.0),
        (["x"], "", 0.0, 0.0),
        (["a", "a"], "a", 1.0, 1.0),
        (["A"], "a", 0.0, 0.0),
        ([".*"], "a", 0.0, 0.0),
    ],
)
def test_several_texts_score_when_one_occurs_or_by_their_share(
    values: list[str], answer: str, any_score: float, all_score: float
) -> None:
    assert contains_any(values, answer).score == any_score
    assert contains_all(values, answer).score == pytest.approx(all_score)


def test_case_of_several_texts_is_ignored_when_it_does_not_matter() -> None:
    assert contains_any(["x", "STRASSE"], "Straße", case_sensitive=False).score == 1.0
    assert contains_all(["stra", "STRASSE"], "Straße", case_sensitive=False).score == 1.0


def test_hits_of_contains_any_are_the_texts_that_occur() -> None:
    outcome = contains_any(["x", "b", "a"], "a and b")
    assert (outcome.hits, outcome.misses) == (("contains 'b'", "contains 'a'"), ())


def test_miss_of_contains_any_names_all_texts() -> None:
    outcome = contains_any(["x", "y"], "a and b")
    assert (outcome.hits, outcome.misses) == ((), ("contains none of 'x', 'y'",))


def test_contains_all_names_every_text_in_the_order_of_the_list() -> None:
    outcome = contains_all(["x", "b", "y", "A"], "a and b", case_sensitive=False)
    assert (outcome.hits, outcome.misses) == (
        ("contains 'b'", "contains 'A'"),
        ("does not contain 'x'", "does not contain 'y'"),
    )


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.text())
def test_contains_any_and_contains_all_agree(values: list[str], answer: str) -> None:
    share = contains_all(values, answer).score
    assert contains_any(values, answer).score == float(share > 0)


@pytest.mark.parametrize(
    ("value", "answer", "score"),
    [
        ("yes", "yes", 1.0),
        ("yes", "  yes\n", 1.0),
        (" yes\t", "yes", 1.0),
        ("yes", "yes.", 0.0),
        ("yes", "Yes", 0.0),
        ("a  b", "a b", 0.0),
        ("a\nb", "a\r\nb", 0.0),
        ("", "", 1.0),
        ("", " \n", 1.0),
        ("", "x", 0.0),
        ("x", "", 0.0),
        ("é", "e\u0301", 0.0),
        ("42", "42.0", 0.0),
    ],
)
def test_equals_compares_all_but_the_space_at_both_ends(value: str, answer: str, score: float) -> None:
    assert equals(value, answer).score == score


def test_equals_ignores_case_when_it_does_not_matter() -> None:
    assert equals("STRASSE ", " straße", case_sensitive=False).score == 1.0


def test_equals_tells_what_the_answer_is_instead() -> None:
    assert equals("yes", " no ").misses == ("is 'no', not 'yes'",)
    assert equals("yes", "yes").hits == ("equals 'yes'",)


def test_equals_quotes_a_long_answer_by_its_ends() -> None:
    (miss,) = equals("yes", "a" * 5000 + "z").misses
    assert len(miss) < 250
    assert "z', not 'yes'" in miss


@pytest.mark.parametrize(
    ("value", "answer", "score"),
    [
        ("Dear", "Dear Ann", 1.0),
        ("Dear", "Dear", 1.0),
        ("Dear", "Dea", 0.0),
        ("Dear", "dear Ann", 0.0),
        ("Dear", " Dear Ann", 0.0),
        ("Dear", "", 0.0),
        ("^", "x", 0.0),
    ],
)
def test_starts_with_looks_at_the_very_beginning(value: str, answer: str, score: float) -> None:
    assert starts_with(value, answer).score == score


def test_starts_with_ignores_case_when_it_does_not_matter() -> None:
    assert starts_with("SS", "ßa", case_sensitive=False).score == 1.0


def test_starts_with_tells_how_the_answer_begins() -> None:
    assert starts_with("Dear", "Hello Ann").misses == ("starts with 'Hell', not 'Dear'",)
    assert starts_with("Dear", "Dear Ann").hits == ("starts with 'Dear'",)


@pytest.mark.parametrize(
    ("value", "answer", "score"),
    [
        ("Bye.", "All the best. Bye.", 1.0),
        ("Bye.", "Bye.", 1.0),
        ("Bye.", "ye.", 0.0),
        ("Bye.", "bye.", 0.0),
        ("Bye.", "Bye.\n", 0.0),
        ("Bye.", "", 0.0),
        ("$", "x", 0.0),
    ],
)
def test_ends_with_looks_at_the_very_end(value: str, answer: str, score: float) -> None:
    assert ends_with(value, answer).score == score


def test_ends_with_ignores_case_when_it_does_not_matter() -> None:
    assert ends_with("SS", "aß", case_sensitive=False).score == 1.0


def test_ends_with_tells_how_the_answer_ends() -> None:
    assert ends_with("Bye.", "Hello Ann").misses == ("ends with ' Ann', not 'Bye.'",)
    assert ends_with("Bye.", "Bye.").hits == ("ends with 'Bye.'",)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.text(min_size=1), st.text())
def test_a_text_is_found_at_the_end_where_it_was_put(value: str, other: str) -> None:
    assert starts_with(value, value + other).score == 1.0
    assert ends_with(value, other + value).score == 1.0
    assert equals(value, f"\n{value} ").score == 1.0
