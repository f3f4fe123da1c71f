"""Outcomes of answers that no agent gives now: stored ones, those of dry runs, and replayed ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workspaces.builders import Agent, isolated

FIXED = {"name": "fixed", "type": "command", "argv": ["sh", "total.sh"], "equals": "42"}
CHANGED = {"name": "changed", "type": "diff"}
FILES = {"total.sh": "echo 41\n"}
FIXES = "echo 'echo 42' > total.sh; chmod +x total.sh; ln -s total.sh link; printf '\\000' > binary"


def rescored(agent: Agent, code: int = 0) -> dict[str, Any]:
    """Score the last answer again."""
    done = agent.project.run("rescore", "r.jsonl", "--out", "again.jsonl")
    assert done.code == code, done
    (row,) = agent.project.rows("again.jsonl")
    return {**row, "warnings": done.err}


def test_changes_in_the_row_are_graded_again(agent: Agent) -> None:
    row = agent.row(FIXES, FIXED, files=FILES)
    assert row["verdict"] == "pass"
    strict = {**FIXED, "equals": "43"}
    modes = {"type": "file", "path": "total.sh", "mode": "755"}
    agent.documents("exit 1", strict, modes, {"type": "file", "path": "binary"}, {"type": "diff"}, files=FILES)
    again = rescored(agent)
    assert [each["score"] for each in again["evaluator_results"]] == [0.5, 1, 1, 1]
    assert again["workspace"] == row["workspace"]


@pytest.mark.parametrize(
    ("command", "why"),
    [("head -c 70000 /dev/zero > big", "64 KiB"), ("echo s3cret-value-1 > a", "secrets")],
)
def test_changes_that_are_not_in_the_row_are_an_error_of_each_evaluator(agent: Agent, command: str, why: str) -> None:
    agent.project.env["DEPLOY_TOKEN"] = "s3cret-value-1"
    said = {"name": "said", "type": "contains", "value": "done"}
    row = agent.row(f"{command}; echo done", said, CHANGED, files=FILES)
    assert (row["verdict"], row["workspace"]["changes"]) == ("pass", None)
    again = rescored(agent, 4)
    assert [each["status"] for each in again["evaluator_results"]] == ["ok", "error"]
    assert why in again["evaluator_results"][1]["reasoning"]
    assert "1 row does not hold what the agent left behind" in again["warnings"]


def test_paths_in_rows_do_not_leave_the_workspace(agent: Agent) -> None:
    row = agent.row("touch new", FIXED, files=FILES)
    row["workspace"]["changes"][0]["path"] = "../../escaped"
    agent.project.write({"r.jsonl": json.dumps(row) + "\n"})
    done = agent.project.run("rescore", "r.jsonl", "--out", "again.jsonl")
    assert (done.code, "workspace.changes" in done.err) == (2, True), done


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"path": ".git/config"}, "'.git/config' cannot be a change of an agent"),
        ({"path": "a/.git/hooks/post-checkout"}, "cannot be a change of an agent"),
        ({"path": "a/__pycache__/a.pyc"}, "cannot be a change of an agent"),
        ({"path": "a\0b"}, "cannot be a change of an agent"),
        ({"link": "a\0b", "base64": None}, "cannot be a change of an agent"),
        ({"base64": "A"}, "it is not base64"),
        ({"kind": "modified"}, None),
        ({"kind": "deleted", "base64": None}, None),
    ],
)
def test_recorded_changes_are_those_of_an_agent(changed: dict[str, Any], error: str | None, agent: Agent) -> None:
    """Also where the author gives graders whatever has changed."""
    at: dict[str, Any] = {"files": FILES, "submit_guarded": ["**"]}
    row = agent.row("echo new > new", FIXED, **at)
    agent.documents("echo new > new", {**FIXED, "equals": "41"}, {**CHANGED, "max_lines": 9}, **at)
    row["workspace"]["changes"][0].update(changed)
    agent.project.write({"r.jsonl": json.dumps(row) + "\n"})
    again = rescored(agent, 0 if error is None else 4)
    assert (error or "") in str(again["evaluator_results"])
    assert {each["status"] for each in again["evaluator_results"]} == {"ok" if error is None else "error"}


@isolated
@pytest.mark.parametrize("command", [("rescore", "r.jsonl"), ("eval", "evals", "--replay", "kept")])
def test_graders_of_stored_answers_are_confined_as_asked(agent: Agent, command: tuple[str, ...]) -> None:
    agent.documents("true", {**FIXED, "equals": "41"}, files=FILES, isolation="namespaces")
    assert agent.project.run("eval", "evals", "--out", "r.jsonl", "--record", "kept").code == 0
    agent.project.env["PATH"] = "/nonexistent"
    agent.project.refuses(*command, "--out", "x.jsonl", error="isolation 'namespaces' is not available here")


def dry_run(agent: Agent, *evaluators: dict[str, Any]) -> str:
    agent.documents("exit 1", *evaluators, files=FILES)
    text = agent.project.text("evals/x.yaml").replace('"expected_messages": []', '"expected_messages": "done"')
    agent.project.write({"evals/x.yaml": text})
    done = agent.project.eval("--dry-run")
    assert (done.code, done.err) == (0, ""), done
    return done.out


def test_dry_run_says_what_it_cannot_score(agent: Agent) -> None:
    said = {"name": "said", "type": "contains", "value": "done"}
    out = dry_run(agent, said, CHANGED)
    assert "1 case: 1 passed" in out
    assert "not scored in a dry run: changed (diff)" in out
    for only in ([CHANGED], [said, {**CHANGED, "required": True}]):
        out = dry_run(agent, *only)
        assert "1 case: 0 passed, 0 failed, 0 errors, 1 unknown" in out
        assert "unknown: 1 case is judged by what an agent leaves behind: case" in out
