"""Results as one YAML sequence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.app.workspace import read_yaml
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import InputMessageRecord, ResultRow
from agentv_ci.results.files import UnreadableResults, form, read_rows
from tests.report.builders import NASTY, any_text, row, well_formed
from tests.results.test_jsonl import calling_with, json_values, saying


class Appended:
    """A results file that grows row by row, as a run writes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.yaml"

    def append(self, added: ResultRow) -> None:
        with self.path.open("ab") as file:
            file.write(form("yaml").encode(added).encode("utf-8"))

    def rows(self) -> list[ResultRow]:
        return list(read_rows(self.path, "yaml"))


def read_back(folder: Path, *rows: ResultRow) -> list[ResultRow]:
    appended = Appended(folder)
    for each in rows:
        appended.append(each)
    return appended.rows()


def test_row_is_an_item_of_a_sequence_with_long_text_in_blocks() -> None:
    text = "first line\n\n  indented: yes\n# no remark\n"
    written = form("yaml").encode(row(candidate_answer=text, metadata={"a": [1, {"b": None}], "yes": "no"}))
    assert written == (
        """\
- schema_version: 1
  timestamp: '2030-01-02T03:04:05.000Z'
  eval_id: one
  dataset: a
  suite: evals/a.yaml
  target: default
  provider: mock
  trial: 1
  trials: 1
  require: majority
  digest: '0000000000000000000000000000000000000000000000000000000000000000'
  status: ok
  verdict: pass
  score: 1.0
  hits: []
  misses: []
  reasoning: ''
  candidate_answer: |
    first line

      indented: yes
    # no remark
  evaluator_results: []
  attempts: 1
  requests: 1
  duration_ms: 1500
  cached: false
  request: {}
  source:
    path: evals/a.yaml
    line: 3
  metadata:
    a:
    - 1
    - b: null
    'yes': 'no'
  masked: false
  dry_run: false
"""
    )


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("two  \nspaces   ", "|-\n{}two  \n{}spaces   \n"),
        ("a\ttab\n\tand tab\n", "|\n{}a\ttab\n{}\tand tab\n"),
        ("  in\nout", "|2-\n{}  in\n{}out\n"),
        ("\n\n  in\n", "|2\n\n\n{}  in\n"),
        ("breaks\n\n\n", "|+\n{}breaks\n\n\n"),
        (
            "\u00ab\xa0oui\xa0\u00bb\n\u0645\u06cc\u200c\u062e\u0648\n",
            "|\n{}\u00ab\xa0oui\xa0\u00bb\n{}\u0645\u06cc\u200c\u062e\u0648\n",
        ),
        ("\U0001f468\u200d\U0001f469\n# b", "|-\n{}\U0001f468\u200d\U0001f469\n{}# b\n"),
    ],
    ids=ascii,
)
def test_text_of_several_lines_is_a_block_wherever_it_stands(tmp_path: Path, text: str, block: str) -> None:
    found = row(
        candidate_answer=text,
        input_messages=(InputMessageRecord(role="user", content=text),),
        metadata={"a": {"b": text}, "c": [text, [text]]},
    )
    written = form("yaml").encode(found)
    assert f"  candidate_answer: {block.replace('{}', ' ' * 4)}  evaluator_results" in written
    assert f"    content: {block.replace('{}', ' ' * 6)}  status" in written
    assert f"      b: {block.replace('{}', ' ' * 8)}    c:\n" in written
    assert f"    - {block.replace('{}', ' ' * 6)}    - - {block.replace('{}', ' ' * 8)}  masked" in written
    assert read_back(tmp_path, found) == [found]


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b\nc", "a\ufeffb", "a\nb\x1b[31m", "a\r\nb", "a\ufffe"], ids=ascii)
def test_what_other_readers_break_at_and_what_nobody_sees_is_escaped(text: str) -> None:
    written = form("yaml").encode(row(candidate_answer=text, reasoning="caf\xe9"))
    (line,) = [line for line in written.split("\n") if line.startswith("  candidate_answer: ")]
    assert line.isascii()
    assert "  reasoning: caf\xe9\n" in written


def test_key_that_is_longer_than_readers_allow_has_a_question_mark(tmp_path: Path) -> None:
    metadata: dict[str, JsonValue] = {"k" * size: ["x", {"y" * size: 1}] for size in (999, 1000, 1001, 2000)}
    found = row(metadata=metadata)
    assert form("yaml").encode(found).count("\n    ? k") == 4
    assert read_back(tmp_path, found) == [found]


@pytest.mark.parametrize("number", [1e-05, 1e20, 1.5e-7, 0.1, 1e300, -2.5, 0.0, 12345678901234567890, -1])
def test_number_is_read_back_as_it_was(tmp_path: Path, number: float) -> None:
    found = row(cost_usd=abs(float(number)), metadata={"number": number})
    assert repr(read_back(tmp_path, found)) == repr([found])


def test_long_line_is_not_folded() -> None:
    text = "word " * 500
    assert f"  candidate_answer: '{text}'\n" in form("yaml").encode(row(candidate_answer=text))


def special(text: str, written: Callable[[str], str] = str) -> ResultRow:
    """A row with a text alone, inside another, and on several lines."""
    alone, inside, lines = map(written, (text, f"a{text}b", f"{text}{text}\n{text}"))
    return row(candidate_answer=alone, reasoning=inside, misses=(lines, alone, inside), metadata={"last": lines})


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_special_text_is_read_back_as_it_was(tmp_path: Path, text: str) -> None:
    assert read_back(tmp_path, special(text)) == [special(text, well_formed)]


@pytest.mark.parametrize(
    "text",
    [
        " leading",
        "  leading\nline",
        "\n  leading after a break",
        "trailing ",
        "trailing \nline",
        "one break\n",
        "two breaks\n\n",
        "\n\nbreaks before",
        "\n",
        "\n\n\n",
        " \n ",
        "\ttab\n\ttab",
        "a\r\nb\r\nc",
        "a\rb",
        "- a\n- b\n",
        "a: b\nc: d\n",
        "--- \n...\n",
        "# one\n# two\n",
        "%YAML 1.1\n---\n",
        "'''\n\"\"\"\n",
        "```yaml\na: 1\n```\n",
        "😀\né\n",
        "a\x1b[31mb\n",
    ],
    ids=ascii,
)
def test_text_of_several_lines_is_read_back_as_it_was(tmp_path: Path, text: str) -> None:
    rows = [row(candidate_answer=text, metadata={"last": text}), row()]
    assert read_back(tmp_path, *rows) == rows


def test_everything_a_row_can_hold_is_read_back(tmp_path: Path) -> None:
    rows = [saying("text"), saying("two\n  lines\n"), saying("")]
    assert read_back(tmp_path, *rows) == rows


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(any_text, min_size=1, max_size=3), json_values)
def test_file_is_whole_after_every_row(texts: list[str], value: JsonValue) -> None:
    expected = [json.loads(form("jsonl").encode(holding(well_formed(text), value))) for text in texts]
    with TemporaryDirectory() as folder:
        appended = Appended(Path(folder))
        for count, text in enumerate(texts, 1):
            appended.append(holding(text, value))
            assert [json.loads(each.model_dump_json(exclude_none=True)) for each in appended.rows()] == expected[:count]


