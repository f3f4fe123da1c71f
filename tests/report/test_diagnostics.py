"""What other programs read: for GitHub, for code scanning, and our own JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from agentv_ci.jsonschema.violations import violations
from tests.report.standards import what_sarif_forbids
from tests.support import write

TARGETS = "$schema: agentv-targets-v2.2\ntargets:\n  - {name: default, provider: mock}\n"
GREETS = """\
  - id: greets
    expected_outcome: A greeting
    input_messages: [{role: usr, content: Hello}]
    expected_messages: []
"""
ASKS = (
    GREETS.replace("greets", "asks, and: more")
    .replace("[{role: usr, content: Hello}]", "5")
    .replace("id: ", "id: '")
    .replace("more\n", "more'\n")
)
HEAD = "$schema: agentv-eval-v2\nevalcases:\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"evals/a b%.yaml": HEAD + GREETS + ASKS, "targets.yaml": TARGETS.split("\n", 1)[1]})
    monkeypatch.chdir(tmp_path / "evals")
    return tmp_path


def validate(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    run(["validate", "a b%.yaml", "../targets.yaml", *arguments])
    return capsys.readouterr().out


def sarif(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(validate(capsys, "--format", "sarif"))


def test_json_is_what_its_schema_says(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = json.loads(validate(capsys, "--format", "json"))
    assert violations("diagnostics-v1", written) == []
    assert written["summary"] == {"files": 2, "passed": 1, "failed": 1, "skipped": 0, "errors": 2, "warnings": 1}
    assert [file["path"] for file in written["files"]] == [
        str(repository / "evals/a b%.yaml"),
        str(repository / "targets.yaml"),
    ]


def test_github_gets_a_command_per_diagnostic_errors_first(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(capsys, "../targets.yaml", "--format", "github").splitlines() == [
        (
            "::error file=evals/a b%25.yaml,line=5,endLine=5,col=29,endColumn=32,title=AV205 invalid-role::"
            "unknown role 'usr'; expected system, user, assistant, tool (greets)"
        ),
        (
            "::error file=evals/a b%25.yaml,line=9,endLine=9,col=21,endColumn=22,title=AV203 wrong-type::"
            "'input_messages' must be a list, not 5 (asks, and: more)"
        ),
        (
            "::warning file=targets.yaml,line=1,endLine=1,col=1,endColumn=1,title=AV102 missing-schema::"
            "$schema is missing; read as 'agentv-targets-v2.2'"
        ),
        "2 files checked, 1 passed, 1 failed, 2 errors, 1 warning",
    ]


def test_github_gets_no_columns_for_several_lines_and_no_command_from_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = GREETS.replace("usr", '"a\\n::set-output name=x::y"').replace("[{role", "\n      - {role").replace("}]", "}")
    write(tmp_path, {"x.yaml": HEAD + case + "    note:\n      - a\n      - b\n"})
    monkeypatch.chdir(tmp_path)
    run(["validate", "x.yaml", "--format", "github"])
    first, second, *_ = capsys.readouterr().out.splitlines()
    roles = "expected system, user, assistant, tool"
    assert first.endswith(f"unknown role 'a%0A: :set-output name=x::y'; {roles} (greets)")
    assert second.startswith("::error file=x.yaml,line=9,endLine=10,title=AV203 wrong-type::'note' must be a string")


def test_sarif_is_what_the_standard_says(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert what_sarif_forbids(sarif(capsys)) == []
    assert what_sarif_forbids({"version": "2.1.0", "runs": [{}]}), "the schema refuses what is wrong"


def test_sarif_says_rule_level_place_and_pointer(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log_run,) = sarif(capsys)["runs"]
    rules = log_run["tool"]["driver"]["rules"]
    first, second, third = log_run["results"]
    assert [each["level"] for each in (first, second, third)] == ["error", "error", "warning"]
    assert rules[first["ruleIndex"]] == {
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


def fingerprints(log: Any) -> list[str]:
    return [each["partialFingerprints"]["agentvCi/v1"] for each in log["runs"][0]["results"]]


def test_fingerprints_stay_when_cases_move_and_differ_between_mistakes(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = fingerprints(sarif(capsys))
    write(repository, {"evals/a b%.yaml": "# a line more\n" + HEAD + ASKS + GREETS})
    assert sorted(fingerprints(sarif(capsys))) == sorted(before)
    assert len(set(before)) == 3


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_nothing_to_check_is_a_document_too(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["validate", ".", "--format", form]) == 3
    assert isinstance(json.loads(capsys.readouterr().out), dict)
