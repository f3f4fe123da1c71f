"""What is compiled and not run yet is refused before anything is asked; it is never skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from tests.conftest import write

MOCK = {"name": "default", "provider": "mock", "response": "Hi"}
CASE = {
    "id": "greets",
    "expected_outcome": "x",
    "input_messages": [{"role": "user", "content": "x"}],
    "expected_messages": [],
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "value-of-the-key")
    return tmp_path


def documents(folder: Path, *, case: dict[str, Any], target: dict[str, Any] = MOCK, **document: Any) -> None:
    judge = {"name": "judge", "provider": "mock"}
    evals = {"$schema": "agentv-eval-v2", "evalcases": [CASE | case], **document}
    targets = {"$schema": "agentv-targets-v2.2", "targets": [target | {"judge_target": "judge"}, judge]}
    write(folder, {"x.yaml": json.dumps(evals), "targets.yaml": json.dumps(targets)})


@pytest.mark.parametrize(
    ("case", "document", "what"),
    [
        ({"execution": {"repeat": {"max": 3, "stop_when": "decided"}}}, {}, "case 'greets': 'stop_when'"),
        ({}, {"execution": {"validators": ["outlier_detection"]}}, "x.yaml: 'validators'"),
    ],
)
def test_setting_is_refused(
    case: dict[str, Any], document: dict[str, Any], what: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(repository, case=case, **document)
    assert run(["validate", "x.yaml"]) == 0
    assert run(["eval", "x.yaml", "--out", "rows.jsonl"]) == 2
    assert f"{what}: agentv-ci compiles this and does not run it yet" in capsys.readouterr().err
