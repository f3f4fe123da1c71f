"""What is compiled and not run yet is refused before anything is asked; it is never skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from tests.conftest import write
from tests.guards.test_families import CHECKED_ONLY

MOCK = {"name": "default", "provider": "mock", "response": "Hi"}
CASE = {
    "id": "greets",
    "expected_outcome": "x",
    "input_messages": [{"role": "user", "content": "x"}],
    "expected_messages": [],
}
EVALUATORS: dict[str, dict[str, Any]] = {
    "rubric": {"rubrics": ["Is kind"]},
    "composite": {"evaluators": [{"name": "m", "type": "contains", "value": "x"}]},
    **{kind: {"value": ["x"]} for kind in ("contains_any", "contains_all")},
    **{kind: {"value": "x"} for kind in ("equals", "starts_with", "ends_with")},
    "is_json": {},
    "field_accuracy": {"fields": [{"path": "a"}]},
    "similarity": {"metric": "bleu"},
    "latency": {"max_ms": 1},
    "cost": {"max_usd": 1},
    "token_usage": {"max_total": 1},
    "tool_calls": {"max": 1},
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


def test_every_kind_that_is_only_checked_is_tried_here() -> None:
    assert {*EVALUATORS} == CHECKED_ONLY


@pytest.mark.parametrize("kind", EVALUATORS)
def test_evaluator_is_refused(kind: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(repository, case={"evaluators": [{"name": "e", "type": kind, **EVALUATORS[kind]}]})
    assert run(["validate", "x.yaml"]) == 0
    assert run(["compile", "x.yaml", "--out", "plan.json"]) == 0
    for dry_run in ((), ("--dry-run",)):
        assert run(["eval", "plan.json", "--out", "rows.jsonl", *dry_run]) == 2
        wanted = f"x.yaml:1: case 'greets': evaluator 'e' of type '{kind}': agentv-ci compiles this and does not run it"
        assert wanted in capsys.readouterr().err
    assert not (repository / "rows.jsonl").exists()


@pytest.mark.parametrize(
    ("case", "document", "what"),
    [
        ({"rubrics": ["Is kind"]}, {}, "evaluator 'rubrics' of type 'rubric'"),
        ({"evaluators": [{"name": "j", "type": "llm_judge", "rubrics": ["x"]}]}, {}, "'rubrics' of evaluator 'j'"),
        ({"execution": {"repeat": {"max": 3, "stop_when": "decided"}}}, {}, "case 'greets': 'stop_when'"),
        ({}, {"execution": {"validators": ["outlier_detection"]}}, "x.yaml: 'validators'"),
        ({}, {"execution": {"gate": {"max_cost_usd": 1}}}, "x.yaml: 'max_cost_usd'"),
    ],
)
def test_setting_is_refused(
    case: dict[str, Any], document: dict[str, Any], what: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(repository, case=case, **document)
    assert run(["validate", "x.yaml"]) == 0
    assert run(["eval", "x.yaml", "--out", "rows.jsonl"]) == 2
    assert f"{what}: agentv-ci compiles this and does not run it yet" in capsys.readouterr().err
