"""Results in YAML as other programs read them: PyYAML, which reads YAML 1.1, and npm's yaml and js-yaml."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import InputMessageRecord, ResultRow
from agentv_ci.results.files import form
from tests.external.tools import node_modules, run
from tests.support import REPOSITORY, write
from tests.support.runs import NASTY, any_text, finding, row, well_formed

pytestmark = pytest.mark.slow

PACKAGES = ("yaml@2.9.1", "js-yaml@4.1.0")
READER = REPOSITORY / "tests" / "external" / "yaml_readers.mjs"
WORDS = (
    "y", "Y", "yes", "Yes", "n", "no", "NO", "on", "Off", "true", "False", "null", "Null", "~", "=", "<<", "",
    "0", "-1", "+1", "0o7", "07", "0x1f", "0b1", "1_000", "1e3", "1E3", "1.5e3", "1.", ".5", ".inf", "-.INF", ".nan",
    "12:30:45", "12:30", "190:20:30.15", "2030-01-01", "2030-01-02T03:04:05.000Z", "2030-01-01 1:2:3", "e3", "x",
    "-", "?", ":", "a:", "a: b", "a #b", "a ", " a", "---", "...", "--- a", "%YAML 1.1", "!!str", "&a", "*a", "'", '"',
    "it's", 'say "x"', "{a}", "[a]", "a, b", "|", ">", "@", "`", "#", "\t", "a\tb", "é", "naïve, no?", "日本",
)  # fmt: skip
"""Texts that some version of YAML does not read as text unless they are quoted."""
LOADERS: Sequence[type[yaml.SafeLoader | yaml.CSafeLoader]] = [
    yaml.SafeLoader,
    *([yaml.CSafeLoader] if yaml.__with_libyaml__ else []),
]


def row_with(text: str, **given: JsonValue) -> ResultRow:
    """A row with a text as a value, as an item and as a key."""
    plain: dict[str, JsonValue] = {text: [{text: text}], "cost": 1e-05, "large": 1e20, "is": True, "none": None}
    return row(
        "error",
        input_messages=(InputMessageRecord(role="user", name=text, content=text),),
        expected_outcome=text,
        reference_answer=f"{text}\n{text}\n",
        candidate_answer=text,
        hits=(text, f"{text}\n\n"),
        error=text,
        evaluator_results=(finding(text),),
        request={text: text, "all": {text: {text: [text, {text: None}, [[text]], [], {}]}}},
        metadata={**plain, **given},
    )


ROWS = [*map(row_with, WORDS), *(row_with(well_formed(text)) for text in NASTY)]


def written(rows: Sequence[ResultRow]) -> str:
    return "".join(map(form("yaml").encode, rows))


def values(rows: Sequence[ResultRow]) -> list[JsonValue]:
    return [json.loads(json.dumps(each.model_dump(mode="json"))) for each in rows]


@pytest.mark.parametrize("loader", LOADERS)
def test_pyyaml(loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> None:
    assert yaml.load(written(ROWS), loader) == values(ROWS)


@settings(max_examples=60)
@given(st.lists(any_text.map(well_formed), max_size=3), any_text.map(well_formed), st.floats(allow_nan=False))
def test_pyyaml_reads_any_text(texts: list[str], other: str, number: float) -> None:
    value: JsonValue = [other, {other: number if abs(number) < 1e300 else 0.5}]
    rows = [row_with(text, value=value) for text in texts]
    assert (yaml.load(written(rows), LOADERS[-1]) or []) == values(rows)


def test_npm_readers(tmp_path: Path) -> None:
    write(tmp_path, {"rows.yaml": written(ROWS), "rows.json": json.dumps(values(ROWS))})
    done = run(["node", READER, node_modules(*PACKAGES), tmp_path / "rows.yaml", tmp_path / "rows.json"])
    assert (done.stdout, done.stderr) == ("yaml, 1.2: same\nyaml, 1.1: same\njs-yaml: same\n", "")
