"""Fixtures of the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.projects import Project


@pytest.fixture
def project(repository: Path) -> Project:
    """An empty repository in which commands run."""
    return Project(repository)
