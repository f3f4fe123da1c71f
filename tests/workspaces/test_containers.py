"""Workspaces in containers of podman, from an image that is made of programs of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.workspaces.builders import Agent

IMAGE = "localhost/agentv-ci-test:1"
PROGRAMS = ("sh", "cat", "env", "grep", "id", "ls", "mkdir", "setsid", "sleep", "touch")
CONFINED: dict[str, Any] = {"isolation": "container", "image": IMAGE}
pytestmark = pytest.mark.slow


def settings(folder: Path) -> Mapping[str, str]:
    """Return the environment of an engine with images of its own, which raises no limits: that needs more rights."""
    storage = f'[storage]\ndriver = "vfs"\nrunroot = "{folder}/run"\ngraphroot = "{folder}/images"\n'
    engine = f'runtime = "{"runc" if which("runc") else "crun"}"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
    (folder / "storage.conf").write_text(storage, "utf-8")
    (folder / "containers.conf").write_text(
        f'[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n[engine]\n{engine}', "utf-8"
    )
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CONTAINERS_CONF": f"{folder}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
    }


def write_image(path: Path) -> None:
    """Write an image with a few programs and their libraries."""
    programs = [str(Path(found).resolve()) for name in PROGRAMS if (found := which(name))]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    libraries = {*re.findall(r"(?:=> |^\s)(/\S+) \(", listed, re.MULTILINE)}
    with tarfile.open(path, "w") as image:
        for name in ("tmp", "proc", "dev", "sys", "etc"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            image.addfile(folder)
        for name in PROGRAMS:
            image.add(Path(which(name) or "").resolve(), f"bin/{name}")
        for each in sorted(libraries):
            image.add(Path(each).resolve(), each.lstrip("/"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Mapping[str, str]]:
    """The environment of an engine that has the image.

    Its folder is not one of pytest's: podman waits 20 seconds for each container whose sockets have too long a path.
    """
    if which("podman") is None:
        pytest.skip("podman is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield with_image(Path(folder))


def with_image(folder: Path) -> Mapping[str, str]:
    """Return the environment of an engine that keeps the image in a folder, and has run it."""
    env = settings(folder)
    write_image(folder / "image.tar")
    asked = ("--rm", "--init", "--memory", "64m", "--pids-limit", "20", IMAGE, "/bin/sh", "-c", ":")
    for command in (("import", folder / "image.tar", IMAGE), ("run", *asked)):
        done = subprocess.run(["podman", *command], env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"podman does not run here: {done.stderr.strip().splitlines()[-1]}")
    return env


def containers(engine: Mapping[str, str]) -> list[str]:
    """Return the containers of an engine, also those that have ended."""
    done = subprocess.run(["podman", "ps", "--all", "--quiet"], env=engine, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture
def contained(agent: Agent, engine: Mapping[str, str]) -> Agent:
    """An agent on a machine with that engine."""
    agent.project.env |= engine
    return agent


def test_agent_and_grader_run_in_the_image(contained: Agent, engine: Mapping[str, str]) -> None:
    row = contained.row(
        "env | grep -v ^HOSTNAME > env.txt; echo total = 42 > total.py; ls / > root.txt; echo Done",
        {"type": "command", "argv": ["cat", "total.py"], "equals": "total = 42"},
        {"type": "command", "name": "net", "argv": ["grep", "-c", ":", "/proc/net/dev"], "equals": "1"},
        {"type": "diff", "may_change": ["*.py", "*.txt"]},
        targets={"env": {"OWN_KEY": "s3cret-of-the-target"}},
        **CONFINED,
        **{"from": "../shop"},
    )
    assert (row["verdict"], row["workspace"]["isolation"]) == ("pass", "container"), row
    assert row["workspace"]["changed"] == ["env.txt", "root.txt", "total.py"]
    assert containers(engine) == []


def test_environment_is_that_of_the_image_and_the_target(contained: Agent) -> None:
    said = contained.says("env; ls -a $HOME $TMPDIR", targets={"env": {"OWN": "mine"}}, **CONFINED)
    names = {line.partition("=")[0] for line in said.splitlines() if "=" in line}
    assert {"AGENTV_REPOSITORY", "HOME", "OWN", "PATH", "TMPDIR"} <= names
    assert not names & {"CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "SECRET_PLAN"}
    assert "PATH=/usr/local/sbin" in said


def test_limits_and_rights(contained: Agent) -> None:
    said = contained.says(
        "grep -e CapEff -e NoNewPrivs /proc/self/status; ls /home; ls $AGENTV_REPOSITORY",
        network="off",
        limits={"memory_mb": 256, "processes": 20},
        **CONFINED,
    )
    assert "CapEff:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    assert "'/home': No such file or directory" in said
    assert "shop" not in said


@pytest.mark.parametrize(
    ("limits", "command", "says"),
    [
        ({"processes": 10}, "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; wait", "fork"),
        ({"disk_mb": 5}, "cat /dev/zero > big", "5 MiB"),
    ],
)
def test_limits_end_a_trial(contained: Agent, limits: dict[str, Any], command: str, says: str) -> None:
    row = contained.row(command, limits=limits, **CONFINED)
    assert (row["error_kind"], says in row["error"]) == ("process", True), row["error"]


def test_nothing_outlives_a_trial(contained: Agent, engine: Mapping[str, str], tmp_path: Path) -> None:
    mark = f"detached-{tmp_path.name}"
    row = contained.row(f"setsid sleep 600 {mark} & echo x > left", {"type": "file", "path": "left"}, **CONFINED)
    assert row["verdict"] == "pass", row
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert mark not in listed
    assert containers(engine) == []


def test_trial_that_takes_too_long_is_ended(contained: Agent, engine: Mapping[str, str]) -> None:
    contained.documents("sleep 600", **CONFINED)
    done = contained.project.eval("--agent-timeout", "3")
    (row,) = contained.project.rows()
    assert (done.code, row["error_kind"]) == (4, "timeout"), row
    assert containers(engine) == []


def test_killed_run_leaves_nothing_after_the_next(contained: Agent, engine: Mapping[str, str], folders: Path) -> None:
    contained.documents("echo started > $HOME/started; sleep 600", **CONFINED)
    env = {**contained.project.env, "TMPDIR": str(folders)}
    command = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl"]
    with subprocess.Popen(command, cwd=contained.project.folder, env=env, stderr=subprocess.DEVNULL) as killed:
        deadline = time.monotonic() + 30
        while not [*folders.glob("*/*/home/started")] and time.monotonic() < deadline:
            time.sleep(0.05)
        killed.kill()
    assert len(containers(engine)) == 1
    contained.row("true", **CONFINED)
    assert containers(engine) == []
    assert list(folders.iterdir()) == []
