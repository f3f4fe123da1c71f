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


def test_case_without_a_reference_answer_is_unknown(project: Project) -> None:
    counts = {"name": "counts", "type": "code", "script": ["sh", "-c", "echo x >> runs; echo '{\"score\": 1}'"]}
    project.documents("greets", {"id": "waves", **says("Hello")}, "nods", targets=(ABSENT,), evaluators=[counts])
    done = project.eval("--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "\nunknown: 2 cases have no reference answer: greets, nods\n" in done.out
    assert "\n3 cases: 1 passed, 0 failed, 0 errors, 2 unknown\n" in done.out
    assert "errors:" not in done.out
    assert [(row["verdict"], row.get("error")) for row in project.rows()] == [
        ("error", "the case has no reference answer"),
        ("pass", None),
        ("error", "the case has no reference answer"),
    ]
    assert project.text("evals/runs") == "x\n" * 3
    assert project.run("report", "r.jsonl").out == done.out.partition("results:")[0]


def test_reference_answers_of_the_example_pass(project: Project) -> None:
    shutil.copytree(REPOSITORY / "docs/examples/simple", project.folder, dirs_exist_ok=True)
    assert "4 cases: 4 passed" in project.run("eval", "--dry-run").out
