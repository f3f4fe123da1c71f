"""YAML 1.2 core to plain data, with positions and problems."""

from __future__ import annotations

import pytest

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.source import Pointer, locate
from agentv_ci.load.events import Unparsable
from agentv_ci.load.parse import parse_yaml
from agentv_ci.load.plain import MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, text) for text in ("yes", "no", "on", "2030-01-02", "2030-01-02T03:04:05Z", "12:30:45", "1_000")),
        *((text, text) for text in ("1.2.3", "0b11", "0xg", "+", ".", "1e", "a~")),
        *(("true", True), ("FALSE", False), ("~", None), ("Null", None), ("", None), ("'~'", "~")),
        *(("012", 12), ("0o17", 15), ("0x1F", 31), ("-5", -5), ("+5", 5)),
        *((".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-.inf", float("-inf")), ("+.INF", float("inf"))),
        *(("!!str 5", "5"), ("! 5", "5"), ("!!int '5'", 5), ("!!int 1", 1), ("!!float 1", 1), ("!!null ''", None)),
        ("!!bool true", True),
    ],
)
def test_scalars_follow_yaml_1_2_core(text: str, value: JsonValue) -> None:
    assert parse_yaml(f"- {text}").data == [value]


@pytest.mark.parametrize(
    "text", ["a: {url: http://x:80/}", "a: {q: 2+2?}", "a: [b:c]", "a: b\u2028c\n", "a: 'b\x85c'\n"]
)
def test_documents_that_the_c_parser_rejects_or_splits_are_read(text: str) -> None:
    data = parse_yaml(text).data
    assert isinstance(data, dict)
    assert list(data) == ["a"]


def test_keys_are_texts() -> None:
    text = "1: a\ntrue: b\n2030-01-02: c\n? d\n: e\n~: f\n"
    assert parse_yaml(text).data == {"1": "a", "true": "b", "2030-01-02": "c", "d": "e", "~": "f"}


def test_merge_keys_fill_missing_keys() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: *a, x: 0}\nd: {<<: [*b, *a]}\ne: {'<<': text}\n"
    data = parse_yaml(text).data
    assert isinstance(data, dict)
    assert (data["c"], data["d"], data["e"]) == ({"x": 0, "y": 2}, {"y": 3, "z": 4, "x": 1}, {"<<": "text"})


POSITIONS = """\
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
    ("text", "pointer", "key", "start", "end"),
    [
        (POSITIONS, (), False, (0, 0), (8, 6)),
        (POSITIONS, ("name",), False, (0, 6), (0, 7)),
        (POSITIONS, ("name",), True, (0, 0), (0, 4)),
        (POSITIONS, ("list", 0), False, (2, 4), (2, 9)),
        (POSITIONS, ("list", 1), False, (3, 4), (7, 27)),
        (POSITIONS, ("list", 1, "key"), False, (3, 9), (5, 10)),
        (POSITIONS, ("list", 1, "other", 1, "deep"), False, (7, 22), (7, 25)),
        (POSITIONS, ("list", 1, "other", 1, "missing"), False, (7, 15), (7, 26)),
        (POSITIONS, ("list", 9), False, (2, 2), (7, 27)),
        ("a: &a {x: 1}\nb: *a\n", ("b",), False, (1, 3), (1, 5)),
        ("a: &a {x: 1}\nb: *a\n", ("b", "x"), False, (0, 10), (0, 11)),
        ("timeoutSeconds: 1\n", ("timeout_seconds",), False, (0, 16), (0, 17)),
        ("settings:\n  max_retries: 2\n", ("max_retries",), True, (1, 2), (1, 13)),
    ],
)
def test_every_part_has_its_position(
    text: str, pointer: Pointer, key: bool, start: tuple[int, int], end: tuple[int, int]
) -> None:
    mark = locate(parse_yaml(text).find_mark(), pointer, key=key)
    assert (mark.start, mark.end) == (start, end)


DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))])


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a: \x07", "character U+0007 is not allowed in YAML", (0, 3)),
        ("x: 1\nb: \x00", "character U+0000 is not allowed in YAML", (1, 3)),
        ("? [a]\n: b", "a key must be a string, not a mapping or a list", (0, 2)),
        ("<<: 5", "'<<' must be a mapping or a list of mappings", (0, 4)),
        ("a: !!int abc", "'abc' does not match its tag", (0, 3)),
        ("a: !!bool 1", "'1' does not match its tag", (0, 3)),
        ("a: !!null x", "'x' does not match its tag", (0, 3)),
        ('a: "\\ud83d"', "unpaired surrogate escape", (0, 3)),
        (DEEP, "nested deeper than 64 levels", (0, 64)),
        (f"a: &a {'[' * 40}{']' * 40}\nb: {'[' * 40}*a{']' * 40}\n", "nested deeper than 64 levels", (1, 43)),
        (BOMB, "more than 1,000,000 values after expanding aliases", (6, 24)),
        ("%A b\n" * 102 + "---\n", "more than 100 directives", (0, 0)),
        ("- [\n    a\n  b: ]", "not valid YAML", (2, 3)),
    ],
    ids=lambda each: each[:20] if isinstance(each, str) else "",
)
def test_invalid_yaml_is_one_problem_with_its_position(text: str, message: str, position: tuple[int, int]) -> None:
    with pytest.raises(Unparsable) as caught:
        parse_yaml(text)
    assert (caught.value.problem.rule, caught.value.problem.start) == ("AV101", position)
    assert message in caught.value.problem.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", [("AV104", "key 'a' is given twice; first on line 1", (2, 0))]),
        ("a: 1\nb: 2\na: 3\nb: 4\n", [("AV104", "key 'a' is given twice; first on line 1; so are 'b'", (2, 0))]),
        (f"a: {'9' * 5000}\n", [("AV204", "the number is too long", (0, 3))]),
        ("a: 1\n---\nb: 2\n", [("AV106", "a second YAML document starts here; a file must contain only one", (1, 0))]),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, []),
    ],
    ids=["duplicate key", "duplicate keys", "long number", "two documents", "deep"],
)
def test_problems_of_readable_documents(text: str, expected: list[tuple[str, str, tuple[int, int]]]) -> None:
    assert [(each.rule, each.message, each.start) for each in parse_yaml(text).problems] == expected