def holding(text: str, value: JsonValue) -> ResultRow:
    return row(
        input_messages=(InputMessageRecord(role="user", name="n", content=text),),
        expected_outcome=text,
        reference_answer=text,
        candidate_answer=text,
        misses=(text,),
        request={"body": {well_formed(text): [text, value]}},
        metadata={"value": value, well_formed(text): text},
    )


@pytest.mark.parametrize("text", ["- a: b\n" * 2000, "[{-?:" * 2000, "a\n\n- b\n" * 2000, "word " * 210_000], ids=len)
def test_long_text_is_read_back_as_it_was(tmp_path: Path, text: str) -> None:
    rows = [row(candidate_answer=text), row()]
    assert read_back(tmp_path, *rows) == rows


def test_deep_arguments_are_read_back(tmp_path: Path) -> None:
    rows = [calling_with(depth) for depth in (1, 64, 200)]
    assert read_back(tmp_path, *rows) == rows


def test_rows_read_the_same_with_the_reader_of_documents(tmp_path: Path) -> None:
    appended = Appended(tmp_path)
    rows = [saying("a: b\n"), saying("1e3"), saying("yes")]
    for each in rows:
        appended.append(each)
    listed = read_yaml(appended.path.read_text(encoding="utf-8"))
    assert isinstance(listed, list)
    assert [ResultRow.model_validate(each) for each in listed] == rows


def test_both_forms_hold_the_same_row(tmp_path: Path) -> None:
    one = saying("a\nb")
    (tmp_path / "results.jsonl").write_text(form("jsonl").encode(one), encoding="utf-8")
    assert list(read_rows(tmp_path / "results.jsonl", "jsonl")) == read_back(tmp_path, one)


def test_file_without_rows_is_read_as_none(tmp_path: Path) -> None:
    (tmp_path / "results.yaml").touch()
    assert list(read_rows(tmp_path / "results.yaml", "yaml")) == []


def test_item_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.yaml"
    path.write_text(form("yaml").encode(row()) + "- eval_id: two\n", encoding="utf-8")
    with pytest.raises(UnreadableResults, match=r"results\.yaml: item 2 is not a result row"):
        list(read_rows(path, "yaml"))


@pytest.mark.parametrize("text", ["- [", "- 'a", "\x00", "eval_id: one\n", "text"])
def test_file_that_is_no_list_of_rows_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableResults, match=r"results\.yaml: "):
        list(read_rows(path, "yaml"))


REFUSED = """
import pathlib, sys
from agentv_ci.results import files
try:
    list(files.read_rows(pathlib.Path(sys.argv[1]), 'yaml'))
except files.UnreadableResults:
    print("refused")
"""


def test_deep_file_is_refused_and_does_not_kill_the_process(tmp_path: Path) -> None:
    path = tmp_path / "results.yaml"
    path.write_text("- " + "[\n " * 40_000, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", REFUSED, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n")
