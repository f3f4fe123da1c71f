"""A repository for cases with a workspace."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.workspaces.builders import PATH, Agent

collect_ignore = ["cheats"]
"""Agents, and the repository that they work in."""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, in which runs have theirs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def agent(repository: Path, folders: Path) -> Agent:
    """An agent in a repository with a folder `shop`."""
    project = Project(repository, {"PATH": PATH, "HOME": str(folders.parent), "SECRET_PLAN": "canary-7"})
    files = {"shop/total.py": "total = 0\n", "shop/notes.md": "Notes\n", "graders/check.sh": "cat shop/total.py\n"}
    project.write(files)
    return Agent(project)
