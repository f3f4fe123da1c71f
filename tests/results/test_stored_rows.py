"""Rows are read by msgspec only if pydantic accepts them, and then with the same values."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentv_ci.contracts.results import Change, WorkspaceRecord
from agentv_ci.errors import UsageError
from agentv_ci.results import jsonl
from agentv_ci.results.files import read_rows, row_of, scan_rows
from tests.support import REPOSITORY
from tests.support.shop import shop_run

SEED = 20301
OCCURRENCES = 2
"""Of a field before another one that get every value."""
VALUES = (
    b"null", b"true", b"0", b"1", b"-1", b"2", b"0.5", b"1.0", b"1e0", b"10e-1", b"-0.0", b"1e308", b"1e400", b"1e-400",
    b"9223372036854775808", b"18446744073709551616", b"1" + b"0" * 5_000, b"NaN", b"-Infinity", b"01", b"1.", b"+1",
    b'""', b'"a"', b'"pass"', b'"ok"', b'"majority"', b'"decided"', b'"../a"', b'"a//b"', b'"\\ud800"', b'"\\ud83d"',
    b'"\\u0000"', b'"\x01"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\x"', b"[]", b"{}", b"[null]", b'["a"]', b'{"a":1}',
    b'"{}"', b'" {}"', b'"{} x"', b'"[]"', b'"{a}"', b'"1e400"', b'"NaN"', rb'"{\"a\":1}"', rb'"{\"a\":1e400}"',
    rb'"{\"a\":NaN}"', rb'"{\"a\":\"\\ud800\"}"', b"[" * 400 + b"]" * 400, b"[" * 3_000 + b"]" * 3_000,
    b'"' + b"[" * 3_000 + b"]" * 3_000 + b'"', rb'"{\"a\":' + b"[" * 900 + b"]" * 900 + b'}"',
    b'[{"name":"a","count":1}]', b'[{"name":"a","count":1.0}]',
)  # fmt: skip
"""Values at the edge of some type, valid or not."""
MEMBER = re.compile(rb'"[a-z_]+":(?=(null|true|false|-?[0-9.e-]+|"(?:[^"\\]|\\.)*"|\[\]|\{\})[,}])')
"""A field with a value that holds no others."""


def lines() -> list[bytes]:
    """Return the rows of the corpus and of a run with everything that reports show."""
    files = (REPOSITORY / "tests/corpus").rglob("expected/results.jsonl")
    rows = [row_of(json.loads(line)) for file in sorted(files) for line in jsonl.items(file)]
    change = Change(path="a/b", kind="added", mode=0o644, base64="YQ==")
    workspace = WorkspaceRecord(isolation="none", network="on", changed=("a/b",), changes=(change,), diff="+a")
    rows += [rows[0].model_copy(update={"workspace": workspace}), *shop_run().rows()]
    return [jsonl.encode(row).encode() for row in rows]


def plain(value: Any, field: str = "") -> Any:
    """Return the JSON of a row with the data itself for its texts, and without fields that have no value."""
    if isinstance(value, dict):
        absent = {"compared_masked": False}
        return {name: plain(each, name) for name, each in value.items() if each is not absent.get(name)}
    if isinstance(value, str) and field in ("request", "metadata", "input", "output"):
        return json.loads(value)
    return [plain(each) for each in value] if isinstance(value, list) else value


def require_same(item: bytes) -> bool:
    """Check that a line is read alike, if at all; return whether msgspec reads it."""
    stored = jsonl.stored(item)
    if stored is None:
        return False
    current = jsonl.current(item)
    assert current is not None, f"pydantic refuses {item!r}"
    assert (stored.is_crash, stored.case_key) == (current.is_crash, current.case_key)
    assert plain(json.loads(msgspec.json.encode(stored))) == plain(json.loads(jsonl.encode(current))), item
    return True


def test_every_row_of_this_version_is_read_as_stored() -> None:
    assert all(map(require_same, lines()))


def fields(rows: Sequence[bytes], chance: random.Random) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
    """Yield some occurrences of each field: what is before it, its name, its value, and what is after it."""
    found: dict[tuple[bytes, bytes], list[tuple[bytes, bytes, bytes, bytes]]] = {}
    for row in rows:
        for each in MEMBER.finditer(row):
            place = row[: each.start()], each.group(), each.group(1), row[each.end(1) :]
            following = place[3].partition(b":")[0]
            found.setdefault((each.group(), following), []).append(place)
    for places in found.values():
        yield from chance.sample(places, min(len(places), OCCURRENCES))


def mistaken(rows: Sequence[bytes], chance: random.Random) -> Iterator[bytes]:
    """Yield rows with a field that has another value, is missing, is there twice, or is not known, and damaged ones."""
    for before, name, value, after in fields(rows, chance):
        yield before.removesuffix(b",") + (after if after.startswith(b"}") else after.removeprefix(b","))
        for other in VALUES:
            yield before + name + other + after
            yield before + name + other + b"," + name + value + after
            yield before + name + value + b"," + name + other + after
        yield before + b'"other":1,' + name + value + after
    for row in rows:
        byte = chance.randrange(len(row))
        yield row[:byte] + bytes([chance.randrange(256)]) + row[byte + 1 :]


def test_no_row_is_read_that_pydantic_refuses() -> None:
    read = [*map(require_same, mistaken(lines(), random.Random(SEED)))]
    assert len(read) / 10 < sum(read) < len(read) / 2


def test_message_for_a_row_is_that_of_pydantic(tmp_path: Path) -> None:
    good = lines()[0]
    wrong = good.replace(b'"trial":1', b'"trial":0')
    path = tmp_path / "results.jsonl"
    path.write_bytes(good + wrong)
    messages = []
    for read in (read_rows, scan_rows):
        with pytest.raises(UsageError) as refused:
            list(read(path))
        messages.append(str(refused.value))
    assert "results.jsonl:2: not a result row: trial" in messages[0]
    assert messages[0] == messages[1]
