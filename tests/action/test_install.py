"""The action installs itself, and imports nothing from the workspace."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import yaml

from tests.action.conftest import Once
from tests.action.evals import mock, suite
from tests.action.rig import Outcome, play, uses
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

PLANTED = (
    *("argparse", "json", "subprocess", "tomllib", "venv", "pip", "click", "pydantic"),
    *("sitecustomize", "agentv_ci"),
)
"""Modules that a pull request adds where Python looks first."""
TRAP = """\
import pathlib
pathlib.Path("{folder}", "pwned-{name}").touch()
raise SystemExit("imported {name}")
"""
BREAKING = {
    "PIP_TARGET": "elsewhere",
    "PIP_PREFIX": "elsewhere",
    "PIP_USER": "1",
    "PIP_DRY_RUN": "1",
    "PIP_CONSTRAINT": "none.txt",
    "PIP_REQUIREMENT": "none.txt",
}
"""Settings of the job for pip that would break the installation."""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    pytest.importorskip("pip", reason="pip is missing: python -m ensurepip")

    def scenario(folder: Path) -> Outcome:
        trapped = {f"{name}.py": TRAP.format(folder=folder, name=name) for name in PLANTED}
        files = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock(), **trapped}
        env = {"PYTHONPATH": ".:${{ github.workspace }}", "PYTHONSTARTUP": "json.py", **BREAKING}
        broken = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_RETRIES": "0", "AGENTV_CI_INSTALLED": ""}
        again = uses("again", results_dir="again", python_path=sys.executable)
        steps = (uses(env=env), again, uses("broken", env=broken))
        return play(folder, files, *steps, installs=True)

    return once("install", scenario)


@pytest.mark.act
@pytest.mark.parametrize("use", ["agentv", "again"])
def test_action_installs_itself_and_runs(outcome: Outcome, use: str) -> None:
    step = outcome.steps[use]
    assert (step.result, step.outputs["verdict"]) == ("success", "pass"), "\n".join(step.log)
    assert step.inner["install.command"].endswith("/bin/agentv-ci")
    assert outcome.github.violations == []


@pytest.mark.act
def test_job_installs_once(outcome: Outcome) -> None:
    """But every use has a command of its own, by which its results are known."""
    first, second = (outcome.steps[name].inner for name in ("agentv", "again"))
    assert first["install.folder"] == second["install.folder"]
    assert first["install.command"] != second["install.command"]


@pytest.mark.act
def test_installation_that_fails_is_an_error(outcome: Outcome) -> None:
    step = outcome.steps["broken"]
    assert (step.result, step.outputs["verdict"]) == ("failure", "error")
    assert [each.title for each in step.annotations] == ["agentv-ci"]
    assert step.annotations[0].message.startswith("cannot install agentv-ci: ")


@pytest.mark.act
def test_nothing_in_the_workspace_is_imported(outcome: Outcome) -> None:
    assert "imported" not in "\n".join(outcome.agentv.log)
    assert list(outcome.workspace.parent.parent.glob("pwned-*")) == []


def installed(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the installer, as a step with these variables does."""
    runner = {"RUNNER_TEMP": str(folder), "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_ENV": str(folder / "env")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    command = [sys.executable, "-I", "-S", str(REPOSITORY / ".github/actions/install.py")]
    return subprocess.run(command, env=kept | runner | env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("env", "way"),
    [
        ({"PIP_CONFIG_FILE": os.devnull}, ""),
        ({"PIP_INDEX_URL": "https://pypi.org/simple/"}, "installing with pip: the job has its own package index\n"),
        (
            {"PIP_CONFIG_FILE": os.devnull, "HTTPS_PROXY": "http://127.0.0.1:1", "PIP_RETRIES": "0"},
            "cannot install agentv-ci",
        ),
    ],
    ids=["wheels", "own index", "no network"],
)
def test_ways_to_install(tmp_path: Path, env: dict[str, str], way: str) -> None:
    pytest.importorskip("pip", reason="pip is missing: python -m ensurepip")
    done = installed(tmp_path, **env)
    assert (way in done.stdout) if way else (done.stdout, done.stderr) == ("", "")
    if "cannot" not in way:
        assert done.returncode == 0, done.stderr
        ((command,), _) = (
            re.findall(rf"^{name}=(.*)$", (tmp_path / "output").read_text(), re.MULTILINE)
            for name in ("command", "folder")
        )
        shown = subprocess.run([command, "schema", "plan-v1"], capture_output=True, text=True, check=True)
        assert shown.stdout.startswith("{")


def test_changed_environment_is_not_used_again(tmp_path: Path) -> None:
    pytest.importorskip("pip", reason="pip is missing: python -m ensurepip")
    assert installed(tmp_path, PIP_CONFIG_FILE=os.devnull).returncode == 0
    name, _, value = (tmp_path / "env").read_text().strip().partition("=")
    assert installed(tmp_path, **{name: value}).returncode == 0
    (module,) = tmp_path.glob("*/venv/lib/*/site-packages/six.py")
    module.chmod(0o644)
    module.chmod(0o444)
    assert installed(tmp_path, **{name: value, "PIP_CONFIG_FILE": os.devnull}).returncode == 0
    first, same, other = re.findall("^folder=(.*)$", (tmp_path / "output").read_text(), re.MULTILINE)
    assert first == same != other


def test_nothing_that_agents_installed_runs_in_a_later_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start files of a Python's packages name no program for the step with the token."""
    venv.create(tmp_path / "python", symlinks=True)
    (packages,) = (tmp_path / "python").glob("lib/*/site-packages")
    (packages / "agent.pth").write_text(f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'ran').touch()\n")
    for action in ("action.yml", ".github/actions/setup/action.yml"):
        (flags,) = re.findall(r'exec "\$PYTHON" (.*) "\$GITHUB_ACTION_PATH', (REPOSITORY / action).read_text())
        subprocess.run([str(tmp_path / "python/bin/python"), *flags.split(), "-c", ""], check=True)
    assert not (tmp_path / "ran").exists()
    installer = runpy.run_path(str(REPOSITORY / ".github/actions/install.py"))
    monkeypatch.setenv("AGENTV_CI_INSTALLED", "x")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / name))
    with pytest.raises(OSError, match="was changed"):
        installer["pip_of_python"]()
    wheel = tmp_path / "stdlib/ensurepip/_bundled/pip-1.whl"
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    assert installer["pip_of_python"]() == wheel


def test_action_refuses_to_start_what_agents_may_have_changed(tmp_path: Path) -> None:
    (tmp_path / "agentv-ci.unsafe").touch()
    script = next(
        step["run"]
        for step in yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))["runs"]["steps"]
        if step.get("id") == "install"
    )
    env = {"PYTHON": "/bin/true", "RUNNER_TEMP": str(tmp_path), "PATH": "/usr/bin:/bin", "GITHUB_ACTION_PATH": "/"}
    done = subprocess.run(["bash", "-e", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, "use another job" in done.stdout) == (1, True)
