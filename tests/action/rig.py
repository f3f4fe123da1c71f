"""Run a workflow as GitHub does, without GitHub: nektos/act in host mode, with the double of the API.

act evaluates expressions, inputs, steps, the runner's files and workflow commands. It does not apply GitHub's limits,
which `steps.Step.shown` does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.action.events import pull_request
from tests.action.github_api import FakeGitHub
from tests.action.steps import Step, read_steps
from tests.support import ORDINARY, REPOSITORY, write

CHECKOUT: Mapping[str, Any] = {"uses": "actions/checkout@v4", "with": {"persist-credentials": False}}
ACTION = "org/agentv-action@v1"
SETUP = "org/agentv-action/.github/actions/setup@v1"
TOKEN = "ghs_token-of-the-rig-0815"

SIGNATURE = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")
PASSED_ON = ("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Variables of this machine that the job sees, besides PATH and pip's settings."""

INSTALLED = """\
import os
print("command={command}", file=open(os.environ["GITHUB_OUTPUT"], "a"))
"""
"""Replaces the action's installation: the command is installed already."""

DIRECT = f'exec "{sys.executable}" -I -m agentv_ci "$@"'
PIPED = f'set -o pipefail\n"{sys.executable}" -I -m agentv_ci "$@" 2>&1 | cat'
"""In act, steps write to a terminal; GitHub's runner reads a pipe."""

TOOL = """\
#!/bin/bash
if [ -z "${{RIG_CLEAN:-}}" ]; then
  # act gives composite actions their inputs as variables, too, the token with them; GitHub's runner does not.
  exec env {unset} RIG_CLEAN=yes "$0" "$@"
fi
{tool}
"""

SETUP_PYTHON = """\
name: setup-python
description: Returns an installed interpreter
inputs:
  python-version: {{description: which, required: true}}
  update-environment: {{description: whether it becomes the job's own, default: "true"}}
outputs:
  python-path: {{description: where, value: "${{{{ steps.found.outputs.path }}}}"}}
runs:
  using: composite
  steps:
    - id: found
      shell: bash
      env: {{OWN: "${{{{ inputs.update-environment }}}}"}}
      run: |
        test "$OWN" = false
        echo "path={python}" >> "$GITHUB_OUTPUT"
"""

KEEP = """\
folder=$(mktemp -d "$RIG_KEPT/XXXXXXXX")
cp -R "$GITHUB_WORKSPACE/." "$folder"
"""
"""The last step of a job: act deletes the workspace."""


