"""`eval --dry-run`: the reference answers are scored, and nothing leaves the machine."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import pytest

from tests.support import REPOSITORY
from tests.support.projects import Project

ABSENT = {
    "name": "default",
    "provider": "openai",
    "model": "m",
    "base_url": "http://127.0.0.1:1",
    "extra_body": {"tools": []},
}
CALLS = [{"tool": "search", "input": {"q": "refund"}}, {"tool": "reply"}]
TOOLS = {"name": "tools", "type": "tool_trajectory", "mode": "exact", "expected": CALLS}
SEES_CALLS = (
    "import json, sys; print(json.dumps({'score': len(json.load(sys.stdin)['output_messages'][0]['tool_calls']) / 2}))"
)


def says(*contents: Any, **given: Any) -> dict[str, Any]:
    """Expected messages of the assistant; the last one may call tools."""
    messages = [{"role": "assistant", "content": content} for content in contents]
    return {"expected_messages": [*messages[:-1], {**messages[-1], **given}]}


@pytest.mark.parametrize(
    ("case", "evaluator", "verdict"),
    [
        (says("Hello"), {"type": "equals", "value": "Hello"}, "pass"),
        (says("Hello"), {"type": "contains", "value": "Bye"}, "fail"),
        (says("One moment", "Hello"), {"type": "equals", "value": "Hello"}, "pass"),
        (says({"refund": True}), {"type": "schema", "schema_inline": {"required": ["refund"]}}, "pass"),
        (says({"a": 1}), {"type": "field_accuracy", "fields": [{"path": "a", "match": "exact"}]}, "pass"),
        (says("Hello"), {"type": "similarity", "metric": "levenshtein"}, "pass"),
        (says([{"type": "file", "value": "answer.md"}]), {"type": "equals", "value": "From a file"}, "pass"),
        (says("Done", tool_calls=CALLS), TOOLS, "pass"),
        (says("Done", tool_calls=CALLS[:1]), TOOLS, "fail"),
        (says("Done"), TOOLS, "fail"),
        ({"expected_messages": [{"role": "assistant", "tool_calls": CALLS}]}, TOOLS, "pass"),
        (says("Done", tool_calls=CALLS), {"type": "code", "script": [sys.executable, "-c", SEES_CALLS]}, "pass"),
        (says("Hello"), {"type": "llm_judge"}, "pass"),
    ],
)
def test_reference_answer_is_scored(
    case: dict[str, Any], evaluator: dict[str, Any], verdict: str, project: Project
) -> None:
    project.write({"evals/answer.md": "From a file"})
    project.documents({**case, "evaluators": [{"name": "e", **evaluator}]}, targets=(ABSENT,))
    done = project.eval("--dry-run")
    (row,) = project.rows()
    assert (done.code, done.err, row["verdict"], row["provider"]) == (0, "", verdict, "mock"), row
    assert done.out.startswith("dry run: reference answers were scored")
    assert "gate: not applied to a dry run" in done.out


def test_case_without_a_reference_answer_gets_the_predefined_answer(project: Project) -> None:
    polite = {"name": "polite", "type": "rubric", "rubrics": ["Is polite"]}
    counts = {"name": "counts", "type": "code", "script": ["sh", "-c", "echo x >> runs; echo '{\"score\": 1}'"]}
    says_hello = {"name": "says", "type": "contains", "value": "Hello"}
    project.documents(
        {"id": "greets", "evaluators": [polite, counts]},
        {"id": "waves", **says("Hello"), "evaluators": [says_hello]},
        {"id": "nods", "evaluators": [says_hello]},
        targets=(ABSENT,),
    )
    done = project.eval("--dry-run")
    assert done.code == 0
    note = "2 cases without a reference answer: the predefined answer of the mock is scored (greets, nods)"
    assert done.err == f"{note}\n"
    assert "\n3 cases: 2 passed, 1 failed, 0 errors\n" in done.out
    greets, waves, nods = project.rows()
    assert [row["verdict"] for row in (greets, waves, nods)] == ["pass", "pass", "fail"]
    assert [each["status"] for each in greets["evaluator_results"]] == ["ok", "ok"]
    assert "nothing was asked" in greets["candidate_answer"] == nods["candidate_answer"]
    assert project.text("evals/runs") == "x\n"
    assert project.run("report", "r.jsonl").out == done.out.partition("results:")[0]


def test_reference_answers_of_the_example_pass(project: Project) -> None:
    shutil.copytree(REPOSITORY / "docs/examples/simple", project.folder, dirs_exist_ok=True)
    assert "4 cases: 4 passed" in project.run("eval", "--dry-run").out
