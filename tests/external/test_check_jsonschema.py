"""The published schemas in check-jsonschema, which pre-commit hooks use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentv_ci.jsonschema.schemas import SchemaName
from tests.external import documents
from tests.external.tools import installed, run

pytestmark = pytest.mark.slow


def errors_of(checked: Mapping[Path, SchemaName]) -> dict[str, list[str]]:
    """The errors of documents that have any, by name."""
    found: dict[str, list[str]] = {}
    for schema in sorted({*checked.values()}):
        paths = [path for path, named in checked.items() if named == schema]
        options = ["--output-format=json", f"--schemafile={documents.schema_file(schema)}"]
        done = run([installed("check-jsonschema"), *options, *paths])
        report = json.loads(done.stdout)
        assert (report["status"] == "ok") == (done.returncode == 0)
        assert report.get("parse_errors", []) == []
        for error in report["errors"]:
            where = documents.name(Path(error["filename"]))
            found.setdefault(where, []).append(f"{error['path']}: {error['message']}")
    return found


def test_valid_documents_are_accepted() -> None:
    checked = documents.valid()
    assert {*checked.values()} == {"eval-v2", "targets-v2", "config-v2"}
    assert errors_of(checked) == {}


def test_documents_of_the_wrong_shape_are_refused() -> None:
    refused = {documents.name(path) for path in documents.refused()}
    assert documents.NOT_SEEN.keys() <= refused
    assert {*errors_of(documents.refused())} == refused - documents.NOT_SEEN.keys(), documents.HINT


def test_error_names_the_key_of_the_evaluators_type() -> None:
    case = documents.CORPUS / "invalid" / "AV202-key-of-another-evaluator" / "eval.yaml"
    (error,) = errors_of({case: "eval-v2"})[documents.name(case)]
    assert error.startswith("$.evalcases[0].evaluators[0]: ")
    assert "'script'" in error
