"""Rows of data: what is read, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.contracts.documents import DataProblem, DataRow
from agentv_ci.load.data_rows import read_rows


def rows_of(path: Path, content: bytes) -> list[tuple[object, int, int]]:
    """Return the values or the message of each row, its first line and its column or last line."""
    path.write_bytes(content)
    return [
        (each.values, each.line, each.end_line) if isinstance(each, DataRow) else (each.message, each.line, each.column)
        for each in read_rows(path)
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"\xef\xbb\xbfa,b\r\n1,\r\n\r\n2,3\r\n", [({"a": "1", "b": ""}, 2, 2), ({"a": "2", "b": "3"}, 4, 4)]),
        ("a.csv", b'a\n"x\r\ny ""z"""\nlast', [({"a": 'x\r\ny "z"'}, 2, 3), ({"a": "last"}, 4, 4)]),
        ("a.csv", b"a,b\n1\n2,3\n", [("1 field, but the header on line 1 has 2", 2, 1), ({"a": "2", "b": "3"}, 3, 3)]),
        ("a.csv", b'a\n"x"y\n', [("invalid CSV: ',' expected after '\"'", 2, 1)]),
        ("a.csv", b"a,b,a\n1,2,3\n", [("the header names 'a' twice", 1, 1)]),
        ("a.csv", b"a,\n1,2\n", [("column 2 of the header has no name", 1, 1)]),
        ("a.csv", b"a\n\xff\n", [("not UTF-8", 1, 1)]),
        ("a.csv", b"", []),
        ("a.CSV", b"a\n1\n", [({"a": "1"}, 2, 2)]),
        ("a.csv", b"a\n" + b"x" * 140_000 + b"\n", [({"a": "x" * 140_000}, 2, 2)]),
        (
            "a.jsonl",
            b'{"a": 1.5}\r\n\n{"a": }\n[]\n{"a": null}',
            [
                ({"a": 1.5}, 1, 1),
                ("invalid JSON: Expecting value", 3, 7),
                ("a row must be a mapping: name → value", 4, 1),
                ({"a": None}, 5, 5),
            ],
        ),
        ("a.json", b'[{"a": "}"},\n\n  {"b":\n [1]}]\n', [({"a": "}"}, 1, 1), ({"b": [1]}, 3, 4)]),
        ("a.json", b'[{"a": 1}\n {"a": 2}]', [({"a": 1}, 1, 1), ("invalid JSON: Expecting ',' or ']'", 2, 2)]),
        ("a.json", b'[{"a": 1},\n  tru]', [({"a": 1}, 1, 1), ("invalid JSON: Expecting value", 2, 3)]),
        ("a.json", b"[1]", [("a row must be a mapping: name → value", 1, 2)]),
        ("a.json", b"[\n NaN]", [("invalid JSON: NaN is not JSON", 2, 2)]),
        ("a.json", b"[" * 100_000, [("invalid JSON: nested too deep", 1, 2)]),
        ("a.jsonl", b"[" * 100_000, [("invalid JSON: nested too deep", 1, 1)]),
        ("a.jsonl", b'{"a": 1, "a": 1}\n', [("invalid JSON: key 'a' is given twice", 1, 1)]),
        ("a.json", b'{"rows": []}', [("the file must be a list of rows", 1, 1)]),
        ("a.json", b"", [("the file must be a list of rows", 1, 1)]),
        ("a.json", b"[]", []),
        ("a.yaml", b"# rows\n- a: 1\n  b: no\n- {a: 2}\n", [({"a": 1, "b": "no"}, 2, 3), ({"a": 2}, 4, 4)]),
        ("a.yml", b"a: 1", [("the file must be a list of rows", 1, 1)]),
        ("a.yml", b"- a: 1\n  a: 2", [("key 'a' is given twice; first on line 1", 2, 3)]),
        ("a.tsv", b"a", [("'.tsv' is not a format of rows", 1, 1)]),
    ],
)
def test_rows_are_read_with_their_places(
    tmp_path: Path, name: str, content: bytes, expected: list[tuple[object, int, int]]
) -> None:
    assert rows_of(tmp_path / name, content) == expected


def test_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    (found,) = read_rows(tmp_path / "gone.csv")
    assert isinstance(found, DataProblem)
    assert found.message == "cannot be read: No such file or directory"
