"""Answers that are data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.json_access import read_answer
from agentv_ci.json_values import is_same
from agentv_ci.text import unfenced

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (True, 1, False),
        (False, 0, False),
        (None, False, False),
        (None, None, True),
        ("1", 1, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ({"a": None}, {}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, False),
        ({}, [], False),
        (9007199254740993, 9007199254740992.0, False),
        (10**400, 10**400, True),
    ],
)
def test_values_are_the_same_as_json_has_it(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is same
    assert is_same(other, one) is same


@settings(deadline=None, derandomize=True, max_examples=50)
@given(values)
def test_every_value_is_itself_and_not_itself_in_a_list(value: Any) -> None:
    assert is_same(value, value)
    assert not is_same(value, [value])


@pytest.mark.parametrize(
    ("answer", "inside"),
    [
        ("```json\n1\n```", "1"),
        ("```\n1```", "1"),
        ("  ```a b c\n1\n2\n```  \n", "1\n2"),
        ("```\n```", ""),
        ("```json 1 ```", "```json 1 ```"),
        ("x\n```\n1\n```", "x\n```\n1\n```"),
        ("```\n1\n``` x", "```\n1\n``` x"),
        ("~~~\n1\n~~~", "~~~\n1\n~~~"),
        ("1", "1"),
        ("", ""),
    ],
)
def test_one_code_fence_around_the_whole_answer_is_taken_off(answer: str, inside: str) -> None:
    assert unfenced(answer) == inside


def test_answer_in_a_code_fence_is_read() -> None:
    assert read_answer('```json\n{"a": [1.5]}\n```\n') == {"a": [1.5]}


@pytest.mark.parametrize("answer", ["", "NaN", "```json\n{\n```", "text"])
def test_answer_that_is_no_json_cannot_be_read(answer: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        read_answer(answer)
