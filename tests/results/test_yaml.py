"""Results as one YAML sequence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings

from agentv_ci.app.workspace import read_yaml
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import InputMessageRecord, ResultRow
from agentv_ci.results import jsonl
from agentv_ci.results.files import UnreadableResults, read_rows
from agentv_ci.results.yaml import encode
from tests.results.builders import calling_with, json_values, saying
from tests.support.runs import any_text, row, well_formed


def read_back(folder: Path, *rows: ResultRow) -> list[ResultRow]:
    path = folder / "results.yaml"
    path.write_bytes("".join(map(encode, rows)).encode("utf-8"))
    return list(read_rows(path, "yaml"))


def test_row_is_an_item_of_a_sequence_with_long_text_in_blocks() -> None:
    text = "first line\n\n  indented: yes\n# no remark\n"
    found = row(candidate_answer=text, metadata={"a": [1, {"b": None}], "yes": "no"})
    written = encode(found)
    assert re.findall(r"^[- ] (\w+):", written, re.MULTILINE) == [*json.loads(jsonl.encode(found))]
    assert written.startswith("- schema_version: 1\n  timestamp: '2030-01-02T03:04:05.000Z'\n  eval_id: one\n")
    assert f"  digest: '{'0' * 64}'\n  status: ok\n  verdict: pass\n  score: 1.0\n  hits: []\n" in written
    answer = "  candidate_answer: |\n    first line\n\n      indented: yes\n    # no remark\n  evaluator_results: []\n"
    assert answer in written
    end = "    a:\n    - 1\n    - b: null\n    'yes': 'no'\n  masked: false\n  dry_run: false\n"
    assert written.endswith(f"  source:\n    path: evals/a.yaml\n    line: 3\n  metadata:\n{end}")


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
    written = encode(found)
    assert f"  candidate_answer: {block.replace('{}', ' ' * 4)}  evaluator_results" in written
    assert f"    content: {block.replace('{}', ' ' * 6)}  status" in written
    assert f"      b: {block.replace('{}', ' ' * 8)}    c:\n" in written
    assert f"    - {block.replace('{}', ' ' * 6)}    - - {block.replace('{}', ' ' * 8)}  masked" in written
    assert read_back(tmp_path, found) == [found]


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b\nc", "a\ufeffb", "a\nb\x1b[31m", "a\r\nb", "a\ufffe"], ids=ascii)
def test_breaks_of_other_readers_and_invisible_characters_are_escaped(text: str) -> None:
    written = encode(row(candidate_answer=text, reasoning="caf\xe9"))
    (line,) = [line for line in written.split("\n") if line.startswith("  candidate_answer: ")]
    assert line.isascii()
    assert "  reasoning: caf\xe9\n" in written


@pytest.mark.parametrize("text", ["é", "Yes", "null", "e3", "E+4", "a:", "a#", "a ", "2030-01-01", "12:30"])
def test_text_is_quoted_unless_every_reader_takes_it_for_text(text: str) -> None:
    assert f"  candidate_answer: '{text}'\n" in encode(row(candidate_answer=text))
    assert "  candidate_answer: a plain-text, e3x\n" in encode(row(candidate_answer="a plain-text, e3x"))


def test_long_lines_are_not_folded_and_long_keys_have_a_question_mark(tmp_path: Path) -> None:
    metadata: dict[str, JsonValue] = {"k" * size: ["x", {"y" * size: 1}] for size in (999, 1000, 1001, 2000)}
    text = "word " * 500
    found = row(candidate_answer=text, metadata=metadata)
    assert encode(found).count("\n    ? k") == 4
    assert f"  candidate_answer: '{text}'\n" in encode(found)
    assert read_back(tmp_path, found) == [found]


def test_both_formats_and_the_reader_of_documents_have_the_same_rows(tmp_path: Path) -> None:
    rows = [*map(saying, ("two\n  lines\n", "", "a: b\n", "1e3", "yes")), *map(calling_with, (1, 64, 200))]
    assert read_back(tmp_path, *rows) == rows
    assert read_back(tmp_path) == []
    listed = read_yaml("".join(map(encode, rows[:5])))
    assert isinstance(listed, list)
    assert [ResultRow.model_validate(each) for each in listed] == rows[:5]


def holding(text: str, value: JsonValue) -> ResultRow:
    message = InputMessageRecord(role="user", name="n", content=text)
    request = {"body": {well_formed(text): [text, value]}}
    return row(input_messages=(message,), expected_outcome=text, request=request, metadata={"value": value, "t": text})


@settings(max_examples=50)
@given(any_text, json_values)
@example("  leading\nline", [1e-05, 1e20, 1.5e-7, 1e300, -2.5, 0.0, 12345678901234567890])
@example("\n  leading after a break", None)
@example(" \n ", None)
@example("--- \n...\n", None)
@example("[{-?:" * 2000, None)
@example("a\n\n- b\n" * 2000, None)
def test_any_row_is_read_back_as_from_json(text: str, value: JsonValue) -> None:
    with TemporaryDirectory() as folder:
        found, last = read_back(Path(folder), holding(text, value), row())
    assert last == row()
    expected = json.loads(jsonl.encode(holding(well_formed(text), value)))
    assert json.loads(found.model_dump_json(exclude_none=True)) == expected


@pytest.mark.parametrize("tail", ["- eval_id: two\n", "- [", "- 'a", "\x00", "eval_id: one\n"])
def test_item_that_is_not_a_row_is_named(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "results.yaml"
    path.write_text(encode(row()) + tail, encoding="utf-8")
    with pytest.raises(UnreadableResults, match=r"results\.yaml: item 2 is not a result row: "):
        list(read_rows(path, "yaml"))


REFUSED = """
import pathlib, sys
from agentv_ci.results import files
try:
    list(files.read_rows(pathlib.Path(sys.argv[1]), 'yaml'))
except files.UnreadableResults:
    print("refused")
"""


def test_deep_file_is_refused_without_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "results.yaml"
    path.write_text("- " + "[\n " * 40_000, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", REFUSED, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n")
