"""YAML to data with places: by the C parser and by ruamel's own, which must not differ."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.source import Mark, Pointer, locate
from agentv_ci.load.events import Problem, Unparsable
from agentv_ci.load.parse import Parsed, parse_yaml
from agentv_ci.load.plain import MAX_DEPTH, NotPlain, read_plain
from tests.support import REPOSITORY


def everything(parsed: Parsed) -> tuple[JsonValue, Mark, tuple[Problem, ...]]:
    return parsed.data, parsed.find_mark(), parsed.problems


def by_both(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Parsed, Parsed]:
    """Parse with the C parser, then without it."""
    fast = parse_yaml(text)
    with monkeypatch.context() as patch:
        patch.setattr("agentv_ci.load.events.CParser", None)
        return fast, parse_yaml(text)


def carefully(text: str) -> Parsed:
    """Parse without the fast way."""

    def never(_: str) -> tuple[JsonValue, frozenset[str]]:
        raise NotPlain

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentv_ci.load.parse.read_plain", never)
        return parse_yaml(text)


def agree(text: str) -> None:
    """Whatever the fast way makes of a file, or leaves alone, the result is the careful one's."""
    try:
        expected = everything(carefully(text))
    except Unparsable as error:
        with pytest.raises(Unparsable, match=re.escape(str(error))):
            parse_yaml(text)
        return
    assert repr(everything(parse_yaml(text))) == repr(expected)


DOCUMENTS = sorted(
    path
    for folder in ("tests/corpus/valid", "docs/examples")
    for path in (REPOSITORY / folder).rglob("*.y*ml")
    # Workflows are documents of GitHub's.
    if not {"expected", "workflows"} & {*path.parts}
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_both_parsers_give_equal_trees_and_places(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = by_both(path.read_text("utf-8"), monkeypatch)
    assert everything(fast) == everything(slow)


def test_what_is_plain_goes_the_fast_way() -> None:
    text = "a: 1\nb: [x, {c: 'd'}]\n"
    document = read_plain(text)
    data, keys = document.data, document.keys
    assert data == {"a": 1, "b": ["x", {"c": "d"}]}
    assert keys == {"a", "b", "c"}


def test_ruamel_reads_with_our_events_as_with_its_own() -> None:
    text = "a: !!str 1\nb: &x [x, {c: 'd'}]\ne: *x\n"
    assert YAML(typ="safe").load(text) == {"a": "1", "b": ["x", {"c": "d"}], "e": ["x", {"c": "d"}]}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_fast_way_and_the_careful_one_give_equal_trees(path: Path) -> None:
    text = path.read_text("utf-8")
    assert everything(parse_yaml(text)) == everything(carefully(text))


@pytest.mark.parametrize(
    "text",
    [
        *("a: 1\na: 2", "a: &x 1\nb: *x", "<<: {a: 1}", "!!str a: 1", "a: !!str 1", "? [a]\n: 1", "--- 1\n--- 2", ""),
        *('a: "\\ud800"', "a: [", "- &a\n- *a", f"a: {'9' * 5000}", "[" * 70 + "]" * 70, "a: 1\n...\nb", "a: |\n x"),
        *(
            "a:",
            "a: ~",
            ": a",
            "- ",
            "a: 0o17\nb: 0x1F\nc: +1\nd: .5e3\ne: -.inf\nf: 0b1\ng: 1_0",
            "a: .",
            "a: -",
            "a: +",
        ),
    ],
)
def test_the_fast_way_leaves_what_is_not_plain_to_the_careful_one(text: str) -> None:
    agree(text)


PIECES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "<<",
            "1",
            "-2.5",
            "true",
            "~",
            "''",
            '"\\u00e9"',
            "'x'",
            "&a ",
            "*a",
            "!!str ",
            "!x ",
            "[",
            "]",
            "{",
            "}",
        ),
        *(": ", ", ", "- ", "? ", "\n", "\n  ", "\n    ", "|\n", ">\n", "# c\n", "---\n", "...\n", "\t", "é", "😀"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(pieces=st.lists(PIECES, max_size=14))
def test_the_fast_way_and_the_careful_one_agree_on_anything(pieces: list[str]) -> None:
    text = "".join(pieces)
    agree(text)


SCALARS = (
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False, width=16)
)
TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS | TEXTS | st.sampled_from(["yes", "no", "on", "2030-01-02", "1_000", "0x1F", "~", "null", "a\nb\n", " x "]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(value=st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_ruamel_writes_is_read_back(value: dict[str, JsonValue]) -> None:
    out = io.StringIO()
    YAML().dump(value, out)
    assert parse_yaml(out.getvalue()).data == value


@settings(max_examples=100, deadline=None)
@given(value=VALUES)
def test_json_is_yaml(value: JsonValue) -> None:
    assert parse_yaml(json.dumps(value)).data == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("2030-01-02", "2030-01-02"),
        ("2030-01-02T03:04:05Z", "2030-01-02T03:04:05Z"),
        ("12:30:45", "12:30:45"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-5", -5),
        ("+5", 5),
        ("1_000", "1_000"),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("~", None),
        ("Null", None),
        ("", None),
        ("'~'", "~"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int '5'", 5),
        ("1.2.3", "1.2.3"),
        ("-", [None]),
        ("0b11", "0b11"),
    ],
)
def test_scalars_follow_yaml_1_2_core(text: str, value: JsonValue) -> None:
    assert parse_yaml(f"- {text}" if text != "-" else text).data == (value if text == "-" else [value])


@pytest.mark.parametrize("text", ["a: {url: http://x:80/}", "a: {q: 2+2?}", "a: [b:c]"])
def test_what_the_c_parser_refuses_is_read_by_the_other(text: str) -> None:
    data = parse_yaml(text).data
    assert isinstance(data, dict)
    assert list(data) == ["a"]


def test_keys_are_what_is_written() -> None:
    assert parse_yaml("1: a\ntrue: b\n2030-01-02: c\n? d\n: e\n~: f\n").data == {
        "1": "a",
        "true": "b",
        "2030-01-02": "c",
        "d": "e",
        "~": "f",
    }


def test_merge_keys_fill_what_is_missing() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: *a, x: 0}\nd: {<<: [*b, *a]}\ne: {'<<': text}\n"
    data = parse_yaml(text).data
    assert isinstance(data, dict)
    assert (data["c"], data["d"], data["e"]) == ({"x": 0, "y": 2}, {"y": 3, "z": 4, "x": 1}, {"<<": "text"})


PLACES = """\
name: x
list:
  - first
  - key: |
      text
      more

    other: [1, {deep: yes}]
empty:
"""


@pytest.mark.parametrize(
    ("pointer", "key", "start", "end"),
    [
        ((), False, (0, 0), (8, 6)),
        (("name",), False, (0, 6), (0, 7)),
        (("name",), True, (0, 0), (0, 4)),
        (("list", 0), False, (2, 4), (2, 9)),
        (("list", 1), False, (3, 4), (7, 27)),
        (("list", 1, "key"), False, (3, 9), (5, 10)),
        (("list", 1, "other", 1, "deep"), False, (7, 22), (7, 25)),
        (("list", 1, "other", 1, "missing"), False, (7, 15), (7, 26)),
        (("list", 9), False, (2, 2), (7, 27)),
    ],
)
def test_every_part_has_its_place(pointer: Pointer, key: bool, start: tuple[int, int], end: tuple[int, int]) -> None:
    mark = locate(parse_yaml(PLACES).find_mark(), pointer, key=key)
    assert (mark.start, mark.end) == (start, end)


def test_an_alias_stands_where_it_is_written_and_its_parts_where_they_are() -> None:
    mark = parse_yaml("a: &a {x: 1}\nb: *a\n").find_mark()
    assert locate(mark, ("b",)).start == (1, 3)
    assert locate(mark, ("b", "x")).start == (0, 10)


def test_places_are_found_under_twins_and_in_settings() -> None:
    mark = parse_yaml("timeoutSeconds: 1\nsettings:\n  max_retries: 2\n").find_mark()
    assert locate(mark, ("timeout_seconds",)).start == (0, 16)
    assert locate(mark, ("max_retries",), key=True).start == (2, 2)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a: [1", "unclosed bracket", (0, 3)),
        ("a: b: c", "': ' inside an unquoted value", (0, 4)),
        ("a: \x07", "character U+0007 is not allowed in YAML", (0, 3)),
        ("x: 1\nb: \x00", "character U+0000 is not allowed in YAML", (1, 3)),
        ("a: *b", "alias *b has no anchor above it", (0, 3)),
        ("a: &a {b: *a}", "alias *a is inside its own anchor", (0, 10)),
        ("a: !ruby/object 5", "is not in the YAML core schema", (0, 3)),
        ("? [a]\n: b", "a key must be a string, not a mapping or a list", (0, 2)),
        ("<<: 5", "'<<' must be a mapping or a list of mappings", (0, 4)),
    ],
)
def test_what_is_not_yaml_is_one_problem_with_its_place(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(Unparsable) as caught:
        parse_yaml(text)
    assert caught.value.problem.rule == "AV101"
    assert message in caught.value.problem.message
    assert caught.value.problem.start == place


def test_depth_is_limited() -> None:
    assert parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH).data
    with pytest.raises(Unparsable, match="nested deeper than 64 levels"):
        parse_yaml("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    with pytest.raises(Unparsable, match="nested deeper than 64 levels"):
        parse_yaml(f"a: &a {'[' * 40}{']' * 40}\nb: {'[' * 40}*a{']' * 40}\n")


def test_an_alias_bomb_ends_at_the_limit() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))]
    with pytest.raises(Unparsable, match="more than 1,000,000 values after expanding aliases"):
        parse_yaml("\n".join(lines))


