"""Evaluators: scripts without a shell, dialects of JSON Schemas, and the answers they compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import write
from tests.support.projects import Project
from tests.validate.builders import evaluator, found_of

DRAFT_3, DRAFT_4, DRAFT_7 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (3, 4, 7))
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
MOCK = {"name": "default", "provider": "mock", "response": '[1, "x"]'}
SHAPE = {"name": "shape", "type": "schema", "schema_file": "../whole.json"}


@pytest.mark.parametrize(
    ("dialect", "part", "code"),
    [
        (DRAFT_7, {"items": [{"type": "integer"}, {"type": "integer"}]}, 1),
        (DRAFT_4, {"items": [{"minimum": 1, "exclusiveMinimum": True}]}, 1),
        (DRAFT_3, {"items": {"type": ["string", {"minimum": 1}]}, "multipleOf": 7, "minItems": 1}, 0),
        (DRAFT_3, {"items": {"type": ["boolean", {"minimum": 2}]}}, 1),
        (DRAFT_2019, {"items": [{"type": "string"}]}, 1),
        (DRAFT_2020, {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, 0),
    ],
)
def test_part_in_a_file_has_the_same_dialect(repository: Path, dialect: str, part: dict[str, Any], code: int) -> None:
    project = Project(repository)
    project.documents({"evaluators": [SHAPE]}, targets=(MOCK,))
    whole = {"$schema": dialect, "extends" if dialect == DRAFT_3 else "allOf": [{"$ref": "part.json"}]}
    project.write({"whole.json": json.dumps(whole), "part.json": json.dumps(part)})
    assert project.run("validate", ".").code == 0
    assert (project.eval().code, [row["status"] for row in project.rows()]) == (code, ["ok"])


@pytest.mark.parametrize("dialect", ["https://example.com/custom", DRAFT_2020.replace("schema", "shema"), "draft-07"])
@pytest.mark.parametrize("place", ["whole", "part"])
def test_unknown_dialect_is_an_error_with_the_known_ones(repository: Path, dialect: str, place: str) -> None:
    whole, part = ({"$schema": dialect if place == name else DRAFT_2020} for name in ("whole", "part"))
    write(repository, {"whole.json": json.dumps({**whole, "$ref": "part.json"}), "part.json": json.dumps(part)})
    (found,) = found_of(repository, evaluator("type: schema, schema_file: whole.json"))
    assert found.rule == "AV309"
    assert f"unknown dialect '{dialect}'" in found.message
    assert DRAFT_2019 in found.message


@pytest.mark.parametrize("data", ["", "5", "text", "[]", "{}", "evalcases:", "evalcases: {}", "evalcases: [1]"])
@pytest.mark.parametrize("kind", ["eval", "targets", "config"])
def test_any_shape_is_an_error(repository: Path, data: str, kind: str) -> None:
    name = {"eval": "x.yaml", "targets": "targets.yaml", "config": ".agentv.yaml"}[kind]
    write(repository, {name: data})
    done = Project(repository).run("validate", name)
    assert done.code == (0 if kind == "config" and data in ("", "{}") else 1)
    assert "bug" not in done.err
