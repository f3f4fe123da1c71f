"""`contains`, `contains_any`, `contains_all`, `equals`, `starts_with`, `ends_with`, `regex`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.evaluators import evaluate
from tests.evaluate.builders import assess, evaluator, plan_case, submission, tools

ENDLESS = "(a|aa)+$"
"""Backtracks without end on many a's and another letter."""


def result(kind: str, value: str | list[str], answer: str, **settings: Any) -> EvaluatorResult:
    return assess(evaluator(kind, value=value, **settings), answer)


@pytest.mark.parametrize(
    ("kind", "value", "answer", "score"),
    [
        ("contains", "hello", "well, hello there", 1),
        ("contains", "hello", "Hello", 0),
        ("contains", "a\nb", "1\na\nb\n2", 1),
        ("contains", ".*", "anything", 0),
        ("contains", "é", "e\u0301", 0),
        ("contains_any", ["x", "b", "y"], "a and b", 1),
        ("contains_any", ["x", "y"], "a and b", 0),
        ("contains_any", ["A", ".*"], "a", 0),
        ("contains_all", ["a", "b"], "a and b", 1),
        ("contains_all", ["a", "x"], "a and b", 0.5),
        ("contains_all", ["a", "a"], "a", 1),
        ("equals", "yes", "  yes\n", 1),
        ("equals", " yes\t", "yes", 1),
        ("equals", "yes", "yes.", 0),
        ("equals", "a  b", "a b", 0),
        ("equals", "", " \n", 1),
        ("equals", "", "x", 0),
        ("starts_with", "Dear", "Dea", 0),
        ("starts_with", "Dear", " Dear Ann", 0),
        ("starts_with", "^", "x", 0),
        ("ends_with", "Bye.", "All the best. Bye.", 1),
        ("ends_with", "Bye.", "ye.", 0),
        ("ends_with", "Bye.", "Bye.\n", 0),
        ("regex", "b+", "abbc", 1),
        ("regex", "^b", "a\nb", 0),
        ("regex", "a.b", "a\nb", 0),
        ("regex", "hello", "HELLO", 0),
        ("regex", r"\w+", "éü", 1),
        ("regex", "Dear {s}", "Dear Xx", 0),
        ("regex", "x*", "", 1),
    ],
)
def test_text_is_compared_with_the_answer(kind: str, value: str | list[str], answer: str, score: float) -> None:
    assert result(kind, value, answer).score == score


@pytest.mark.parametrize(
    ("kind", "value", "answer"),
    [
        ("contains", "straße", "STRASSE"),
        ("contains_any", ["x", "STRASSE"], "Straße"),
        ("contains_all", ["stra", "STRASSE"], "Straße"),
        ("equals", "STRASSE ", " straße"),
        ("starts_with", "SS", "ßa"),
        ("ends_with", "SS", "aß"),
        ("regex", "^hello$", "HELLO"),
    ],
)
def test_case_is_ignored_unless_it_matters(kind: str, value: str | list[str], answer: str) -> None:
    assert result(kind, value, answer, case_sensitive=False).score == 1.0
    assert result(kind, value, answer).score < 1.0


def test_findings_name_the_pattern() -> None:
    assert result("regex", "a+", "aaa").hits == ("matches 'a+'",)
    assert result("regex", "a+", "bbb").misses == ("does not match 'a+'",)


def test_miss_of_equals_shortens_a_long_answer() -> None:
    (miss,) = result("equals", "yes", "a" * 5000 + "z").misses
    assert len(miss) < 250
    assert "z', not 'yes'" in miss


@settings(max_examples=50)
@given(st.text(), st.text(min_size=1), st.text())
def test_text_is_found_where_it_is(before: str, value: str, after: str) -> None:
    assert result("contains", value, before + value + after).score == 1.0
    assert result("starts_with", value, value + after).score == 1.0
    assert result("ends_with", value, before + value).score == 1.0
    assert result("equals", value, f"\n{value} ").score == 1.0


@pytest.mark.parametrize("value", ["(", "a{2,1}", "(?P<x>a)(?P<x", "(" * 3000 + ")" * 3000])
def test_pattern_that_does_not_compile_is_an_error(value: str) -> None:
    found = result("regex", value, "a")
    assert (found.status, found.reasoning[:25]) == ("error", "not a regular expression:")


def test_endless_search_is_an_error_and_does_not_block_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv_ci.base.patterns.TIMEOUT_S", 0.3)

    async def main() -> tuple[EvaluatorResult, int]:
        case = plan_case(evaluator("regex", value=ENDLESS))
        grading = asyncio.create_task(evaluate(submission("a" * 200 + "!", case), tools()))
        turns = 0
        while not grading.done():
            await asyncio.sleep(0.01)
            turns += 1
        return grading.result().results[0], turns

    found, turns = asyncio.run(main())
    assert (found.status, found.verdict) == ("error", "error")
    assert found.reasoning == f"the pattern took longer than 2 s: '{ENDLESS}'"
    assert turns > 5
