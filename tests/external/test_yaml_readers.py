"""Results in YAML as other programs read them: PyYAML, which knows YAML 1.1, and npm's yaml and js-yaml."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import InputMessageRecord, ResultRow
from agentv_ci.results.files import form
from tests.report.builders import NASTY, any_text, row, well_formed
from tests.results.builders import calling_with, json_values, saying

NODE_MODULES = "AGENTV_CI_NODE_MODULES"
INSTALL = "npm install --no-save yaml@2.9.1 js-yaml@4.1.0"

WORDS = (
    "y", "Y", "yes", "Yes", "n", "no", "NO", "on", "Off", "true", "False", "null", "Null", "~", "=", "<<", "",
    "0", "-1", "+1", "0o7", "07", "0x1f", "0b1", "1_000", "1e3", "1E3", "1.5e3", "1.", ".5", ".inf", "-.INF", ".nan",
    "12:30:45", "12:30", "190:20:30.15", "2030-01-01", "2030-01-02T03:04:05.000Z", "2030-01-01 1:2:3", "e3", "x",
    "-", "?", ":", "a:", "a: b", "a #b", "a ", " a", "---", "...", "--- a", "%YAML 1.1", "!!str", "&a", "*a", "'", '"',
    "it's", 'say "x"', "{a}", "[a]", "a, b", "|", ">", "@", "`", "#", "\t", "a\tb", "é", "naïve, no?", "日本",
)  # fmt: skip
"""Texts that some version of YAML takes for something else, when nothing stands around them."""


def telling(text: str) -> ResultRow:
    """A row with a text as a value, as an item and as a key, wherever these are free."""
    return row(
        input_messages=(InputMessageRecord(role="user", name=text, content=text),),
        expected_outcome=text,
        reference_answer=f"{text}\n{text}\n",
        candidate_answer=text,
        hits=(text, f"{text}\n\n"),
        request={text: text, "all": {text: {text: [text, {text: None}, [[text]], [], {}]}}},
        metadata={text: [{text: text}], "cost": 1e-05, "large": 1e20, "is": True, "none": None},
    )


def sequence(rows: Sequence[ResultRow]) -> str:
    return "".join(map(form("yaml").encode, rows))


def lines(rows: Sequence[ResultRow]) -> str:
    return "".join(map(form("jsonl").encode, rows))


def values(rows: Sequence[ResultRow]) -> list[JsonValue]:
    return [json.loads(line) for line in lines(rows).splitlines()]


LOADERS: Sequence[type[yaml.SafeLoader | yaml.CSafeLoader]] = [
    yaml.SafeLoader,
    *([yaml.CSafeLoader] if yaml.__with_libyaml__ else []),
]


@pytest.mark.parametrize("loader", LOADERS)
def test_pyyaml_reads_what_json_says(loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> None:
    rows = [*map(telling, WORDS), *(saying(well_formed(text)) for text in NASTY), calling_with(20)]
    assert yaml.load(sequence(rows), loader) == values(rows)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(any_text.map(well_formed), min_size=1, max_size=3), json_values)
def test_pyyaml_reads_every_text_after_every_row(texts: list[str], value: JsonValue) -> None:
    rows = [telling(text).model_copy(update={"metadata": {"value": value, text: value}}) for text in texts]
    for count in range(len(rows) + 1):
        assert (yaml.load(sequence(rows[:count]), LOADERS[-1]) or []) == values(rows[:count])


COMPARE = """
const { isDeepStrictEqual } = require("util");
const { readFileSync } = require("fs");
const YAML = require("yaml"), jsYaml = require("js-yaml");
const text = readFileSync(process.argv[1], "utf8");
const rows = readFileSync(process.argv[2], "utf8").trimEnd().split("\\n").map((line) => JSON.parse(line));
const readers = {
  "yaml, 1.2": () => YAML.parse(text, { maxAliasCount: 0 }),
  "yaml, 1.1": () => YAML.parse(text, { version: "1.1", maxAliasCount: 0 }),
  "js-yaml": () => jsYaml.load(text),
};
for (const [name, read] of Object.entries(readers)) {
  const found = read();
  const place = rows.findIndex((row, index) => !isDeepStrictEqual(found[index], row));
  const same = place < 0 && found.length === rows.length;
  console.log(`${name}: ${same ? "same" : JSON.stringify([found[place], rows[place]])}`);
}
"""


def test_npm_readers_read_what_json_says(tmp_path: Path) -> None:
    folder = os.environ.get(NODE_MODULES)
    if not folder or shutil.which("node") is None:
        pytest.skip(f"{NODE_MODULES} names no folder of node_modules with yaml and js-yaml: {INSTALL}")
    rows = [*map(telling, WORDS), *(saying(well_formed(text)) for text in NASTY), calling_with(20)]
    (tmp_path / "rows.yaml").write_text(sequence(rows), "utf-8")
    (tmp_path / "rows.jsonl").write_text(lines(rows), "utf-8")
    done = subprocess.run(
        ["node", "-e", COMPARE, tmp_path / "rows.yaml", tmp_path / "rows.jsonl"],
        env={**os.environ, "NODE_PATH": folder},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("yaml, 1.2: same\nyaml, 1.1: same\njs-yaml: same\n", "")
