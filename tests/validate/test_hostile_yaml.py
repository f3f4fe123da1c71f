"""YAML built from a grammar: the fast way and the careful one agree, and every place lies inside the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.source import Mark, locate
from agentv_ci.load import events
from agentv_ci.load.events import Unparsable
from agentv_ci.load.parse import parse_yaml
from agentv_ci.load.plain import NotPlain, read_plain
from tests.load.test_parse import carefully

PLAIN = (
    *("a", "b c", "1", "-2", "1.5", ".5", "1.", "1e3", "1.e5", "+12", "00012", "-0", "0x1F", "0xg", "0o7", "0b1"),
    *("1_000", "true", "True", "yes", "null", "~", ".inf", "-.INF", ".NaN", "2030-01-02", "a#b", "x:y", "-x", "?x"),
    *("=", "<<", "é", "😀 x", "a\u00a0b", "\ud7ff", "a,b", ""),
    *("''", "'it''s'", '"\\n\\t y"', '"\\u00e9\\U0001F600"', '"x" # c', "a # c", "# c"),
    *("[]", "{}", "[a, 1, 'b']", "{a: 1, 'b': [c]}", "[[a], {b: }]", "{a, b: c}", "[a: 1]", "[a, ]"),
    *("&a x", "*a", "!!str 1", "!!int '5'", "! x", "!own x"),
)
OVER_LINES = (
    *(
        "|\n@one\n@two\n",
        "|-\n@one\n\n",
        "|+\n@one\n\n\n",
        "|2\n@   one\n",
        ">\n@one\n@two\n\n@three\n",
        ">-\n@  one\n@two\n",
    ),
    *('"one\n@two"', "'one\n\n@two'", "one\n@two", "[one,\n@two]", "{one: 1,\n@two: 2}"),
)
KEYS = ("a", "b", "c", "d", "'q'", '"r"', "1", "true", "é", "<<", "a b", "~", "x.y", "$s", "? k", "&k k", "# c\n@e")


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0, indent: int = 0) -> str:
    """The text behind a `key:` or a `-`."""
    shape = draw(st.sampled_from(["plain", "plain", "lines", "mapping", "sequence"] if depth < 4 else ["plain"]))
    space = " " * indent
    if shape == "plain":
        return f" {draw(st.sampled_from(PLAIN))}\n"
    if shape == "lines":
        return f" {draw(st.sampled_from(OVER_LINES)).replace('@', f'{space} ')}\n"
    count = draw(st.integers(1, 3))
    if shape == "sequence":
        return "\n" + "".join(f"{space}-{draw(blocks(depth + 1, indent + 2))}" for _ in range(count))
    width = draw(st.sampled_from([1, 2, 4]))
    keys = (draw(st.sampled_from(KEYS)).replace("@", space) for _ in range(count))
    return "\n" + "".join(f"{space}{key}:{draw(blocks(depth + 1, indent + width))}" for key in keys)


BEFORE = st.sampled_from(["", "", "", "---", "%YAML 1.2\n---", "# c\n", "\n\n"])
AFTER = st.sampled_from(["", "", "...\n", "\n\n", "# end", "--- x\n"])


@settings(max_examples=300, deadline=None)
@given(before=BEFORE, block=blocks(), after=AFTER, end=st.sampled_from(["\n", "\n", "\r\n"]))
def test_the_fast_way_and_the_careful_one_agree(before: str, block: str, after: str, end: str) -> None:
    text = (before + block + after).replace("\n", end)
    try:
        document = read_plain(text)
        data, keys = document.data, document.keys
    except NotPlain:
        return
    careful = carefully(text)
    assert repr(careful.data) == repr(data)
    assert careful.problems == ()
    assert set(keys_in(data)) == keys
    mark = careful.find_mark()
    for key, extents in document.items.items():
        parts = locate(mark, (key,)).parts
        assert isinstance(parts, list)
        assert [each[:2] for each in events.marks(text, extents)] == [each[:2] for each in parts]


def keys_in(value: JsonValue) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in keys_in(item))]
    return [key for item in value for key in keys_in(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_every_place_lies_inside_the_text(end: str) -> None:
    @settings(max_examples=80, deadline=None, database=None)
    @given(block=blocks(), after=AFTER)
    def check(block: str, after: str) -> None:
        text = (block + after).replace("\n", end)
        try:
            mark = parse_yaml(text).find_mark()
        except Unparsable:
            return
        lines = re.split("\r\n|\r|\n", text)
        for each in marks(mark):
            assert each.start <= each.end
            assert each.end[0] < len(lines)
            assert each.start[1] <= len(lines[each.start[0]])
            assert each.end[1] <= len(lines[each.end[0]])

    check()


def marks(mark: Mark) -> list[Mark]:
    parts = mark.parts
    inner = [part for pair in parts.values() for part in pair] if isinstance(parts, dict) else parts or []
    return [mark, *(each for part in inner for each in marks(part))]


def test_both_ways_refuse_the_same_number_of_values() -> None:
    text = "[" + "?," * 600_000 + "]"
    with pytest.raises((NotPlain, Unparsable)):
        read_plain(text)
