"""Where the items of a top-level list stand is noted while skimming, and is where careful reading finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.contracts.source import locate
from agentv_ci.load.events import Unparsable
from agentv_ci.load.parse import parse_yaml

CORPUS = Path(__file__).parent.parent / "corpus"
DOCUMENTS = sorted(path for path in CORPUS.rglob("*.y*ml") if "expected" not in path.parts)


def careful(text: str, key: str) -> list[tuple[object, object]] | None:
    parts = locate(parse_yaml(text).find_mark(), (key,)).parts
    return [(mark.start, mark.end) for mark in parts] if isinstance(parts, list) else None


def quick(text: str, key: str) -> list[tuple[object, object]] | None:
    found = parse_yaml(text).find_items(key)
    return [(mark.start, mark.end) for mark in found] if found is not None else None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(CORPUS)))
@pytest.mark.parametrize("key", ["evalcases", "targets"])
def test_items_of_a_document_stand_where_careful_reading_finds_them(path: Path, key: str) -> None:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        expected = careful(text, key)
    except (Unparsable, UnicodeDecodeError):
        return
    assert quick(text, key) in (expected, None)


@pytest.mark.parametrize(
    "text",
    [
        "x: 1\nlist:\n  - a: 1\n    b: 2\n\n  # remark\n  - c\nlast: 1\n",
        "list: [a, {b: c}, [d, e]]\n",
        "list:\n- a: |\n    text\n\n    more\n\n\n- b: >-\n    folded\n",
        "list:\n- a: |+\n    kept\n\n",
        "list:\n- |\n  one\n- >\n  two\n",
        "list:\n- a: {x: 1,\n   y: 2}\n- [1,\n   2\n  ]\n",
        "list:\n-\n- a:\n- b: ''\n",
        "x: [1, 2]\ny: {z: [3]}\nlist:\n- [4]\n- [[5], {a: [6]}]\nw: [7]\n",
        "list:\n- {a: 1}   # remark\n- 'quoted\n  text'\n...\n",
        '"list":\n  - a\n',
        "other: {list: [1]}\nlist: []\n",
        "\ufeff# remark\n%x: 1\nlist:\n- a\n".replace("%", ""),
        "---\nlist:\r\n- a\r\n- b:\r\n  - |\r\n    x\r\n",
    ],
)
def test_items_stand_where_careful_reading_finds_them(text: str) -> None:
    assert quick(text, "list") == careful(text, "list") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "- [a, b]\n",
        "list: text\n",
        "other: 1\n",
        "<<: {list: [1]}\n",
        "list: {a: 1}\n",
        "anchored: &a {x: 1}\nlist:\n- *a\n- b: *a\n- &c d\n",
    ],
)
def test_what_is_not_plain_is_left_to_careful_reading(text: str) -> None:
    assert quick(text, "list") is None


def test_without_the_c_parser_careful_reading_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv_ci.load.events.CParser", None)
    monkeypatch.setattr("agentv_ci.load.parse.c_parser", lambda _: None)
    assert quick("list: [1]\n", "list") is None
