"""What an import writes is read as it was meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentv_ci.load.parse import parse_yaml
from agentv_ci.other_tools.imports.yaml_text import Alias, Anchored, Block, Commented, Node, yaml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\ufeff"), max_size=30)
LINES = st.lists(st.text("ab: #-'\"{}", max_size=8), max_size=4).map("\n".join)
VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS
    | LINES
    | st.integers(-9, 9)
    | st.booleans()
    | st.none()
    | st.sampled_from(["yes", "1e3", "12:30", "-", "~", "<<"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
@example({"a": "one\ntwo\n", "b": ["x\n y", {"c": "\n"}], "c": "😀\n"})
@example({"a": [{"b": "one\ntwo"}, [["x\ny"]], {}]})
@example({"a": [{"b" * 70: "c" * 70, "d": ["e" * 99, {"f": "g" * 99}]}]})
def test_documents_are_read_as_they_were_written(document: dict[str, Any]) -> None:
    assert parse_yaml(yaml_text(document)).data == (document or None)


def test_anchors_comments_and_blocks_are_written() -> None:
    case: Node = Anchored("case", Block({"input": "Hello", "expected": []}))
    listed: list[Node] = [
        Commented(("The first.",), Block({"<<": Alias("case"), "id": "a"})),
        Block({"<<": [Alias("case")], "id": "b"}),
    ]
    document: dict[str, Node] = {"x-case": case, "evalcases": listed}
    text = yaml_text(document, ("A shop.", ""))
    assert text == (
        "# A shop.\n#\nx-case: &case\n  input: Hello\n  expected: []\nevalcases:\n"
        "  # The first.\n  - <<: *case\n    id: a\n  - <<: [*case]\n    id: b\n"
    )
    merged = {"input": "Hello", "expected": []}
    data: Any = parse_yaml(text).data
    assert data["evalcases"] == [{**merged, "id": "a"}, {**merged, "id": "b"}]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text", "a: plain text"),
        ("no", "a: 'no'"),
        ("it's: so", "a: 'it''s: so'"),
        ("tab\there", 'a: "tab\\there"'),
        ("one\ntwo", "a: |-\n  one\n  two"),
        ([{"contains": "x"}], "a: [contains: x]"),
        ({"b": 1, "c": [True, None]}, "a: {b: 1, c: [true, null]}"),
    ],
)
def test_values_are_short(value: Any, written: str) -> None:
    assert yaml_text({"a": value}) == f"{written}\n"
