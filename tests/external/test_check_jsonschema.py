"""The published schemas in check-jsonschema, which pre-commit hooks check files with."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentv_ci.jsonschema.schemas import SchemaName
from tests.external import documents

INSTALL = "python -m pip install 'check-jsonschema>=0.39'"


def check_jsonschema() -> list[str]:
    """Return the command, of this environment or else of another one on PATH."""
    if importlib.util.find_spec("check_jsonschema"):
        return [sys.executable, "-m", "check_jsonschema"]
    script = shutil.which("check-jsonschema")
    if script is None:
        pytest.skip(f"check-jsonschema is missing; install it: {INSTALL}")
    return [script]


def complaints(checked: Mapping[Path, SchemaName]) -> dict[str, list[str]]:
    """What check-jsonschema says about documents: name → places and messages; accepted ones are left out."""
    found: dict[str, list[str]] = {}
    for schema in sorted({*checked.values()}):
        paths = [path for path, wanted in checked.items() if wanted == schema]
        done = subprocess.run(
            [*check_jsonschema(), "--output-format=json", f"--schemafile={documents.schema_file(schema)}", *paths],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode in (0, 1), done.stderr
        report = json.loads(done.stdout)
        assert (report["status"] == "ok") == (done.returncode == 0)
        assert report.get("parse_errors", []) == []
        for error in report["errors"]:
            where = documents.name(Path(error["filename"]))
            found.setdefault(where, []).append(f"{error['path']}: {error['message']}")
    return found


def test_every_valid_document_is_accepted() -> None:
    checked = documents.valid()
    assert {*checked.values()} == {"eval-v2", "targets-v2", "config-v2"}
    assert complaints(checked) == {}


def test_every_document_whose_shape_the_tool_refuses_is_refused() -> None:
    checked = documents.refused()
    expected = {documents.name(path) for path in checked} - documents.NOT_SEEN.keys()
    assert {*complaints(checked)} == expected, documents.HINT


def test_documents_that_no_schema_can_refuse_are_in_the_corpus() -> None:
    assert documents.NOT_SEEN.keys() <= {documents.name(path) for path in documents.refused()}


def test_a_mistake_is_blamed_on_the_kind_the_author_named() -> None:
    case = documents.CORPUS / "invalid" / "AV202-key-of-another-evaluator" / "eval.yaml"
    (complaint,) = complaints({case: "eval-v2"})[documents.name(case)]
    assert complaint.startswith("$.evalcases[0].evaluators[0]: ")
    assert "'script'" in complaint
