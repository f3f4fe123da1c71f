"""Agents that try to reach the token, or to run code, in the step that publishes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.evals import agent, suite
from tests.action.rig import DIRECT, Outcome, play, uses

pytestmark = [pytest.mark.act, pytest.mark.slow]

STAYS = """\
import os, pathlib, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), output)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environ = (process / "environ").read_bytes()
            except OSError:
                continue
            if b"GITHUB_TOKEN=ghs_" in environ and os.environ["GITHUB_WORKSPACE"].encode() in environ:
                pathlib.Path("token.txt").write_text("found")
                os._exit(0)
        time.sleep(0.02)
    os._exit(0)
os.wait()
"""
"""Leaves its session and searches the processes of later steps."""
POISONS = """\
import os, pathlib
pathlib.Path("evil.sh").write_text(f"touch {os.getcwd()}/ran")
pathlib.Path("evil").mkdir()
for name in ("sh", "env"):
    pathlib.Path("evil", name).write_text(f"#!/bin/bash -p\\ntouch {os.getcwd()}/ran")
    pathlib.Path("evil", name).chmod(0o755)
# Where act keeps the runner's files.
for name, line in (("envs.txt", f"BASH_ENV={os.getcwd()}/evil.sh"), ("pathcmd.txt", f"{os.getcwd()}/evil")):
    for path in pathlib.Path(os.environ["GITHUB_WORKSPACE"]).parent.rglob(name):
        path.write_text(line + "\\n")
        path.chmod(0o444)
        pathlib.Path("poisoned").touch()
"""
KILLS = """\
import os, pathlib, signal
process = os.getppid()
while "act" != (name := pathlib.Path(f"/proc/{process}/comm").read_text().strip()):
    parent = int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    if name.startswith("python"):
        os.kill(process, signal.SIGKILL)
    process = parent
"""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        agents = {"stays": STAYS, "poisons": POISONS, "kills": STAYS + POISONS + KILLS}
        files: dict[str, str] = {}
        for name, program in agents.items():
            files[f"{name}/evals/a.test.yaml"] = suite(name)
            files[f"{name}/targets.yaml"] = agent(f"python3 {name}.py")
            files[f"{name}/{name}.py"] = f"print('yes', flush=True)\n{program}"
        steps = [uses(name, working_directory=name, comment_key=name) for name in agents]
        return play(folder, files, *steps, tool=DIRECT)

    return once("attacks", scenario)


def test_agent_does_not_outlive_its_step(outcome: Outcome) -> None:
    assert outcome.steps["stays"].outputs["verdict"] == "pass"
    assert not (outcome.workspace / "stays/token.txt").exists()


def test_agent_runs_no_code_in_the_next_step(outcome: Outcome) -> None:
    assert outcome.steps["poisons"].outputs["verdict"] == "pass"
    assert (outcome.workspace / "poisons/poisoned").exists()
    assert not (outcome.workspace / "poisons/ran").exists()


def test_killed_tool_takes_the_token_from_the_next_step(outcome: Outcome) -> None:
    """That step runs the agent's code then."""
    step = outcome.steps["kills"]
    assert (step.result, step.outputs["verdict"]) == ("failure", "error")
    assert (outcome.workspace / "kills/poisoned").exists()
    assert not (outcome.workspace / "kills/token.txt").exists()
    assert [call.body["body"].splitlines()[0] for call in outcome.github.writes()] == [
        f"<!-- agentv-ci:Evals/{name} -->" for name in ("stays", "poisons")
    ]
