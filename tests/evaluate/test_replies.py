"""Scores are read from what scripts and judges say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.replies import first_object, read_score

words = st.text(st.characters(exclude_characters="{"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"score": 1}', {"score": 1}),
        ('  \n{"score": 1}\n', {"score": 1}),
        ('```json\n{"score": 1}\n```', {"score": 1}),
        ('My verdict: {"score": 1}. Done.', {"score": 1}),
        ('{"score": 1} {"score": 2}', {"score": 1}),
        ('{"a": {"score": 1}}', {"a": {"score": 1}}),
        ('{not json} {"score": 1}', {"score": 1}),
        ('{{{"score": 1}}}', {"score": 1}),
        ('{"score": 1', None),
        ("{}", {}),
        ('"{" and {"a": "}{"}', {"a": "}{"}),
        ("[1, 2]", None),
        ("", None),
        ("{", None),
        ("none", None),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ("{" * 5000, None),
        ('{"a":' * 5000, None),
        ('{"a": ' + "1" * 5000 + '} {"score": 1}', None),
        ('{"a": NaN, "b": [Infinity]}', {"a": None, "b": [None]}),
        ('{"a": "x\\ud800"}', {"a": "x\ufffd"}),
    ],
)
def test_first_object_of_a_text_is_read(text: str, found: dict[str, Any] | None) -> None:
    assert first_object(text) == found


@settings(deadline=None, derandomize=True, max_examples=50)
@given(words, st.dictionaries(st.text(), values, max_size=3), st.text())
def test_object_is_found_whatever_stands_around_it(before: str, value: dict[str, Any], after: str) -> None:
    assert first_object(before + json.dumps(value) + after) == value


@pytest.mark.parametrize("depth", [100, 300, 600, 100_000])
def test_deep_reply_breaks_nothing(depth: int) -> None:
    reply = '{"score": 1, "x": ' + "[" * depth + "]" * depth + "}"
    found = first_object(reply)
    assert found is None or found["score"] == 1


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.text() | st.text('{}[]",:0aé\\ \n'))
def test_no_text_breaks_the_reading(text: str) -> None:
    assert isinstance(first_object(text), dict | None)


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (0, 0.0),
        ("0.5", 0.5),
        (" 1 ", 1.0),
        ("1e-1", 0.1),
        (7, 7.0),
        (-3.5, -3.5),
        ("12", 12.0),
    ],
)
def test_score_is_a_number_as_it_is_given(value: object, score: float) -> None:
    read = read_score({"score": value}, most=None)  # type: ignore[dict-item]  # JSON of any kind
    assert read == Score(score)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        "",
        "high",
        "80%",
        "0,5",
        [1],
        {"value": 1},
        "nan",
        "inf",
        float("nan"),
        float("inf"),
        float("-inf"),
        10**400,
        "1e999",
    ],
)
def test_score_is_unreadable_when_it_is_no_finite_number(value: object) -> None:
    assert read_score({"score": value}, most=None) is None  # type: ignore[dict-item]  # JSON of any kind


def test_score_is_unreadable_when_it_is_missing() -> None:
    assert read_score({"hits": ["all of it"]}, most=None) is None


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["a", "b"], ("a", "b")),
        ([" a ", "", "  ", "\n"], ("a",)),
        (["a", 1, None, ["b"], {"c": 1}, True], ("a",)),
        ([], ()),
        (None, ()),
        ("a", ()),
        ({"a": 1}, ()),
    ],
)
@pytest.mark.parametrize("key", ["hits", "misses"])
def test_findings_are_the_texts_that_say_something(key: str, value: object, texts: tuple[str, ...]) -> None:
    read = read_score({"score": 1, key: value}, most=None)  # type: ignore[dict-item]  # JSON of any kind
    assert read is not None
    assert getattr(read, key) == texts


@pytest.mark.parametrize(("most", "kept"), [(4, 4), (None, 6)])
def test_findings_are_cut_when_there_may_be_only_so_many(most: int | None, kept: int) -> None:
    many: Any = [str(number) for number in range(6)]
    read = read_score({"score": 1, "hits": many, "misses": many}, most=most)
    assert read == Score(1.0, hits=tuple(many[:kept]), misses=tuple(many[:kept]))


def test_empty_findings_do_not_count_towards_the_most() -> None:
    read = read_score({"score": 1, "hits": ["", "a", " ", "b", "c", "d"]}, most=4)
    assert read == Score(1.0, hits=("a", "b", "c", "d"))


@pytest.mark.parametrize(("value", "text"), [(" why ", "why"), (None, ""), (5, ""), (["why"], "")])
def test_reasoning_is_a_text_or_nothing(value: object, text: str) -> None:
    read = read_score({"score": 1, "reasoning": value}, most=None)  # type: ignore[dict-item]  # JSON of any kind
    assert read == Score(1.0, reasoning=text)
