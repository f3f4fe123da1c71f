"""The worked example: ten repositories with a bug each, and an agent that fixes eight."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.projects import Project
from tests.workspaces.builders import KINDS, PATH


@pytest.mark.slow
@pytest.mark.parametrize("isolation", KINDS)
def test_eight_of_ten_bugs_are_fixed(repository: Path, isolation: str) -> None:
    shutil.copytree(REPOSITORY / "docs/examples/coding", repository / "docs/examples/coding")
    project = Project(repository, {"PATH": PATH})
    evals = "docs/examples/coding/evals/coding.test.yaml"
    project.write({evals: project.text(evals).replace("isolation: none", f"isolation: {isolation}")})
    done = project.run("eval", evals, "--out", "r.jsonl")
    assert done.code == 0, done
    failed = {row["eval_id"] for row in project.rows() if row["verdict"] != "pass"}
    assert failed == {"merge", "roman"}
    assert {row["workspace"]["isolation"] for row in project.rows()} == {isolation}
