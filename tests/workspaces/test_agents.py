"""Agents on the command line work in workspaces, and read the files of the question there."""

from __future__ import annotations

import json

import pytest

from agentv_ci.base import process
from tests.execute.agents.builders import events, script
from tests.workspaces.builders import KINDS, Agent

STREAMS = {"codex": "codex", "claude-code": "claude", "copilot-cli": "copilot", "gemini-cli": "gemini"}
BODY = """
import os, pathlib, re, sys
asked = sys.stdin.read()
(path,) = re.findall(r"\\(file://([^)]*notes.md)\\)", asked)
pathlib.Path("done.txt").write_text(pathlib.Path(path).read_text() + os.environ["OWN_KEY"])
print({events!r})
"""


@pytest.mark.parametrize("isolation", KINDS)
@pytest.mark.parametrize("provider", STREAMS)
def test_agent_works_in_a_workspace(agent: Agent, provider: str, isolation: str) -> None:
    stream = "\n".join(map(json.dumps, events(STREAMS[provider], "Done.")))
    program = script(agent.project.path("tools/agent"), BODY.format(events=stream))
    target = {"name": "default", "provider": provider, "executable": program, "env": {"OWN_KEY": "key"}}
    content = [{"type": "text", "value": "Copy the notes."}, {"type": "file", "value": "../shop/notes.md"}]
    case = {
        "id": "case",
        "input_messages": [{"role": "user", "content": content}],
        "evaluators": [
            {"type": "file", "path": "done.txt", "equals": "Notes\nkey"},
            {"type": "diff", "may_change": ["done.txt"]},
        ],
    }
    agent.project.documents(case, targets=(target,), workspace={"isolation": isolation}, max_retries=0)
    done = agent.project.eval()
    (row,) = agent.project.rows()
    assert (done.code, row["candidate_answer"], row["error"]) == (0, "Done.", None), row


HANGS = """
import pathlib, subprocess, sys, time
sys.stdin.read()
pathlib.Path("done.txt").write_text("done")
subprocess.Popen(["sleep", "60"])
print({events!r}, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("isolation", KINDS)
def test_agent_that_does_not_end_after_its_answer_is_ended(
    agent: Agent, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DONE_GRACE_S", 0.2)
    stream = "\n".join(map(json.dumps, events("claude", "Done.", total_cost_usd=0.05)))
    program = script(agent.project.path("tools/agent"), HANGS.format(events=stream))
    target = {"name": "default", "provider": "claude-code", "executable": program, "timeout_seconds": 30}
    case = {"id": "case", "evaluators": [{"type": "file", "path": "done.txt", "equals": "done"}]}
    agent.project.documents(case, targets=(target,), workspace={"isolation": isolation}, max_retries=0)
    done = agent.project.eval()
    (row,) = agent.project.rows()
    assert (done.code, row["candidate_answer"], row["error"], row["cost_usd"]) == (0, "Done.", None, 0.05), row
    assert row["duration_ms"] < 20_000
