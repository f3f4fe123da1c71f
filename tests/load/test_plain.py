"""The fast path for plain YAML, the full constructor and both parsers agree."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.source import Mark, locate
from agentv_ci.load import events
from agentv_ci.load.events import Problem, Unparsable
from agentv_ci.load.parse import Parsed, parse_yaml
from agentv_ci.load.plain import NotPlain, read_plain
from tests.support import REPOSITORY

DOCUMENTS = sorted(
    path
    for folder in ("tests/corpus", "docs/examples")
    for path in (REPOSITORY / folder).rglob("*.y*ml")
    # Workflows are documents of GitHub.
    if not {"expected", "workflows"} & {*path.parts}
)


def everything(parsed: Parsed) -> tuple[JsonValue, Mark, tuple[Problem, ...]]:
    return parsed.data, parsed.find_mark(), parsed.problems


def fully(text: str, parser: str = "read_plain") -> Parsed:
    """Parse without the fast path, or without the C parser."""

    def not_plain(_: str) -> object:
        raise NotPlain

    with pytest.MonkeyPatch.context() as patch:
        if parser == "CParser":
            patch.setattr("agentv_ci.load.c_events.CParser", None)
        else:
            patch.setattr("agentv_ci.load.parse.read_plain", not_plain)
        return parse_yaml(text)


def agree(text: str) -> None:
    try:
        expected = everything(fully(text))
    except Unparsable as error:
        with pytest.raises(Unparsable, match=re.escape(str(error))):
            parse_yaml(text)
        return
    assert repr(everything(parse_yaml(text))) == repr(expected)
    try:
        document = read_plain(text)
    except NotPlain:
        return
    assert document.keys == set(keys_in(document.data))
    for key, extents in document.items.items():
        parts = locate(expected[1], (key,)).parts
        assert isinstance(parts, list)
        assert [each[:2] for each in events.marks(text, extents)] == [each[:2] for each in parts]


def keys_in(value: JsonValue) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in keys_in(item))]
    return [key for item in value for key in keys_in(item)] if isinstance(value, list) else []


def test_documents_are_read_alike() -> None:
    for path in DOCUMENTS:
        text = path.read_bytes().decode("utf-8-sig", "replace")
        agree(text)
        # In documents in odd styles, the parsers put an empty value of {a:,} at different columns.
        if not {"invalid", "formatted"} & set(path.parts):
            assert everything(parse_yaml(text)) == everything(fully(text, "CParser")), path


@pytest.mark.parametrize(
    "text",
    [
        *("a: 1\na: 2", "a: &x 1\nb: *x", "<<: {a: 1}", "!!str a: 1", "a: !!str 1", "? [a]\n: 1", "--- 1\n--- 2", ""),
        *('a: "\\ud800"', "a: [", "- &a\n- *a", f"a: {'9' * 5000}", "[" * 70 + "]" * 70, "a: 1\n...\nb", "a: |\n x"),
        *("a:", "a: ~", ": a", "- ", "a: 0o17\nb: 0x1F\nc: +1\nd: .5e3\ne: -.inf\nf: 0b1\ng: 1_0", "a: .\nb: -\nc: +"),
        *("list: [a, {b: c}, [d, e]]\n", "list:\n- a: |\n    text\n\n    more\n\n\n- b: >-\n    folded\n"),
        *(
            "list:\n- a: |+\n    kept\n\n",
            "list:\n- a: {x: 1,\n   y: 2}\n- [1,\n   2\n  ]\n",
            "list:\n-\n- a:\n- b: ''\n",
        ),
        *("x: [1, 2]\ny: {z: [3]}\nlist:\n- [4]\n- [[5], {a: [6]}]\nw: [7]\n", "list:\n- 'quoted\n  text'\n...\n"),
        *('"list":\n  - a\n', "other: {list: [1]}\nlist: []\n", "---\nlist:\r\n- a\r\n- b:\r\n  - |\r\n    x\r\n"),
    ],
)
def test_special_cases_are_read_alike(text: str) -> None:
    agree(text)


PLAIN = (
    *("a", "b c", "1", "-2", "1.5", ".5", "1.", "1e3", "1.e5", "+12", "00012", "-0", "0x1F", "0xg", "0o7", "0b1"),
    *("1_000", "true", "True", "yes", "null", "~", ".inf", "-.INF", ".NaN", "2030-01-02", "a#b", "x:y", "-x", "?x"),
    *("=", "<<", "é", "😀 x", "a\u00a0b", "\ud7ff", "a,b", "", "''", "'it''s'", '"\\n\\t y"', '"\\u00e9\\U0001F600"'),
    *('"x" # c', "a # c", "# c", "[]", "{}", "[a, 1, 'b']", "{a: 1, 'b': [c]}", "[[a], {b: }]", "{a, b: c}", "[a: 1]"),
    *("[a, ]", "&a x", "*a", "!!str 1", "!!int '5'", "! x", "!own x"),
)
OVER_LINES = (
    *("|\n@one\n@two\n", "|-\n@one\n\n", "|+\n@one\n\n\n", "|2\n@   one\n", ">\n@one\n@two\n\n@three\n"),
    *(">-\n@  one\n@two\n", '"one\n@two"', "'one\n\n@two'", "one\n@two", "[one,\n@two]", "{one: 1,\n@two: 2}"),
)
KEYS = ("a", "b", "c", "d", "'q'", '"r"', "1", "true", "é", "<<", "a b", "~", "x.y", "$s", "? k", "&k k", "# c\n@e")


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0, indent: int = 0) -> str:
    """Return the text after a `key:` or a `-`."""
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


@settings(max_examples=250)
@given(before=BEFORE, block=blocks(), after=AFTER, end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_generated_documents_are_read_alike_with_positions_inside(
    before: str, block: str, after: str, end: str
) -> None:
    text = (before + block + after).replace("\n", end)
    agree(text)
    try:
        mark = parse_yaml(text).find_mark()
    except Unparsable:
        return
    lines = re.split("\r\n|\r|\n", text)
    for each in marks_in(mark):
        assert each.start <= each.end
        assert each.end[0] < len(lines)
        assert each.start[1] <= len(lines[each.start[0]])
        assert each.end[1] <= len(lines[each.end[0]])


def marks_in(mark: Mark) -> list[Mark]:
    parts = mark.parts
    inner = [part for pair in parts.values() for part in pair] if isinstance(parts, dict) else parts or []
    return [mark, *(each for part in inner for each in marks_in(part))]


def test_plain_yaml_takes_the_fast_path() -> None:
    document = read_plain("a: 1\nb: [x, {c: 'd'}]\n")
    assert document.keys == {"a", "b", "c"}
    assert [*document.items] == ["b"]
    with pytest.raises(NotPlain):
        read_plain("[" + "?," * 600_000 + "]")


def test_replaced_event_class_does_not_change_ruamel() -> None:
    text = "a: !!str 1\nb: &x [x, {c: 'd'}]\ne: *x\n"
    assert YAML(typ="safe").load(text) == {"a": "1", "b": ["x", {"c": "d"}], "e": ["x", {"c": "d"}]}
