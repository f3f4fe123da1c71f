"""`type: tool_trajectory`."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evaluators import ExpectedCall, ToolTrajectoryEvaluator
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ToolCall
from tests.evaluate.builders import answered, assess

NOT_GIVEN = object()
EVERY_MODE = ["any_order", "in_order", "exact", "subset", "superset"]

tools = st.lists(st.sampled_from("abc"), max_size=5)
some_tools = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


def trajectory(mode: str, **given: Any) -> ToolTrajectoryEvaluator:
    return ToolTrajectoryEvaluator.model_validate({"name": "t", "type": "tool_trajectory", "mode": mode, **given})


def compare(mode: str, expected: str | list[str], actual: str | list[str]) -> EvaluatorResult:
    """Compare calls that are told by their tool alone."""
    evaluator = trajectory(mode, expected=[{"tool": tool} for tool in expected])
    return assess(evaluator, answered("done", *(ToolCall(tool=each) for each in actual), has_trace=True))


def count(minimums: dict[str, int], actual: str) -> EvaluatorResult:
    return assess(
        trajectory("any_order", minimums=minimums),
        answered("done", *(ToolCall(tool=each) for each in actual), has_trace=True),
    )


def match(mode: str, wanted: list[ExpectedCall], made: list[ToolCall], **given: Any) -> float:
    """Return the score of calls with arguments."""
    evaluator = trajectory(mode, expected=[call.model_dump(exclude_unset=True) for call in wanted], **given)
    return assess(evaluator, answered("done", *made, has_trace=True)).score


def wanted_call(tool: str, value: object = NOT_GIVEN) -> ExpectedCall:
    return ExpectedCall.model_validate({"tool": tool} if value is NOT_GIVEN else {"tool": tool, "input": value})


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_answer_without_a_trace_is_an_error(mode: str) -> None:
    evaluator = trajectory(mode, minimums={"a": 0}, expected=[{"tool": "a"}])
    outcome = assess(evaluator, answered("done", ToolCall(tool="a"), has_trace=False))
    assert (outcome.status, outcome.verdict, outcome.reasoning) == (
        "error",
        "error",
        "no trace: the target, or the stored row, does not report tool calls",
    )


@pytest.mark.parametrize(
    ("mode", "score"), [("any_order", 0.5), ("in_order", 0.0), ("exact", 0.0), ("subset", 1.0), ("superset", 0.0)]
)
def test_trace_without_calls_is_scored(mode: str, score: float) -> None:
    evaluator = trajectory(mode, minimums={"a": 0, "b": 1}, expected=[{"tool": "a"}])
    outcome = assess(evaluator, answered("done", has_trace=True))
    assert (outcome.status, outcome.score) == ("ok", score)


def test_calls_of_all_messages_are_one_trajectory() -> None:
    messages = (
        OutputMessage(role="assistant", content=None, tool_calls=(ToolCall(tool="a"), ToolCall(tool="b"))),
        OutputMessage(role="tool", content="result"),
        OutputMessage(role="assistant", content="done", tool_calls=(ToolCall(tool="c"),)),
    )
    evaluator = trajectory("exact", expected=[{"tool": tool} for tool in "abc"])
    assert assess(evaluator, Response("done", messages, has_trace=True)).score == 1.0


@pytest.mark.parametrize(
    ("minimums", "actual", "score"),
    [
        ({"a": 1}, "a", 1.0),
        ({"a": 2}, "a", 0.0),
        ({"a": 2}, "aba", 1.0),
        ({"a": 1, "b": 1}, "ba", 1.0),
        ({"a": 1, "b": 2}, "ab", 0.5),
        ({"a": 1, "b": 1, "c": 1}, "xya", 1 / 3),
        ({"a": 0}, "b", 1.0),
    ],
)
def test_any_order_scores_the_share_of_minimums_that_are_met(
    minimums: dict[str, int], actual: str, score: float
) -> None:
    assert count(minimums, actual).score == pytest.approx(score)


def test_any_order_tells_the_number_of_calls_of_every_tool() -> None:
    outcome = count({"a": 2, "b": 1}, "abbx")
    assert (outcome.hits, outcome.misses) == (("b: 2 of at least 1",), ("a: 1 of at least 2",))


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ("abc", "abc", 1.0),
        ("abc", "axbxc", 1.0),
        ("abc", "acb", 2 / 3),
        ("abc", "xbc", 2 / 3),
        ("abc", "cba", 1 / 3),
        ("aab", "ab", 2 / 3),
        ("a", "xyz", 0.0),
    ],
)
def test_in_order_scores_the_longest_common_subsequence(expected: str, actual: str, score: float) -> None:
    assert compare("in_order", expected, actual).score == pytest.approx(score)


def test_in_order_names_what_is_out_of_order() -> None:
    outcome = compare("in_order", "abc", "axc")
    assert (outcome.hits, outcome.misses) == (("a in order", "c in order"), ("b not in order",))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(some_tools, tools)
def test_in_order_finds_no_less_than_every_selection_would(expected: list[str], actual: list[str]) -> None:
    longest = max(
        size
        for size in range(len(expected) + 1)
        for chosen in combinations(expected, size)
        if chosen in set(combinations(actual, size))
    )
    assert compare("in_order", expected, actual).score == pytest.approx(longest / len(expected))


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ("abc", "abc", 1.0),
        ("abc", "abx", 2 / 3),
        ("abc", "ab", 2 / 3),
        ("ab", "abc", 2 / 3),
        ("ab", "xab", 0.0),
        ("a", "aaaa", 0.25),
        ("ab", "", 0.0),
    ],
)
def test_exact_scores_matches_in_place_over_the_longer_side(expected: str, actual: str, score: float) -> None:
    assert compare("exact", expected, actual).score == pytest.approx(score)


def test_exact_names_every_call_out_of_place() -> None:
    evaluator = trajectory("exact", expected=[{"tool": "a"}, {"tool": "b", "input": 1}, {"tool": "c"}, {"tool": "d"}])
    calls = (ToolCall(tool="a"), ToolCall(tool="b", input=2), ToolCall(tool="x"))
    outcome = assess(evaluator, answered("done", *calls, has_trace=True))
    assert (outcome.hits, outcome.misses) == (
        ("call 1: a",),
        ("call 2: b instead of b (other input)", "call 3: x instead of c", "call 4: nothing instead of d"),
    )


def test_exact_names_the_call_too_many() -> None:
    assert compare("exact", "a", "ab").misses == ("call 2: b instead of nothing",)


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ("ab", "ba", 1.0),
        ("ab", "xaxbx", 1.0),
        ("ab", "a", 0.5),
        ("aab", "ab", 2 / 3),
        ("ab", "", 0.0),
    ],
)
def test_superset_scores_the_share_of_expected_calls_that_occur(expected: str, actual: str, score: float) -> None:
    assert compare("superset", expected, actual).score == pytest.approx(score)


def test_superset_names_what_was_not_called() -> None:
    outcome = compare("superset", "ab", "bx")
    assert (outcome.hits, outcome.misses) == (("b was called",), ("a was not called as expected",))


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ("ab", "ba", 1.0),
        ("abc", "b", 1.0),
        ("ab", "abx", 2 / 3),
        ("ab", "aa", 0.5),
        ("a", "xyz", 0.0),
        ("a", "", 1.0),
    ],
)
def test_subset_scores_the_share_of_actual_calls_that_are_expected(expected: str, actual: str, score: float) -> None:
    assert compare("subset", expected, actual).score == pytest.approx(score)


def test_subset_names_what_was_not_expected() -> None:
    outcome = compare("subset", "ab", "bx")
    assert (outcome.hits, outcome.misses) == (("b is expected",), ("x was called and is not expected",))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(some_tools, some_tools)
def test_subset_and_superset_count_the_same_calls(expected: list[str], actual: list[str]) -> None:
    common = (Counter(expected) & Counter(actual)).total()
    assert compare("superset", expected, actual).score == pytest.approx(common / len(expected))
    assert compare("subset", expected, actual).score == pytest.approx(common / len(actual))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("mode", ["superset", "subset"])
def test_every_call_finds_its_partner_in_whatever_order_they_are_listed(mode: str, order: int) -> None:
    wanted = [wanted_call("search"), wanted_call("search", {"q": "x"})]
    made = [ToolCall(tool="search", input={"q": "x"}), ToolCall(tool="search", input={"q": "y"})]
    assert match(mode, wanted[::order], made) == 1.0


ARGUMENTS = [
    ({}, {"q": 1}, {"q": 1}, True),
    ({}, {"q": 1}, {"q": 1, "n": 2}, False),
    ({}, {"q": 1, "n": 2}, {"n": 2, "q": 1}, True),
    ({}, {"q": 1}, {"q": 2}, False),
    ({}, NOT_GIVEN, {"q": 1}, True),
    ({}, {}, {"q": 1}, False),
    ({}, "text", "text", True),
    ({"args_match": "exact"}, {"q": 1}, {"q": 1}, True),
    ({"args_match": "exact"}, {"q": 1}, {"q": 1, "n": 2}, False),
    ({"args_match": "exact"}, {"q": 1}, {"q": 1.0}, True),
    ({"args_match": "exact"}, {"q": 1}, {"q": True}, False),
    ({"args_match": "exact"}, {"q": False}, {"q": 0}, False),
    ({"args_match": "exact"}, {"q": [1, 2]}, {"q": [2, 1]}, False),
    ({"args_match": "exact"}, {"q": {"x": [1]}}, {"q": {"x": [1]}}, True),
    ({"args_match": "subset"}, {"q": 1}, {"q": 1, "n": 2}, True),
    ({"args_match": "subset"}, {"q": 1, "n": 2}, {"q": 1}, False),
    ({"args_match": "subset"}, {"q": {"x": 1}}, {"q": {"x": 1, "y": 2}, "n": 2}, True),
    ({"args_match": "subset"}, {"q": {"x": 1}}, {"q": "x"}, False),
    ({"args_match": "subset"}, {"q": 1}, {"q": True, "n": 2}, False),
    ({"args_match": "subset"}, {}, {"q": 1}, True),
    ({"args_match": "subset"}, NOT_GIVEN, {"q": 1}, True),
    ({"args_match": "subset"}, {"q": 1}, None, False),
    ({"args_match": "ignore"}, {"q": 1}, {"q": 2}, True),
    ({"args_match": "ignore"}, {"q": 1}, None, True),
]


@pytest.mark.parametrize(("given", "wanted", "made", "matches"), ARGUMENTS)
def test_arguments_are_compared_as_asked(given: dict[str, Any], wanted: object, made: JsonValue, matches: bool) -> None:
    score = match("exact", [wanted_call("search", wanted)], [ToolCall(tool="search", input=made)], **given)
    assert score == (1.0 if matches else 0.0)


@pytest.mark.parametrize("mode", ["in_order", "exact", "subset", "superset"])
@pytest.mark.parametrize(("made", "score"), [({"q": 1}, 1.0), ({"q": 2}, 0.0)])
def test_arguments_count_in_every_mode_with_expected_calls(mode: str, made: JsonValue, score: float) -> None:
    assert match(mode, [wanted_call("search", {"q": 1})], [ToolCall(tool="search", input=made)]) == score


@pytest.mark.parametrize("mode", ["in_order", "exact", "subset", "superset"])
def test_another_tool_never_matches_when_arguments_are_ignored(mode: str) -> None:
    assert match(mode, [wanted_call("search", 1)], [ToolCall(tool="find", input=1)], args_match="ignore") == 0.0
