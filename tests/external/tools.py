"""Programs of others that tests run; a test is skipped if its program is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

NODE_MODULES = "AGENTV_CI_NODE_MODULES"


def installed(name: str) -> str:
    """Return the path of a command that the extra `dev` installs."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    command = shutil.which(name, path=places)
    if command is None:
        pytest.skip(f"{name} is missing: python -m pip install -e '.[dev]'")
    return command


def node_modules(*packages: str) -> Path:
    """Return the folder with packages of npm, each given with its version."""
    folder = os.environ.get(NODE_MODULES)
    names = [package.rpartition("@")[0] for package in packages]
    if not folder or shutil.which("node") is None or not all(Path(folder, each).is_dir() for each in names):
        pytest.skip(f"{NODE_MODULES} must name a node_modules folder with: npm install --no-save {' '.join(packages)}")
    return Path(folder)


def run(
    command: Sequence[object],
    *,
    codes: Sequence[int] = (0, 1),
    given: str = "",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(each) for each in command],
        # Options of this test run, such as those of coverage, are not for the programs.
        env={**os.environ, "PYTEST_ADDOPTS": "", **(env or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done
