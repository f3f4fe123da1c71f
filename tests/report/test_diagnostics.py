"""Diagnostics for GitHub, for code scanning, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.jsonschema.violations import violations
from tests.report.standards import sarif_violations
from tests.support import run_command, write

HEAD = "$schema: agentv-eval-v2\nevalcases:\n"
ROLE = """\
  - id: greets
    expected_outcome: A greeting
    input_messages: [{role: usr, content: Hello}]
    expected_messages: []
"""
NUMBER = ROLE.replace("greets", "'asks, and: more'").replace("[{role: usr, content: Hello}]", "5")
ROLES = "expected system, user, assistant, tool"


@pytest.fixture
def documents(repository: Path) -> Path:
    """A repository with two errors in an eval file and a warning in a targets file."""
    targets = "targets:\n  - {name: default, provider: mock}\n"
    write(repository, {"evals/a b%.yaml": HEAD + ROLE + NUMBER, "targets.yaml": targets})
    return repository


def validated(repository: Path, form: str) -> str:
    files = ("a b%.yaml", "../targets.yaml")
    return run_command("validate", *files, "--format", form, cwd=repository / "evals").out


def sarif(repository: Path) -> Any:
    return json.loads(validated(repository, "sarif"))


def test_json_follows_its_schema(documents: Path) -> None:
    written = json.loads(validated(documents, "json"))
    assert violations("diagnostics-v1", written) == []
    assert written["summary"] == {"files": 2, "passed": 1, "failed": 1, "skipped": 0, "errors": 2, "warnings": 1}
    paths = [str(documents / name) for name in ("evals/a b%.yaml", "targets.yaml")]
    assert [file["path"] for file in written["files"]] == paths


def test_github_gets_a_command_per_diagnostic_errors_first(documents: Path) -> None:
    assert validated(documents, "github").splitlines()[:-1] == [
        (
            "::error file=evals/a b%25.yaml,line=5,endLine=5,col=29,endColumn=32,title=AV205 invalid-role::"
            f"unknown role 'usr'; {ROLES} (greets)"
        ),
        (
            "::error file=evals/a b%25.yaml,line=9,endLine=9,col=21,endColumn=22,title=AV203 wrong-type::"
            "'input_messages' must be a string or a list, not 5 (asks, and: more)"
        ),
        (
            "::warning file=targets.yaml,line=1,endLine=1,col=1,endColumn=1,title=AV102 missing-schema::"
            "$schema is missing; read as 'agentv-targets-v2.2'"
        ),
    ]


def test_github_gets_no_columns_for_several_lines_and_no_command_from_a_document(tmp_path: Path) -> None:
    role = '"a\\n::set-output name=x::y"'
    case = ROLE.replace("usr", role).replace("[{role", "\n      - {role").replace("}]", "}")
    write(tmp_path, {"x.yaml": f"{HEAD}{case}    note:\n      - a\n      - b\n"})
    first, second, *_ = run_command("validate", "x.yaml", "--format", "github", cwd=tmp_path).out.splitlines()
    assert first.endswith(f"unknown role 'a%0A: :set-output name=x::y'; {ROLES} (greets)")
    assert second.startswith("::error file=x.yaml,line=9,endLine=10,title=AV203 wrong-type::'note' must be a string")


def test_sarif_follows_the_standard(documents: Path) -> None:
    assert sarif_violations(sarif(documents)) == []
    assert sarif_violations({"version": "2.1.0", "runs": [{}]})


def test_sarif_has_rule_level_place_and_pointer(documents: Path) -> None:
    (log_run,) = sarif(documents)["runs"]
    first, *others = log_run["results"]
    assert [each["level"] for each in (first, *others)] == ["error", "error", "warning"]
    assert log_run["tool"]["driver"]["rules"][first["ruleIndex"]] == {
        "id": "AV205",
        "name": "InvalidRole",
        "shortDescription": {"text": "A role that is not system, user, assistant or tool."},
        "defaultConfiguration": {"level": "error"},
    }
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "evals/a%20b%25.yaml"},
                "region": {"startLine": 5, "startColumn": 29, "endLine": 5, "endColumn": 32},
            },
            "logicalLocations": [{"fullyQualifiedName": "evalcases[0].input_messages[0].role"}],
        }
    ]


def test_fingerprints_do_not_depend_on_places(documents: Path) -> None:
    def fingerprints() -> set[str]:
        return {each["partialFingerprints"]["agentvCi/v1"] for each in sarif(documents)["runs"][0]["results"]}

    before = fingerprints()
    write(documents, {"evals/a b%.yaml": f"# a comment\n{HEAD}{NUMBER}{ROLE}"})
    assert fingerprints() == before
    assert len(before) == 3


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_no_documents(form: str, tmp_path: Path) -> None:
    done = run_command("validate", ".", "--format", form, cwd=tmp_path)
    assert done.code == 3
    assert isinstance(json.loads(done.out), dict)
