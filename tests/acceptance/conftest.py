"""The repository that scenarios begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.builders import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one case and no targets yet."""
    repository = Repository(tmp_path)
    repository.write({".git/config": ""})
    repository.cases("one")
    return repository
