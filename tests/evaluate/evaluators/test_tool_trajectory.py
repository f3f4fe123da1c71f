"""`tool_trajectory`."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ToolCall
from tests.evaluate.builders import answered, assess, evaluator

ANY = object()
"""No `input`: any arguments match."""
WITH_CALLS = ["in_order", "exact", "subset", "superset"]

TOOLS = st.lists(st.sampled_from("abc"), max_size=5)
SOME_TOOLS = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


def trace(calls: str | list[str] | list[ToolCall]) -> Response:
    made = [ToolCall(tool=each) if isinstance(each, str) else each for each in calls]
    return answered("done", *made, has_trace=True)


def compare(mode: str, expected: str | list[str], actual: str | list[str]) -> EvaluatorResult:
    """Compare calls by tool."""
    return assess(
        evaluator("tool_trajectory", mode=mode, expected=[{"tool": each} for each in expected]), trace(actual)
    )


def count(minimums: dict[str, int], actual: str) -> EvaluatorResult:
    return assess(evaluator("tool_trajectory", mode="any_order", minimums=minimums), trace(actual))


def match(mode: str, expected: list[Any], made: list[tuple[str, JsonValue]], **given: Any) -> EvaluatorResult:
    """Compare calls by tool and input."""
    calls = [{"tool": tool} if value is ANY else {"tool": tool, "input": value} for tool, value in expected]
    actual = [ToolCall(tool=tool, input=value) for tool, value in made]
    return assess(evaluator("tool_trajectory", mode=mode, expected=calls, **given), trace(actual))


@pytest.mark.parametrize("mode", ["any_order", *WITH_CALLS])
def test_answer_without_a_trace_is_an_error(mode: str) -> None:
    settings_ = evaluator("tool_trajectory", mode=mode, minimums={"a": 0}, expected=[{"tool": "a"}])
    found = assess(settings_, answered("done", ToolCall(tool="a"), has_trace=False))
    assert (found.status, found.verdict) == ("error", "error")
    assert found.reasoning == "no trace: the target, or the stored row, does not report tool calls"


def test_calls_of_all_messages_are_one_trajectory() -> None:
    messages = (
        OutputMessage(role="assistant", content=None, tool_calls=(ToolCall(tool="a"), ToolCall(tool="b"))),
        OutputMessage(role="tool", content="result"),
        OutputMessage(role="assistant", content="done", tool_calls=(ToolCall(tool="c"),)),
    )
    settings_ = evaluator("tool_trajectory", mode="exact", expected=[{"tool": tool} for tool in "abc"])
    assert assess(settings_, Response("done", messages, has_trace=True)).score == 1.0


@pytest.mark.parametrize(
    ("minimums", "actual", "score"),
    [
        ({"a": 2}, "a", 0),
        ({"a": 2}, "aba", 1),
        ({"a": 1, "b": 2}, "ab", 1 / 2),
        ({"a": 1, "b": 1, "c": 1}, "xya", 1 / 3),
        ({"a": 0}, "b", 1),
        ({"a": 0, "b": 1}, "", 1 / 2),
    ],
)
def test_any_order_scores_the_share_of_minimums_that_are_met(
    minimums: dict[str, int], actual: str, score: float
) -> None:
    assert count(minimums, actual).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "score"),
    [
        ("in_order", "a", "", 0),
        ("exact", "abc", "abx", 2 / 3),
        ("exact", "abc", "ab", 2 / 3),
        ("exact", "ab", "abc", 2 / 3),
        ("exact", "ab", "xab", 0),
        ("exact", "ab", "", 0),
        ("subset", "a", "", 1),
        ("superset", "a", "", 0),
    ],
)
def test_modes_score_calls_by_tool(mode: str, expected: str, actual: str, score: float) -> None:
    assert compare(mode, expected, actual).score == pytest.approx(score)


def test_findings_of_exact_name_the_calls_at_their_position() -> None:
    expected = [("a", ANY), ("b", 1), ("c", ANY), ("d", ANY)]
    found = match("exact", expected, [("a", None), ("b", 2), ("x", None)])
    out_of_place = ("call 2: b instead of b (other input)", "call 3: x instead of c", "call 4: nothing instead of d")
    assert (found.hits, found.misses) == (("call 1: a",), out_of_place)


@settings(max_examples=50)
@given(SOME_TOOLS, TOOLS)
def test_in_order_finds_a_longest_common_subsequence(expected: list[str], actual: list[str]) -> None:
    longest = max(
        size for size in range(len(expected) + 1) if set(combinations(expected, size)) & set(combinations(actual, size))
    )
    assert compare("in_order", expected, actual).score == pytest.approx(longest / len(expected))


@settings(max_examples=50)
@given(SOME_TOOLS, SOME_TOOLS)
def test_subset_and_superset_count_the_same_pairs(expected: list[str], actual: list[str]) -> None:
    common = (Counter(expected) & Counter(actual)).total()
    assert compare("superset", expected, actual).score == pytest.approx(common / len(expected))
    assert compare("subset", expected, actual).score == pytest.approx(common / len(actual))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("mode", ["superset", "subset"])
def test_calls_are_paired_in_any_order(mode: str, order: int) -> None:
    expected = [("search", ANY), ("search", {"q": "x"}), ("search", {"q": "z"})][::order]
    made: list[tuple[str, JsonValue]] = [("search", {"q": each}) for each in "xyz"]
    assert match(mode, expected, made).score == 1.0


@pytest.mark.parametrize(
    ("args_match", "expected", "made", "score"),
    [
        (None, {"q": 1}, {"q": 1}, 1),
        (None, {"q": 1}, {"q": 1, "n": 2}, 0),
        (None, ANY, {"q": 1}, 1),
        (None, None, {"q": 1}, 1),
        (None, {}, {"q": 1}, 0),
        ("exact", {"q": 1, "n": [1]}, {"n": [1], "q": 1.0}, 1),
        ("exact", {"q": 1}, {"q": True}, 0),
        ("subset", {"q": 1}, {"q": 1, "n": 2}, 1),
        ("subset", {"q": 1, "n": 2}, {"q": 1}, 0),
        ("subset", {"q": {"x": 1}}, {"q": {"x": 1, "y": 2}, "n": 2}, 1),
        ("subset", {"q": {"x": 1}}, {"q": "x"}, 0),
        ("subset", {"q": 1}, {"q": True, "n": 2}, 0),
        ("subset", {"q": 1}, None, 0),
        ("ignore", {"q": 1}, {"q": 2}, 1),
        ("ignore", {"q": 1}, None, 1),
    ],
)
@pytest.mark.parametrize("mode", WITH_CALLS)
def test_arguments_are_compared_as_args_match_says(
    mode: str, args_match: str | None, expected: object, made: JsonValue, score: float
) -> None:
    given = {} if args_match is None else {"args_match": args_match}
    assert match(mode, [("search", expected)], [("search", made)], **given).score == score


@pytest.mark.parametrize("mode", WITH_CALLS)
def test_ignored_arguments_do_not_match_another_tool(mode: str) -> None:
    assert match(mode, [("search", 1)], [("find", 1)], args_match="ignore").score == 0.0


@pytest.mark.parametrize("mode", WITH_CALLS)
def test_long_trajectories_are_compared(mode: str) -> None:
    assert compare(mode, "a" * 300, "a" * 300).score == 1.0
    few = {"in_order": 1, "exact": 0, "superset": 1, "subset": 1 / 1501}
    assert compare(mode, "b", "a" * 1500 + "b").score == pytest.approx(few[mode])
