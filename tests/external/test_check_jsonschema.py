"""The published schemas in check-jsonschema, which pre-commit hooks use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentv_ci.jsonschema.schemas import SchemaName
from tests.external import documents
from tests.external.tools import installed, run
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

OF_GITHUB = {
    "github-issue-forms": "ISSUE_TEMPLATE/[bop]*.yml",
    "github-issue-config": "ISSUE_TEMPLATE/config.yml",
    "dependabot": "dependabot.yml",
}


def errors_of(checked: Mapping[Path, SchemaName]) -> dict[str, str]:
    """Return the last error of documents that have any, by name."""
    found: dict[str, str] = {}
    for schema in sorted({*checked.values()}):
        paths = [path for path, named in checked.items() if named == schema]
        options = ["--output-format=json", f"--schemafile={documents.schema_file(schema)}"]
        report = json.loads(run([installed("check-jsonschema"), *options, *paths]).stdout)
        assert report.get("parse_errors", []) == []
        found |= {
            documents.name(Path(each["filename"])): f"{each['path']}: {each['message']}" for each in report["errors"]
        }
    return found


def test_only_valid_documents_are_accepted() -> None:
    assert {*documents.valid().values()} == {*documents.SCHEMAS.values()}
    assert errors_of(documents.valid()) == {}
    refused = {documents.name(path) for path in documents.refused()}
    assert documents.NOT_SEEN.keys() <= refused
    assert {*errors_of(documents.refused())} == refused - documents.NOT_SEEN.keys(), documents.HINT


def test_error_names_the_key_of_the_evaluators_type() -> None:
    case = documents.CORPUS / "invalid" / "AV202-key-of-another-evaluator" / "eval.yaml"
    error = errors_of({case: "eval-v2"})[documents.name(case)]
    assert error.startswith("$.evalcases[0].evaluators[0]: ")
    assert "'script'" in error


@pytest.mark.parametrize("schema", OF_GITHUB)
def test_forms_and_settings_of_github_are_valid(schema: str) -> None:
    paths = [*(REPOSITORY / ".github").glob(OF_GITHUB[schema])]
    assert paths
    run([installed("check-jsonschema"), f"--builtin-schema=vendor.{schema}", *paths], codes=(0,))
