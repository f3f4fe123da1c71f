"""Files are recognized as those of a tool, by `import` and by `validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.other_tools.imports.recognition import kind_of
from tests.support.projects import Project

CHECK = {"type": "contains", "value": "a"}
TEST = {"vars": {"input": "a"}, "assert": [CHECK]}
PROMPTED = {"prompts": ["{{ input }}"], "providers": ["openai:gpt-4o"]}
CASES: list[tuple[str, Any, str | None]] = [
    ("promptfooconfig.yaml", {"prompts": ["a"], "providers": ["echo"]}, "promptfoo"),
    ("evals.yaml", {"tests": [{"vars": {"a": 1}, "assert": []}]}, "promptfoo"),
    ("a.eval.yaml", {"tests": [{"id": "a", "input": "b", "criteria": "c"}]}, "agentv"),
    ("a.eval.yaml", {"tests": "cases.jsonl", "execution": {"target": "a"}}, "agentv"),
    ("a.eval.yaml", {"prompts": ["{{ input }}"], "target": "a", "tests": [{"vars": {"input": "b"}}]}, "agentv"),
    ("a.yaml", {"evalcases": []}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [{**TEST, "id": "a"}]}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [{**TEST, "assert": ["It greets the user"]}]}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [{**TEST, "assert": [{**CHECK, "negate": True}]}]}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [TEST], "default_test": {"vars": {}}}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [TEST], "environment": {"type": "host"}}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [TEST], "providers": ["local"]}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [TEST], "providers": {"id": "agentv:codex-cli"}}, "agentv"),
    ("a.yaml", {**PROMPTED, "tests": [TEST], "defaultTest": {"vars": {}}}, "promptfoo"),
    ("a.yaml", {**PROMPTED, "tests": [{**TEST, "assert": ["contains: a"]}]}, "promptfoo"),
    ("a.yaml", {**PROMPTED, "tests": [TEST], "providers": ["echo"]}, "promptfoo"),
    ("a.prompt.yml", {"messages": [], "testData": []}, "prompt-yml"),
    ("a.yaml", {"messages": [], "testData": []}, "prompt-yml"),
    ("a.json", [{"input": "a", "expected_output": "b"}], "deepeval"),
    ("a.yaml", {"services": {}}, None),
    ("a.json", [{"name": "a"}], None),
    ("a.json", [], None),
]
LINES = {
    "inspect": {"input": "a", "target": "b"},
    "openai-evals": {"input": [], "ideal": "b"},
    "deepeval": {"input": "a", "actual_output": "b"},
    "agentv": {"id": "a", "input": "b", "criteria": "c"},
}
OF_AGENTV_5 = {"id": "a", "vars": {"input": "b"}, "assert": ["Greets"]}


@pytest.mark.parametrize(("name", "data", "kind"), CASES)
def test_documents_are_recognized(name: str, data: Any, kind: str | None) -> None:
    assert kind_of(Path(name), data, "") == kind


@pytest.mark.parametrize(("kind", "row"), [*LINES.items(), ("agentv", OF_AGENTV_5)])
def test_lines_are_recognized(kind: str, row: Any) -> None:
    assert kind_of(Path("a.jsonl"), None, json.dumps(row) + "\n{}\n") == kind


@pytest.mark.parametrize("number", [0, 2, 6])
def test_validate_names_the_command(number: int, repository: Path) -> None:
    name, data, _ = CASES[number]
    project = Project(repository)
    project.write({name: json.dumps(data)})
    done = project.run("validate", ".")
    assert done.code == 1
    assert f"agentv-ci import {name} --out converted" in done.out
