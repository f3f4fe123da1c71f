"""The real agents in workspaces: their tools change files, which are graded, under each isolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.peers.builders import BIN, GEMINI_SETTINGS, Peer, each_peer
from tests.servers import model_api as served
from tests.servers.model_api import model_api
from tests.support.projects import Project
from tests.workspaces.builders import KINDS, PATH

ACTS: dict[str, dict[str, Any]] = {
    "claude": {"args": ["--allowedTools", "Bash"]},
    "gemini": {"workspace": {"files": {".gemini/settings.json": GEMINI_SETTINGS}}},
}
"""What lets an agent act without asking, or without settings in HOME."""


@pytest.mark.parametrize("isolation", KINDS)
@each_peer
def test_agent_changes_its_workspace(peer: Peer, isolation: str, repository: Path) -> None:
    project = Project(repository, {"PATH": PATH, "HOME": str(repository)})
    with model_api(served.calls_tool("echo 42 > answer.txt; ls $AGENTV_REPOSITORY")) as api:
        target = {"name": "default", "executable": str(BIN / peer.program), **peer.settings(api.url)}
        target |= ACTS.get(peer.program, {})
        case = {"id": "case", "evaluators": [{"type": "file", "path": "answer.txt", "equals": "42"}]}
        project.documents(case, targets=(target,), workspace={"isolation": isolation}, max_retries=0)
        done = project.eval("--agent-timeout", "60", "--verbose")
        (row,) = project.rows()
    assert (done.code, row["error"], row["workspace"]["changed"]) == (0, None, ["answer.txt"]), done
