"""Scripts and JSON Schemas of authors: who reads a script, and in which dialect a schema is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from tests.support import write

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_3 = "http://json-schema.org/draft-03/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

MOCK = {"name": "default", "provider": "mock", "response": '[1, "x"]'}
TARGETS = {"$schema": "agentv-targets-v2.2", "targets": [MOCK]}
SHAPE = {"name": "shape", "type": "schema", "schema_file": "whole.json"}
UNKNOWN = ["https://example.com/custom", "https://json-schema.org/draft/2020-12/shema", "draft-07"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def documents(folder: Path, schema: dict[str, Any], part: dict[str, Any], evaluator: dict[str, Any] = SHAPE) -> None:
    case = {
        "id": "one",
        "expected_outcome": "A pair",
        "input_messages": [{"role": "user", "content": "Give me a pair"}],
        "expected_messages": [],
        "evaluators": [evaluator],
    }
    write(
        folder,
        {
            "x.yaml": json.dumps({"$schema": "agentv-eval-v2", "evalcases": [case]}),
            "targets.yaml": json.dumps(TARGETS),
            "whole.json": json.dumps(schema),
            "part.json": json.dumps(part),
            "s.sh": "echo",
        },
    )


@pytest.mark.parametrize(
    ("dialect", "part", "code"),
    [
        (DRAFT_7, {"items": [{"type": "integer"}, {"type": "string"}]}, 0),
        (DRAFT_7, {"items": [{"type": "integer"}, {"type": "integer"}]}, 1),
        (DRAFT_7.removesuffix("#"), {"items": [{"type": "integer"}], "additionalItems": False}, 1),
        (DRAFT_4, {"items": [{"minimum": 1, "exclusiveMinimum": True}]}, 1),
        (DRAFT_3, {"items": {"type": ["string", {"minimum": 1}]}, "multipleOf": 7, "minItems": 1}, 0),
        (DRAFT_3, {"items": {"type": ["boolean", {"minimum": 2}]}}, 1),
        (DRAFT_2019, {"items": [{"type": "string"}]}, 1),
        (DRAFT_2020, {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, 0),
        (DRAFT_2020, {"prefixItems": [{"type": "integer"}], "unevaluatedItems": False}, 1),
    ],
)
def test_part_in_another_file_has_the_dialect_of_the_whole(
    folder: Path, dialect: str, part: dict[str, Any], code: int
) -> None:
    all_of = "extends" if dialect == DRAFT_3 else "allOf"
    documents(folder, {"$schema": dialect, all_of: [{"$ref": "part.json"}]}, part)
    assert run(["validate", "."]) == 0
    assert run(["eval", "x.yaml", "--out", "r.jsonl"]) == code
    (row,) = (json.loads(line) for line in (folder / "r.jsonl").read_text("utf-8").splitlines())
    assert row["status"] == "ok"


@pytest.mark.parametrize("dialect", UNKNOWN)
@pytest.mark.parametrize("place", ["whole", "part"])
def test_unknown_dialect_is_a_mistake_that_names_the_known_ones(
    folder: Path, dialect: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = ({"$schema": dialect if place == name else DRAFT_2020} for name in ("whole", "part"))
    documents(folder, {**whole, "$ref": "part.json"}, part)
    assert run(["validate", "x.yaml"]) == 1
    told = capsys.readouterr().out
    assert f"unknown dialect '{dialect}'" in told
    assert DRAFT_2019 in told
    assert "[AV309]" in told


@pytest.mark.parametrize("script", ["./s.sh | cat", "./s.sh > out; cat out", "s.sh && ./s.sh"])
def test_script_that_begins_with_a_path_has_no_shell(
    folder: Path, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, {}, {}, {"name": "s", "type": "code", "script": script})
    assert run(["validate", "x.yaml"]) == 1
    assert "'script' starts with a path and runs without a shell" in capsys.readouterr().out


@pytest.mark.parametrize("script", ["./s.sh 'a | b'", "./s.sh a\\|b", "cat x | ./s.sh", "./s.sh --flag=1"])
def test_script_without_signs_of_a_shell_is_taken(folder: Path, script: str) -> None:
    documents(folder, {}, {}, {"name": "s", "type": "code", "script": script})
    assert run(["validate", "x.yaml"]) == 0
