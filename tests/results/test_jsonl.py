"""Results as JSON lines, and what is not a row."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import ResultRow, TraceSummary, Usage
from agentv_ci.results.files import UnreadableResults, read_rows, row_of
from agentv_ci.results.jsonl import encode
from tests.results.builders import calling_with, json_values, saying
from tests.support.runs import any_text, row

ROW: dict[str, Any] = row().model_dump(exclude_none=True)


def read_back(folder: Path, *rows: ResultRow) -> list[ResultRow]:
    path = folder / "results.jsonl"
    path.write_bytes("".join(map(encode, rows)).encode("utf-8"))
    return list(read_rows(path, "jsonl"))


def test_row_is_one_line_of_json() -> None:
    assert encode(row()) == (
        '{"schema_version":1,"timestamp":"2030-01-02T03:04:05.000Z","eval_id":"one","dataset":"a",'
        '"suite":"evals/a.yaml","target":"default","provider":"mock","trial":1,"trials":1,'
        '"require":"majority",'
        '"digest":"0000000000000000000000000000000000000000000000000000000000000000","status":"ok",'
        '"verdict":"pass","score":1.0,"hits":[],"misses":[],"reasoning":"","candidate_answer":"Hello",'
        '"evaluator_results":[],"attempts":1,"requests":1,"duration_ms":1500,"cached":false,'
        '"request":{},"source":{"path":"evals/a.yaml","line":3},"metadata":{},"masked":false,'
        '"dry_run":false}\n'
    )


def test_every_field_is_read_back_in_order(tmp_path: Path) -> None:
    more = {
        "seed": -7,
        "usage": Usage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=0),
        "judge_usage": Usage(total_tokens=9),
        "trace_summary": TraceSummary(event_count=2, tool_names=("a",), tool_calls_by_name={"a": 2}, error_count=0),
        "dry_run": True,
    }
    surrogates = row(metadata={chr(code): code for code in (0xD800, 0xD801, 0xFFFD)})
    rows = [saying("text").model_copy(update=more), *map(calling_with, (1, 64, 200)), surrogates, row(trial=3), row()]
    assert read_back(tmp_path, *rows) == rows
    assert read_back(tmp_path) == []


@settings(max_examples=50)
@given(st.lists(any_text, min_size=1, max_size=3), json_values)
def test_any_row_is_one_ascii_line_and_is_read_back(texts: list[str], value: JsonValue) -> None:
    rows = [saying(text).model_copy(update={"metadata": {"value": value}}) for text in texts]
    for line in map(encode, rows):
        assert line.isascii()
        assert line.splitlines() == [line.removesuffix("\n")]
    with TemporaryDirectory() as folder:
        assert read_back(Path(folder), *rows) == rows


@pytest.mark.parametrize("line", ["", "{", "null", "{}", "not json", encode(row())[:-30], "[" * 100_000, "\xff"])
def test_line_that_is_not_a_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(encode(row()).encode() + line.encode("latin-1") + b"\n")
    with pytest.raises(UnreadableResults, match=r"results\.jsonl:2: not a result row: "):
        list(read_rows(path, "jsonl"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"schema_version": 2, "new": 1}, "schema_version 2 is not supported; this version of agentv-ci reads 1"),
        ({"new": 1}, "new: Extra inputs are not permitted"),
        ({"score": 2}, "score: Input should be less than or equal to 1"),
        ({"score": True}, "score: Input should be a valid number"),
        ({"verdict": "maybe"}, "verdict: Input should be 'pass', 'borderline', 'fail' or 'error'"),
        ({"trial": 0}, "trial: Input should be greater than or equal to 1"),
        ({"eval_id": ""}, "eval_id: String should have at least 1 character"),
        (dict.fromkeys("abcde"), "c: Extra inputs are not permitted; and 2 more"),
        (None, "Input should be a valid dictionary or instance of ResultRow"),
    ],
    ids=str,
)
def test_message_explains_what_is_not_a_row(data: dict[str, Any] | None, said: str) -> None:
    assert row_of(ROW) == row()
    with pytest.raises(ValueError, match=r"\A.*\Z") as caught:
        row_of(data and {**ROW, **json.loads(json.dumps(data))})
    assert str(caught.value).endswith(said)
