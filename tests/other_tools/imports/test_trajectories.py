"""Checks of tool calls and skills score an agent as promptfoo and AgentV do."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from agentv_ci.contracts.other_tools import ReadImports
from agentv_ci.contracts.results import ToolCall
from agentv_ci.other_tools.imports.agentv_checks import tool_calls
from agentv_ci.other_tools.imports.draft import Draft
from tests.evaluate.builders import answered, assess, evaluator
from tests.support import REPOSITORY

USED, MATCH = "trajectory:tool-used", "trajectory:tool-args-match"
SEQUENCE, COUNT = "trajectory:tool-sequence", "trajectory:step-count"
TWO = [("search", {"q": "a", "deep": {"x": 1, "y": [1, 2]}}), ("open_file", {"path": "skills/csv/SKILL.md"})]
SHELL = [("shell", {"command": "cat skills/csv/SKILL.md"})]
SKILL = [("Skill", {"skill": "csv"}), ("Skill", {"skill": "pdf"})]


@pytest.mark.parametrize(
    ("kind", "value", "calls", "holds"),
    [
        (USED, "search", TWO, True),
        (USED, ["SEARCH", "open_*"], TWO, True),
        (USED, ["search", "close"], TWO, False),
        (USED, {"name": "search", "min": 2}, TWO, False),
        (USED, {"pattern": "*", "max": 1}, TWO, False),
        (USED, {"name": "search", "max": 0, "min": 0}, [], True),
        (USED, "sh*", SHELL, True),
        (SEQUENCE, ["search", "open_file"], TWO, True),
        (SEQUENCE, ["open_file", "search"], TWO, False),
        (SEQUENCE, {"steps": ["open_file"], "mode": "exact"}, TWO, False),
        (SEQUENCE, {"steps": [{"name": "search"}, "open_????"], "mode": "exact"}, TWO, True),
        (MATCH, {"name": "search", "args": {"q": "a"}}, TWO, True),
        (MATCH, {"name": "search", "args": {"q": "a"}, "mode": "exact"}, TWO, False),
        (MATCH, {"name": "search", "args": {"deep": {"y": [1]}}}, TWO, False),
        (MATCH, {"name": "search", "arguments": {"q": "a", "deep": {"y": [1, 2]}}}, TWO, True),
        (MATCH, {"name": "search", "args": {"q": "a"}, "mode": "exact", "ignore": "d*"}, TWO, True),
        (MATCH, {"name": "open_file", "args": {}, "mode": "exact", "defaults": TWO[1][1]}, TWO, True),
        (COUNT, {"type": "tool", "max": 1}, TWO, False),
        (COUNT, {"type": "tool", "pattern": "open*", "min": 1, "max": 1}, TWO, True),
        ("skill-used", "csv", TWO, True),
        ("skill-used", "csv", SHELL, True),
        ("skill-used", ["csv", "pdf"], SKILL, True),
        ("skill-used", ["csv", "xls"], SKILL, False),
        ("skill-used", "cs*", SKILL, False),
        ("skill-used", {"pattern": "*", "min": 3}, SKILL, False),
        ("skill-used", {"name": "csv", "max": 1}, SKILL, True),
        ("skill-used", {"name": "csv"}, SKILL, True),
        ("skill-used", {"pattern": "x*"}, SKILL, False),
    ],
)
@pytest.mark.parametrize("negated", [False, True])
def test_checks_score_calls(kind: str, value: Any, calls: Any, holds: bool, negated: bool, tmp_path: Path) -> None:
    made = tool_calls(Draft(cast("ReadImports", None), tmp_path, tmp_path), kind, value, negated=negated)
    if negated and kind == "skill-used" and isinstance(value, dict) and value.keys() & {"min", "max"}:
        return  # promptfoo and AgentV refuse it
    assert made is not None
    assert _score(made, calls) == _expected(kind, value, holds, negated)


def _expected(kind: str, value: Any, holds: bool, negated: bool) -> int:
    """Return the score: of a list that must not be used, no name may be."""
    some_are_used = kind in {USED, "skill-used"} and isinstance(value, list) and not holds
    return int(holds != negated and not (negated and some_are_used))


def _score(made: dict[str, Any], calls: list[tuple[str, Any]]) -> float | None:
    if "code" not in made:
        listed = [ToolCall(tool=tool, input=arguments) for tool, arguments in calls]
        settings = {key: value for key, value in made.items() if key != "type"}
        result = assess(evaluator(made["type"], **settings), answered("a", *listed, has_trace=True))
        return result.score
    messages = [{"role": "assistant", "tool_calls": [{"tool": tool, "input": given} for tool, given in calls]}]
    given = {"config": made["config"], "has_trace": True, "output_messages": messages, "candidate_answer": "a"}
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing")
    script = [node, REPOSITORY / "agentv_ci/other_tools/imports" / made["code"]]
    done = subprocess.run(script, input=json.dumps(given), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["score"])


@pytest.mark.parametrize("value", [{"min": 1}, {"type": "message", "max": 2}, {"type": ["tool"], "min": 1}])
def test_counts_of_other_steps_are_none(value: Any, tmp_path: Path) -> None:
    assert tool_calls(Draft(cast("ReadImports", None), tmp_path, tmp_path), COUNT, value, negated=False) is None
