"""`type: regex`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentv_ci.contracts.evaluators import RegexEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.evaluators import evaluate
from tests.evaluate.builders import assess, plan_case, submission, tools

ENDLESS = "(a|aa)+$"
"""Takes time without end on many a's and something else."""


def pattern(value: str, **given: Any) -> RegexEvaluator:
    return RegexEvaluator(name="r", type="regex", value=value, **given)


def search(value: str, answer: str, **given: Any) -> EvaluatorResult:
    return assess(pattern(value, **given), answer)


@pytest.mark.parametrize(
    ("value", "answer", "score"),
    [
        ("b+", "abbc", 1.0),
        ("^b", "abbc", 0.0),
        ("^b", "a\nb", 0.0),
        ("(?m)^b", "a\nb", 1.0),
        ("a.b", "a\nb", 0.0),
        ("(?s)a.b", "a\nb", 1.0),
        ("hello", "HELLO", 0.0),
        ("(?i)hello", "HELLO", 1.0),
        (r"order \d{4}\b", "your order 1234.", 1.0),
        (r"order \d{4}\b", "your order 12345.", 0.0),
        (r"(?P<word>\w+) (?P=word)", "the the", 1.0),
        (r"\w+", "éü", 1.0),
        ("^$", "", 1.0),
        ("x*", "", 1.0),
    ],
)
def test_answer_scores_one_when_the_pattern_matches_somewhere(value: str, answer: str, score: float) -> None:
    assert search(value, answer).score == score


def test_case_is_ignored_when_it_does_not_matter() -> None:
    assert search("^hello$", "HELLO", case_sensitive=False).score == 1.0


def test_hit_names_the_pattern_when_it_matches() -> None:
    outcome = search("a+", "aaa")
    assert (outcome.hits, outcome.misses) == (("matches 'a+'",), ())


def test_miss_names_the_pattern_when_it_does_not_match() -> None:
    outcome = search("a+", "bbb")
    assert (outcome.hits, outcome.misses) == ((), ("does not match 'a+'",))


@pytest.mark.parametrize("value", ["(", "[a", "a{2,1}", "*", "(?P<x>a)(?P<x", "(" * 3000 + ")" * 3000])
def test_pattern_is_an_error_and_no_zero_when_it_does_not_compile(value: str) -> None:
    assert search(value, "a").status == "error"


def test_error_says_what_is_wrong_with_the_pattern() -> None:
    assert search("a{2,1}", "a").reasoning.startswith("not a regular expression: ")


def test_endless_search_ends_in_an_error_while_other_work_goes_on() -> None:
    async def main() -> tuple[EvaluatorResult, int]:
        case = plan_case(pattern(ENDLESS))
        grading = asyncio.create_task(evaluate(submission("a" * 200 + "!", case), tools()))
        turns = 0
        while not grading.done():
            await asyncio.sleep(0.01)
            turns += 1
        return grading.result().results[0], turns

    outcome, turns = asyncio.run(main())
    assert (outcome.status, outcome.verdict, outcome.reasoning) == (
        "error",
        "error",
        f"the pattern took longer than 2 s: '{ENDLESS}'",
    )
    assert turns > 5
