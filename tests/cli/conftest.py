"""Fixtures of the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.action import events
from tests.cli.builders import GREETS, PASSES, Job
from tests.github.workflows import HEAD
from tests.support.evals import KEY
from tests.support.projects import Project


@pytest.fixture
def project(repository: Path) -> Project:
    """An empty repository in which commands run."""
    return Project(repository, {"MOCK_KEY": KEY})


@pytest.fixture
def job(repository: Path) -> Job:
    """A job for a pull request of the same repository, whose one case passes."""
    job = Job(repository)
    job.documents(GREETS, targets=(PASSES,))
    job.on("pull_request", events.pull_request(HEAD))
    return job
