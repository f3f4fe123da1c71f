"""Commands do the same with plans that are compressed in memory."""

from __future__ import annotations

import re
from unittest import mock

import pytest

from agentv_ci.contracts import packed_cases
from tests.support.projects import GREETS, HELLO, Project

COMMANDS = [
    ("compile", "plan.json", "--out", "out"),
    ("compile", "plan.json", "--eval-id", "c", "--out", "out"),
    ("compile", "plan.json", "--diff", "plan.json"),
    ("compile", "plan.json", "--estimate"),
    ("compile", "plan.json", "--list"),
    ("eval", "plan.json", "--repeat", "2", "--seed", "7"),
    ("eval", "plan.json", "--fail-fast"),
    ("eval", "plan.json", "--eval-id", "b", "--eval-id", "[cd]"),
    ("eval", "plan.json", "--shard", "2/2"),
    ("eval", "plan.json", "--failed", "first.jsonl"),
    ("eval", "plan.json", "--resume", "part.jsonl", "--workers", "3"),
    ("eval", "plan.json", "--only-changed", "plan.json"),
    ("eval", "plan.json", "--baseline", "first.jsonl"),
    ("eval", ".", "--threshold", "0.5"),
    ("rescore", "first.jsonl", "plan.json"),
    ("shards", "plan.json", "--max", "2"),
    ("prove", "plan.json"),
]


@pytest.fixture
def documents(project: Project) -> None:
    wrong = {"type": "equals", "value": "Goodbye", "name": "no"}
    project.documents(
        {"id": "a", "execution": {"repeat": {"max": 3, "stop_when": "decided"}}},
        "b",
        {"id": "c", "execution": {"evaluators": [wrong]}},
        {"id": "d", "skip": "Later"},
        *"efg",
        evaluators=[HELLO],
        targets=({**GREETS, "name": "default"},),
    )
    for command in (
        ("compile", ".", "--out", "plan.json"),
        ("eval", "plan.json", "--out", "first.jsonl"),
        ("eval", "plan.json", "--eval-id", "[ab]", "--out", "part.jsonl"),
    ):
        assert project.run(*command).code in (0, 1)


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands(project: Project, command: tuple[str, ...]) -> None:
    part = project.text("part.jsonl")
    few = project.run(*command)
    project.write({"part.jsonl": part})
    with mock.patch.multiple(packed_cases, MANY=0, BLOCK=2):
        many = project.run(*command)
    assert (many.code, _steady(many.out), _steady(many.err)) == (few.code, _steady(few.out), _steady(few.err))


def _steady(text: str) -> str:
    text = re.sub(r"20\d{6}T\d{6}_\d{6}Z|\d+\.\d s\b", "<time>", text)
    return re.sub(r"^time: .*(\n  .*)*", "", text, flags=re.MULTILINE)