def find_act() -> str | None:
    """Return the path of act: beside this interpreter, or on PATH."""
    return shutil.which("act", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a workflow."""

    ok: bool
    steps: Mapping[str, Step]
    """By the step's id; in a matrix by its values and the id: `gpt.agentv`."""
    workspaces: tuple[Path, ...]
    """A copy of each job's workspace at its end."""
    raw: str
    """The output of act."""
    github: FakeGitHub

    @property
    def workspace(self) -> Path:
        (only,) = self.workspaces
        return only

    @property
    def agentv(self) -> Step:
        return self.steps["agentv"]

    def file(self, name: str) -> str:
        """Return the text of a file in the workspace."""
        return (self.workspace / name).read_text("utf-8")

    def everything(self) -> dict[str, str]:
        """Return all texts that leave the job: place → text."""
        kept = {
            path.relative_to(workspace).as_posix(): path.read_text("utf-8", "replace")
            for workspace in self.workspaces
            for path in sorted(workspace.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(workspace).parts
        }
        sent = {f"call {number}": call.text for number, call in enumerate(self.github.calls)}
        return {"log": self.raw, **kept, **sent}


@dataclass(frozen=True, slots=True)
class Rig:
    """A user's repository, an action and a double of the API."""

    folder: Path
    files: Mapping[str, str]
    """The user's repository: path → text."""
    github: FakeGitHub = field(default_factory=FakeGitHub)
    event_name: str = "pull_request"
    actor: str = "ada"
    secrets: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables that the runner sets for every job."""
    installs: bool = False
    """Whether the action installs itself, as for users, instead of running `tool`."""
    programs: Path | None = None
    """A folder of more programs for the job's PATH."""
    tool: str = PIPED
    """The lines in Bash that run agentv-ci."""

    @property
    def user(self) -> Path:
        return self.folder / "user"

    @property
    def remote(self) -> Path:
        """What pushes and clones of the user's repository on GitHub reach, if it exists."""
        return self.folder / "remote.git"

    @property
    def head(self) -> str:
        return git(self.user, "rev-parse", "HEAD")

    def prepare(self) -> None:
        """Make the user's repository, and the action's."""
        write(self.user, self.files)
        git(self.user, "init", "-q", "-b", "main")
        git(self.user, "remote", "add", "origin", "https://github.com/acme/demo.git")
        self.save("start")
        _copy_action(self.folder / "action", None if self.installs else self.tool)
        write(self.folder / "python", {"action.yml": SETUP_PYTHON.format(python=sys.executable)})

    def save(self, message: str) -> None:
        """Commit all files of the user's repository."""
        git(self.user, "add", "-A")
        git(self.user, *SIGNATURE, "commit", "-q", "--allow-empty", "-m", message)

    def commit(self, message: str, *parents: str) -> str:
        """Add a commit that is on no branch to the user's repository, and return its hash."""
        before = [word for parent in parents for word in ("-p", parent)]
        return git(self.user, *SIGNATURE, "commit-tree", "HEAD^{tree}", *before, "-m", message)

    def run(self, job: Mapping[str, Any], event: Mapping[str, Any]) -> Outcome:
        """Run one job with an added step that keeps the workspace."""
        return self.start(yaml.safe_dump(_workflow(self.event_name, job), sort_keys=False), event)

    def start(self, workflow: str, event: Mapping[str, Any], others: Mapping[str, Path] | None = None) -> Outcome:
        """Run a workflow; `others` are more actions that it uses: `owner/name@version` → folder."""
        (self.folder / "kept").mkdir(exist_ok=True)
        write(self.folder, {"workflow.yml": workflow, "event.json": json.dumps(event), "secrets": self._secrets()})
        stubs = [word for name, path in (others or {}).items() for word in ("--local-repository", f"{name}={path}")]
        with self.github.running() as url:
            done = subprocess.run(
                [*self._command(url), *stubs],
                cwd=self.user,
                env=self._environment(),
                capture_output=True,
                timeout=300,
                check=False,
            )
        said = done.stdout.decode("utf-8", "replace")
        steps = read_steps(said)
        if not steps:
            raise RuntimeError(done.stderr.decode("utf-8", "replace")[-2_000:])
        kept = tuple(sorted((self.folder / "kept").iterdir()))
        return Outcome(done.returncode == 0, steps, kept, said, self.github)

    def _command(self, url: str) -> Sequence[str]:
        act = find_act()
        assert act
        action = (REPOSITORY / "action.yml").read_text("utf-8")
        (setup_python,) = re.findall(r"uses: (actions/setup-python@\S+)", action)
        options = {
            "--workflows": self.folder / "workflow.yml",
            "--platform": "ubuntu-latest=-self-hosted",
            "--eventpath": self.folder / "event.json",
            "--secret-file": self.folder / "secrets",
            "--actor": self.actor,
            "--action-cache-path": self.folder / "cache",
        }
        repositories = {ACTION: self.folder / "action", setup_python: self.folder / "python"}
        environment = {
            "GITHUB_API_URL": url,
            "GITHUB_GRAPHQL_URL": f"{url}/graphql",
            "RIG_KEPT": self.folder / "kept",
            "RIG_USER": self.user,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{self.remote}.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://github.com/acme/demo.git",
            **self.environ,
        }
        return [
            *ORDINARY,
            *(act, self.event_name, "--json", "--no-cache-server", "--action-offline-mode"),
            *(word for name, value in options.items() for word in (name, str(value))),
            *(word for name, path in repositories.items() for word in ("--local-repository", f"{name}={path}")),
            *(word for name, value in environment.items() for word in ("--env", f"{name}={value}")),
        ]

    def _environment(self) -> dict[str, str]:
        """Return the environment of act, which the job sees in host mode."""
        programs = [self.programs] if self.programs is not None else []
        path = os.pathsep.join(map(str, [*programs, Path(sys.executable).parent, os.environ["PATH"]]))
        kept = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("PIP_")}
        return {**kept, "PATH": path}

    def _secrets(self) -> str:
        return "".join(f"{name}='{value}'\n" for name, value in {"GITHUB_TOKEN": TOKEN, **self.secrets}.items())


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder."""
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def play(
    folder: Path,
    files: Mapping[str, str],
    *steps: Mapping[str, Any],
    event: Callable[[str], Mapping[str, Any]] = pull_request,
    job: Mapping[str, Any] | None = None,
    **rig: Any,
) -> Outcome:
    """Run steps after a checkout of the user's repository; `event` returns the payload for the head's hash."""
    prepared = Rig(folder, files, **rig)
    prepared.prepare()
    return prepared.run({**(job or {}), "steps": [CHECKOUT, *steps]}, event(prepared.head))


def uses(step_id: str = "agentv", *, env: Mapping[str, str] | None = None, **inputs: str) -> dict[str, Any]:
    """Return a step that runs the action and lets the job go on; keywords are inputs, with `_` for `-`."""
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    step: dict[str, Any] = {"id": step_id, "uses": ACTION, "continue-on-error": True, "with": given}
    return {**step, "env": dict(env)} if env else step


def _copy_action(folder: Path, tool: str | None) -> None:
    """Copy what the action needs from this repository: the whole package if `tool` is None."""
    package = ("pylock.toml", "agentv_ci", "schemas")
    for name in ("action.yml", ".github/actions", *(() if tool else package)):
        source, target = REPOSITORY / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    if tool:
        command = folder / "agentv-ci"
        inputs = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))["inputs"]
        unset = " ".join(f"-u INPUT_{name.upper()}" for name in inputs)
        command.write_text(TOOL.format(unset=unset, tool=tool), "utf-8")
        command.chmod(0o755)
        (folder / ".github/actions/install.py").write_text(INSTALLED.format(command=command), "utf-8")


def _workflow(event_name: str, job: Mapping[str, Any]) -> dict[str, Any]:
    keep = {"if": "always()", "shell": "bash", "run": KEEP}
    steps = [*job["steps"], keep]
    return {
        "name": "Evals",
        "on": [event_name],
        "permissions": {"contents": "read", "pull-requests": "write"},
        "jobs": {"evals": {"runs-on": "ubuntu-latest", **job, "steps": steps}},
    }
