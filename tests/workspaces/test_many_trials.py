"""Hundreds of trials at once leave no process, mount or folder behind, also when the run is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentv_ci.workspaces.leftovers import PREFIX
from tests.support.processes import commands
from tests.workspaces.builders import KINDS, Agent

TRIALS = 200
pytestmark = pytest.mark.slow


def processes(mark: str) -> list[str]:
    """Return the commands that have a mark, of processes that are alive."""
    return [command for command in commands().values() if mark in command]


@pytest.mark.parametrize("isolation", KINDS)
@pytest.mark.parametrize("is_killed", [False, True])
def test_nothing_is_left(agent: Agent, folders: Path, isolation: str, *, is_killed: bool) -> None:
    mark = f"many-{os.getpid()}-{isolation}-{is_killed}"
    left = f"setsid sh -c 'sleep 600' {mark} >/dev/null 2>&1 &"
    agent.documents(f"{left} mkdir a; echo x > a/b", {"type": "file", "path": "a/b"}, isolation=isolation)
    env = {**os.environ, **agent.project.env, "TMPDIR": str(folders)}
    command = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl", "--workers", "32", "-q"]
    with subprocess.Popen(
        [*command, "--repeat", str(TRIALS)], cwd=agent.project.folder, env=env, stdout=subprocess.DEVNULL
    ) as running:
        if is_killed:
            deadline = time.monotonic() + 60
            answers = "/".join([f"{PREFIX}*", "*", "work", "a", "b"])
            while len([*folders.glob(answers)]) < 8 and time.monotonic() < deadline:
                time.sleep(0.01)
            running.send_signal(signal.SIGKILL)
    if is_killed:
        assert [*folders.glob(f"{PREFIX}*")] != []
        agent.row("true")
    else:
        assert running.returncode == 0
        assert len(agent.project.rows()) == TRIALS
    assert list(folders.iterdir()) == []
    assert processes(mark) == []
    mounts = Path("/proc/mounts")
    assert not mounts.exists() or str(folders) not in mounts.read_text("utf-8")
