"""Results as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import OutputMessage, ResultRow, ToolCall, TraceSummary, Usage
from agentv_ci.results.files import UnreadableResults, form, read_rows
from tests.report.builders import NASTY, any_text, finding, row, well_formed, well_formed_text

json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | well_formed_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(well_formed_text, inner, max_size=3),
    max_leaves=6,
)


def saying(text: str) -> ResultRow:
    """A row that says `text` wherever an agent, a judge or an author can say something."""
    return row(
        "error",
        candidate_answer=text,
        reasoning=text,
        hits=(text, "x", text),
        misses=(text,),
        error=text,
        model=text,
        conversation_id=text,
        evaluator_results=(finding(text),),
        request={"prompt": text},
        output_messages=(OutputMessage(role="assistant", content=text, tool_calls=(ToolCall(tool=text, input=text),)),),
        metadata={"key": text, well_formed(text): [text]},
    )


def calling_with(depth: int) -> ResultRow:
    """A row with a tool call whose arguments are nested so deep."""
    arguments: JsonValue = "deep"
    for _ in range(depth):
        arguments = [arguments]
    call = ToolCall(tool="x", input=arguments)
    return row(output_messages=(OutputMessage(role="assistant", tool_calls=(call,)),))


def read_back(folder: Path, *rows: ResultRow) -> list[ResultRow]:
    path = folder / "results.jsonl"
    path.write_bytes("".join(form("jsonl").encode(each) for each in rows).encode("utf-8"))
    return list(read_rows(path, "jsonl"))


def test_row_is_one_line_of_json() -> None:
    assert form("jsonl").encode(row()) == (
        '{"schema_version":1,"timestamp":"2030-01-02T03:04:05.000Z","eval_id":"one","dataset":"a",'
        '"suite":"evals/a.yaml","target":"default","provider":"mock","trial":1,"trials":1,'
        '"require":"majority",'
        '"digest":"0000000000000000000000000000000000000000000000000000000000000000","status":"ok",'
        '"verdict":"pass","score":1.0,"hits":[],"misses":[],"reasoning":"","candidate_answer":"Hello",'
        '"evaluator_results":[],"attempts":1,"requests":1,"duration_ms":1500,"cached":false,'
        '"request":{},"source":{"path":"evals/a.yaml","line":3},"metadata":{},"masked":false,'
        '"dry_run":false}\n'
    )


def test_everything_a_row_can_hold_is_read_back(tmp_path: Path) -> None:
    full = saying("text").model_copy(
        update={
            "seed": -7,
            "usage": Usage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=0),
            "judge_usage": Usage(total_tokens=9),
            "trace_summary": TraceSummary(event_count=2, tool_names=("a",), tool_calls_by_name={"a": 2}, error_count=0),
            "dry_run": True,
        }
    )
    assert read_back(tmp_path, full) == [full]


def test_deep_arguments_are_read_back(tmp_path: Path) -> None:
    rows = [calling_with(depth) for depth in (1, 64, 200)]
    assert read_back(tmp_path, *rows) == rows


def test_rows_are_read_in_their_order(tmp_path: Path) -> None:
    rows = [row(trial=number) for number in (3, 1, 2)]
    assert read_back(tmp_path, *rows) == rows


def test_file_without_rows_is_read_as_none(tmp_path: Path) -> None:
    assert read_back(tmp_path) == []


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_special_text_is_read_back_as_it_was(tmp_path: Path, text: str) -> None:
    rows = [saying(f"a{text}b"), saying(text), saying(f"{text}{text}\n{text}")]
    assert read_back(tmp_path, *rows) == rows


@settings(deadline=None, derandomize=True, max_examples=50)
@given(any_text)
def test_any_text_is_one_ascii_line(text: str) -> None:
    line = form("jsonl").encode(saying(text))
    assert line.isascii()
    assert line.splitlines() == [line.removesuffix("\n")]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(any_text, min_size=1, max_size=3), json_values)
def test_any_row_is_read_back_as_it_was(texts: list[str], value: JsonValue) -> None:
    rows = [saying(text).model_copy(update={"metadata": {"value": value}}) for text in texts]
    with TemporaryDirectory() as folder:
        assert read_back(Path(folder), *rows) == rows


@pytest.mark.parametrize(
    "line", ["", "{", "null", "[]", "{}", "not json", form("jsonl").encode(row())[:-30], "[" * 100_000, "\xff"]
)
def test_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(form("jsonl").encode(row()).encode() + line.encode("latin-1") + b"\n")
    with pytest.raises(UnreadableResults, match=r"results\.jsonl:2: "):
        list(read_rows(path, "jsonl"))


@pytest.mark.parametrize(
    "changed",
    [
        {"schema_version": 2},
        {"verdict": "maybe"},
        {"score": 1.5},
        {"score": True},
        {"trial": 0},
        {"unknown": 1},
        {"eval_id": ""},
    ],
    ids=str,
)
def test_row_that_does_not_keep_the_contract_is_refused(tmp_path: Path, changed: dict[str, JsonValue]) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({**json.loads(form("jsonl").encode(row())), **changed}) + "\n", encoding="utf-8")
    with pytest.raises(UnreadableResults, match=r"results\.jsonl:1: not a result row"):
        list(read_rows(path, "jsonl"))


def test_keys_with_half_a_character_stay_apart(tmp_path: Path) -> None:
    rows = [row(metadata={chr(code): code for code in (0xD800, 0xD801, 0xFFFD)})]
    assert read_back(tmp_path, *rows) == rows
