"""Cases whose agent is a shell command in a workspace, and what their rows say."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.workspaces.isolation import Means, means_of
from tests.support.projects import Project

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
NAMESPACES: Means = asyncio.run(means_of("namespaces", {"PATH": PATH}))
isolated = pytest.mark.skipif(NAMESPACES.problem is not None, reason=f"needs namespaces: {NAMESPACES.problem}")
KINDS = ["none", pytest.param("namespaces", marks=isolated)]
"""Each kind of isolation that needs no engine."""
CONFINED: dict[str, Any] = {"isolation": "namespaces", "network": "off"}
CHANGED = {"type": "diff"}


@dataclass(slots=True)
class Agent:
    """Runs one case in a repository of its own."""

    project: Project

    def documents(
        self, command: str, *evaluators: dict[str, Any], targets: dict[str, Any] | None = None, **workspace: Any
    ) -> None:
        """Write the case and its target."""
        target = {"name": "default", "provider": "cli", "command_template": command, "prompt": "none"}
        case = {"id": "case", "evaluators": list(evaluators or (CHANGED,))}
        self.project.documents(case, targets=({**target, **(targets or {})},), workspace=workspace, max_retries=0)

    def row(self, command: str, *evaluators: dict[str, Any], **given: Any) -> dict[str, Any]:
        """Run a command in a workspace, and return its row."""
        self.documents(command, *evaluators, **given)
        done = self.project.eval()
        assert done.code in (0, 1, 4), done
        (row,) = self.project.rows()
        return row

    def says(self, command: str, **given: Any) -> str:
        """Return what a command prints in a workspace."""
        row = self.row(f"({command}) 2>&1; true", **given)
        assert row["error"] is None, row["error"]
        answer: str = row["candidate_answer"]
        return answer