def test_duplicate_keys_name_both_places() -> None:
    (problem,) = parse_yaml("a: 1\nb: 2\na: 3\n").problems
    assert (problem.rule, problem.message, problem.start) == (
        "AV104",
        "key 'a' is given twice; first on line 1",
        (2, 0),
    )


def test_a_number_that_is_too_long_is_noticed() -> None:
    (problem,) = parse_yaml(f"a: {'9' * 5000}\n").problems
    assert (problem.rule, problem.start) == ("AV204", (0, 3))


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "   \n"])
def test_nothing_is_null(text: str) -> None:
    parsed = parse_yaml(text)
    assert (parsed.data, parsed.problems) == (None, ())


def test_known_differences_of_the_parsers_do_not_change_what_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NEL and U+2028 are line breaks for one parser and characters for the other."""
    for text in ("a: b\u2028c\n", "a: 'b\x85c'\n"):
        fast, slow = by_both(text, monkeypatch)
        assert isinstance(fast.data, dict)
        assert isinstance(slow.data, dict)
        assert fast.data.keys() == slow.data.keys()


@pytest.mark.parametrize("text", ["!!int abc", "!!bool 1", "!!null x", "!!float true and more"])
def test_a_tag_that_lies_is_a_mistake(text: str) -> None:
    with pytest.raises(Unparsable, match="does not match its tag"):
        parse_yaml(f"a: {text}")


@pytest.mark.parametrize(
    ("text", "value"), [("!!int 1", 1), ("!!float 1", 1), ("!!null ''", None), ("!!bool true", True)]
)
def test_a_tag_that_tells_the_truth_is_read(text: str, value: JsonValue) -> None:
    assert parse_yaml(f"a: {text}").data == {"a": value}
