"""The action installs itself, and imports nothing from the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.evals import mock, suite
from tests.action.rig import Outcome, play, uses

pytestmark = [pytest.mark.act, pytest.mark.slow]

PLANTED = (
    "argparse",
    "json",
    "subprocess",
    "venv",
    "pip",
    "click",
    "pydantic",
    "hatchling",
    "sitecustomize",
    "agentv_ci",
)
"""Modules that a pull request adds where Python looks first."""
TRAP = """\
import pathlib
pathlib.Path("{folder}", "pwned-{name}").touch()
raise SystemExit("imported {name}")
"""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    pytest.importorskip("pip", reason="pip is missing: python -m ensurepip")

    def scenario(folder: Path) -> Outcome:
        trapped = {f"{name}.py": TRAP.format(folder=folder, name=name) for name in PLANTED}
        files = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock(), **trapped}
        env = {"PYTHONPATH": ".:${{ github.workspace }}", "PYTHONSTARTUP": "json.py"}
        return play(folder, files, uses(env=env), installs=True)

    return once("install", scenario)


def test_action_installs_itself_and_runs(outcome: Outcome) -> None:
    step = outcome.agentv
    assert (step.result, step.outputs["verdict"]) == ("success", "pass"), "\n".join(step.log)
    assert step.inner["install.command"].endswith("/bin/agentv-ci")
    assert outcome.github.violations == []


def test_nothing_in_the_workspace_is_imported(outcome: Outcome) -> None:
    assert "imported" not in "\n".join(outcome.agentv.log)
    assert list(outcome.workspace.parent.parent.glob("pwned-*")) == []
