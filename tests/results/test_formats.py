"""Results as JSON lines and as one YAML sequence, and what is not a row."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import InputMessageRecord, OutputMessage, ResultRow, ToolCall, TraceSummary, Usage
from agentv_ci.results import jsonl, yaml
from agentv_ci.results.files import ResultsFormat, UnreadableResults, form, read_rows, row_of
from tests.support.runs import any_text, finding, row, well_formed, well_formed_text

ROW: dict[str, Any] = row().model_dump(exclude_none=True)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | well_formed_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(well_formed_text, inner, max_size=3),
    max_leaves=6,
)


def saying(text: str) -> ResultRow:
    """A row with a text in every field that may have any text."""
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
    """A row with a tool call whose arguments are nested this deep."""
    arguments: JsonValue = "deep"
    for _ in range(depth):
        arguments = [arguments]
    call = ToolCall(tool="x", input=arguments)
    return row(output_messages=(OutputMessage(role="assistant", tool_calls=(call,)),))


def read_back(folder: Path, name: ResultsFormat, *rows: ResultRow) -> list[ResultRow]:
    path = folder / f"results.{name}"
    path.write_bytes("".join(map(form(name).encode, rows)).encode("utf-8"))
    return list(read_rows(path, name))


def test_row_is_one_line_of_json() -> None:
    assert jsonl.encode(row()) == (
        '{"schema_version":1,"timestamp":"2030-01-02T03:04:05.000Z","eval_id":"one","dataset":"a",'
        '"conversation_id":null,"suite":"evals/a.yaml","target":"default","provider":"mock","model":null,"trial":1,'
        '"trials":1,"require":"majority","stop_when":null,"seed":null,'
        '"digest":"0000000000000000000000000000000000000000000000000000000000000000","input_messages":null,'
        '"expected_outcome":null,"reference_answer":null,"status":"ok",'
        '"verdict":"pass","score":1.0,"hits":[],"misses":[],"reasoning":"","candidate_answer":"Hello",'
        '"evaluator_results":[],"error":null,"error_kind":null,"blame":null,"skip":null,"printed":null,"finish_reason":null,"attempts":1,'
        '"requests":1,"duration_ms":1500,"usage":{"input_tokens":null,"output_tokens":null,"total_tokens":null,'
        '"cached_tokens":null},"cost_usd":null,"cached":false,"judge_usage":null,"judge_cost_usd":null,'
        '"request":"{}","output_messages":null,"trace_summary":null,'
        '"source":{"path":"evals/a.yaml","line":3},"tags":[],"metadata":"{}","masked":false,'
        '"dry_run":false}\n'
    )


def test_row_is_an_item_of_a_sequence_with_long_text_in_blocks() -> None:
    text = "first line\n\n  indented: yes\n# no remark\n"
    found = row(candidate_answer=text, metadata={"a": [1, {"b": None}], "yes": "no"})
    written = yaml.encode(found)
    assert re.findall(r"^[- ] (\w+):", written, re.MULTILINE) == [*json.loads(jsonl.encode(found))]
    assert written.startswith("- schema_version: 1\n  timestamp: '2030-01-02T03:04:05.000Z'\n  eval_id: one\n")
    assert f"  digest: '{'0' * 64}'\n  input_messages: null\n" in written
    assert "  status: ok\n  verdict: pass\n  score: 1.0\n  hits: []\n" in written
    answer = "  candidate_answer: |\n    first line\n\n      indented: yes\n    # no remark\n  evaluator_results: []\n"
    assert answer in written
    end = "    a:\n    - 1\n    - b: null\n    'yes': 'no'\n  masked: false\n  dry_run: false\n"
    assert written.endswith(f"  source:\n    path: evals/a.yaml\n    line: 3\n  tags: []\n  metadata:\n{end}")


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("two  \nspaces   ", "|-\n{}two  \n{}spaces   \n"),
        ("a\ttab\n\tand tab\n", "|\n{}a\ttab\n{}\tand tab\n"),
        ("\n\n  in\n", "|2\n\n\n{}  in\n"),
        ("breaks\n\n\n", "|+\n{}breaks\n\n\n"),
        (
            "\u00ab\xa0oui\xa0\u00bb\n\u0645\u06cc\u200c\u062e",
            "|-\n{}\u00ab\xa0oui\xa0\u00bb\n{}\u0645\u06cc\u200c\u062e\n",
        ),
        ("\U0001f468\u200d\U0001f469\n# b", "|-\n{}\U0001f468\u200d\U0001f469\n{}# b\n"),
    ],
    ids=ascii,
)
def test_text_of_several_lines_is_a_block_at_every_level(tmp_path: Path, text: str, block: str) -> None:
    message = InputMessageRecord(role="user", content=text)
    found = row(candidate_answer=text, input_messages=(message,), metadata={"a": {"b": text}, "c": [text, [text]]})
    written = yaml.encode(found)
    assert f"  candidate_answer: {block.replace('{}', ' ' * 4)}  evaluator_results" in written
    assert f"    content: {block.replace('{}', ' ' * 6)}  expected_outcome" in written
    assert f"      b: {block.replace('{}', ' ' * 8)}    c:\n" in written
    assert f"    - {block.replace('{}', ' ' * 6)}    - - {block.replace('{}', ' ' * 8)}  masked" in written
    assert read_back(tmp_path, "yaml", found) == [found]


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b\nc", "a\ufeffb", "a\nb\x1b[31m", "a\r\nb", "a\ufffe"], ids=ascii)
def test_breaks_of_other_readers_and_invisible_characters_are_escaped(text: str) -> None:
    written = yaml.encode(row(candidate_answer=text, reasoning="caf\xe9"))
    (line,) = [line for line in written.split("\n") if line.startswith("  candidate_answer: ")]
    assert line.isascii()
    assert "  reasoning: caf\xe9\n" in written


@pytest.mark.parametrize("text", ["é", "Yes", "null", "e3", "E+4", "a:", "a#", "a ", "2030-01-01", "12:30"])
def test_text_is_quoted_unless_every_reader_takes_it_for_text(text: str) -> None:
    assert f"  candidate_answer: '{text}'\n" in yaml.encode(row(candidate_answer=text))
    assert "  candidate_answer: a plain-text, e3x\n" in yaml.encode(row(candidate_answer="a plain-text, e3x"))


def test_long_lines_are_not_folded_and_long_keys_have_a_question_mark(tmp_path: Path) -> None:
    metadata: dict[str, JsonValue] = {"k" * size: ["x", {"y" * size: 1}] for size in (999, 1000, 1001, 2000)}
    text = "word " * 500
    found = row(candidate_answer=text, metadata=metadata)
    assert yaml.encode(found).count("\n    ? k") == 4
    assert f"  candidate_answer: '{text}'\n" in yaml.encode(found)
    assert read_back(tmp_path, "yaml", found) == [found]


@pytest.mark.parametrize("text", ["42", "null", '{"a": 1}', "found"])
def test_texts_in_rows_of_earlier_versions_stay_texts(text: str) -> None:
    call = ToolCall(tool="search", input=text, output=text)
    given = row(output_messages=(OutputMessage(role="assistant", tool_calls=(call,)),))
    assert row_of(json.loads(given.model_dump_json())) == given
    assert row_of(json.loads(jsonl.encode(given))) == given


def test_lines_of_this_version_need_no_value_in_between() -> None:
    given = saying("text").model_copy(update={"tags": ("a",)})
    line, older = jsonl.encode(given), given.model_dump_json()
    assert jsonl.current(line.encode()) == given
    others = (older, line.replace('{"schema_version":1,', '{"schema_version":2,'), line[:-9], older[:-1] + ',"x":1}')
    assert [jsonl.current(each.encode()) for each in others] == [None] * len(others)


def test_usage_that_is_null_is_empty() -> None:
    assert row_of({**ROW, "usage": None}) == row_of({**ROW, "usage": {}})


def test_every_row_is_read_back_from_both_formats_and_by_the_reader_of_documents(tmp_path: Path) -> None:
    more = {
        "seed": -7,
        "usage": Usage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=0),
        "judge_usage": Usage(total_tokens=9),
        "trace_summary": TraceSummary(event_count=2, tool_names=("a",), tool_calls_by_name={"a": 2}, error_count=0),
        "dry_run": True,
    }
    surrogates = row(metadata={chr(code): code for code in (0xD800, 0xD801, 0xFFFD)})
    texts = [saying(text).model_copy(update=more) for text in ("text", "two\n  lines\n", "", "a: b\n", "1e3", "yes")]
    rows = [*texts, *map(calling_with, (1, 64, 200)), row(trial=3), row()]
    assert read_back(tmp_path, "jsonl", *rows, surrogates) == [*rows, surrogates]
    assert read_back(tmp_path, "yaml", *rows) == rows
    assert read_back(tmp_path, "jsonl") == read_back(tmp_path, "yaml") == []
    listed = read_yaml("".join(map(yaml.encode, texts)))
    assert isinstance(listed, list)
    assert [ResultRow.model_validate(each) for each in listed] == texts


def holding(text: str, value: JsonValue) -> ResultRow:
    message = InputMessageRecord(role="user", name="n", content=text)
    request = {"body": {well_formed(text): [text, value]}}
    metadata = {"value": value, "t": text}
    return saying(text).model_copy(
        update={"input_messages": (message,), "expected_outcome": text, "request": request, "metadata": metadata}
    )


@settings(max_examples=50)
@given(any_text, json_values)
@example("  leading\nline", [1e-05, 1e20, 1.5e-7, 1e300, -2.5, 0.0, 12345678901234567890])
@example("\n  leading after a break", None)
@example(" \n ", None)
@example("--- \n...\n", None)
@example("[{-?:" * 2000, None)
@example("a\n\n- b\n" * 2000, None)
def test_any_row_is_one_ascii_line_of_json_and_the_same_in_yaml(text: str, value: JsonValue) -> None:
    line = jsonl.encode(holding(text, value))
    assert line.isascii()
    assert line.splitlines() == [line.removesuffix("\n")]
    assert jsonl.current(line.encode()) in (None, row_of(jsonl.load(line.encode())))
    with TemporaryDirectory() as folder:
        assert read_back(Path(folder), "jsonl", holding(text, value)) == [holding(text, value)]
        found, last = read_back(Path(folder), "yaml", holding(text, value), row())
    assert last == row()
    assert jsonl.encode(found) == jsonl.encode(holding(well_formed(text), value))


NOT_ROWS = ("", "{", "null", "{}", "not json", jsonl.encode(row())[:-30], "[" * 100_000, "\xff")
NOT_ITEMS = ("- eval_id: two\n", "- [", "- 'a", "\x00", "eval_id: one\n", "- " + "[\n " * 40_000)


@pytest.mark.parametrize(
    ("name", "tail", "said"),
    [
        *(("jsonl", f"{line}\n", r"results\.jsonl:2: not a result row: ") for line in NOT_ROWS),
        *(("yaml", item, r"results\.yaml: item 2 is not a result row: ") for item in NOT_ITEMS),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_not_a_row_is_named(name: ResultsFormat, tail: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"results.{name}"
    path.write_bytes(form(name).encode(row()).encode() + tail.encode("latin-1"))
    with pytest.raises(UnreadableResults, match=said):
        list(read_rows(path, name))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"schema_version": 2, "new": 1}, "schema_version 2 is not supported; this version of agentv-ci reads 1"),
        ({"new": 1}, "new: Extra inputs are not permitted"),
        ({"score": 2}, "score: Input should be less than or equal to 1"),
        ({"score": True}, "score: Input should be a valid number"),
        ({"verdict": "maybe"}, "verdict: Input should be 'pass', 'borderline', 'fail', 'error' or 'skipped'"),
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
