"""Prompt files of GitHub Models give the verdicts of `gh models eval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.support.projects import Project

FILE: dict[str, Any] = {
    "name": "reply",
    "model": "openai/gpt-4o",
    "messages": [{"role": "user", "content": "Reply to {{input}}"}],
    "testData": [{"input": "hello"}],
    "evaluators": [{"name": "hi", "string": {"contains": "HELLO"}}],
}


def imported(project: Project, **more: Any) -> dict[str, Any]:
    """Return the case of a prompt file, after checking that it is valid."""
    project.write({"a.prompt.yml": json.dumps({**FILE, **more})})
    assert project.run("import", "a.prompt.yml", "--out", "ours", "--overwrite").code == 0
    assert project.run("validate", "--strict", "ours").code == 0
    document: Any = parse_yaml(project.text("ours/reply.eval.yaml")).data
    case: dict[str, Any] = document["evalcases"][0]
    return case


@pytest.mark.parametrize(
    ("check", "answer", "passes"),
    [
        ({"contains": "HELLO"}, "Say hello", True),
        ({"startsWith": "SAY"}, "say hello", True),
        ({"endsWith": "{{input}}"}, "say HELLO", True),
        ({"endsWith": "hell"}, "say hello", False),
        ({"equals": "Hello"}, "hello", False),
        ({"equals": "Hello"}, "Hello", True),
        ({"startsWith": "no", "contains": "hello"}, "say hello", True),
        ({"contains": "no", "equals": "say hello"}, "say hello", True),
    ],
)
def test_checks_of_texts_ignore_case_and_the_first_key_counts(
    check: dict[str, str], answer: str, passes: bool, repository: Path
) -> None:
    project = Project(repository)
    imported(project, evaluators=[{"name": "c", "string": check}])
    target = {"name": "reply", "provider": "mock", "response": answer}
    project.write({"ours/targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": [target]})})
    assert project.run("eval", "ours").code == int(not passes)


@pytest.mark.parametrize(
    ("more", "skip"),
    [
        ({"testData": []}, "Not imported: testData is empty"),
        ({"testData": None}, "Not imported: testData is empty"),
        ({"evaluators": [{"name": "hi"}]}, "Not imported: an evaluator checks nothing"),
        ({"evaluators": [{"name": "hi", "string": {"contains": ""}}]}, "Not imported: an evaluator checks nothing"),
        ({"evaluators": FILE["evaluators"] * 2}, None),
        ({"evaluators": []}, None),
    ],
)
def test_files_that_lack_something_are_valid(more: dict[str, Any], skip: str | None, repository: Path) -> None:
    assert imported(Project(repository), **more).get("skip") == skip


def test_a_column_in_a_prompt_of_a_judge_fills_that_column(repository: Path) -> None:
    judge = {
        "prompt": "Does {{completion}} answer {{input}} as {{ expected }}, {{nobody}}?",
        "choices": [{"choice": "yes", "score": 1}, {"choice": "partly", "score": 0.5}, {"choice": "no", "score": 0}],
    }
    rows: list[dict[str, Any]] = [{"input": "a", "expected": 1}, {"input": "b"}]
    case = imported(Project(repository), testData=rows, evaluators=[{"name": "j", "llm": judge}])
    assert case["evaluators"][0]["llm_judge"].split("\n") == [
        "Does {{ candidate_answer }} answer {{input}} as {{ expected }}, {{nobody}}?",
        "The score of 'yes' is 1.",
        "The score of 'partly' is 1.",
        "The score of 'no' is 0.",
    ]
    filled = [{"nobody": "(nobody)", **rows[0]}, {"expected": "(expected)", "nobody": "(nobody)", "input": "b"}]
    assert case["vars"] == filled


def test_the_service_is_to_be_configured(repository: Path) -> None:
    project = Project(repository)
    imported(project)
    done = project.run("eval", "ours")
    assert (done.code, "MODELS_BASE_URL" in done.err) == (2, True)
    assert "GitHub Models ended on 30 July 2026" in project.text("ours/MIGRATION.md")
