"""Each way to confine a command, and what a container is started with."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentv_ci.base.process import run
from agentv_ci.workspaces.isolation import Box, Means, means_of
from agentv_ci.workspaces.programs import Hidden, installation, needed_by, packages_of, program_of, toolchains
from tests.support import write
from tests.workspaces.builders import CONFINED, PATH, Agent, isolated

LOOKS = (
    "cat /proc/self/status | grep -E '^(CapEff|NoNewPrivs)'; ls /proc | grep -c '^[0-9]'; ls {hidden} 2>&1; "
    "touch {seen}/x 2>&1; echo written > {tree}/out; touch /usr/x 2>&1; "
    "for each in / /dev /dev/shm /tmp; do touch $each/x 2>&1 && echo wrote $each; done; "
    "for each in $(find /proc -maxdepth 1 -type f -perm /u+w) /proc/sys/kernel/core_pattern; do "
    "(: >> $each) 2>/dev/null && echo wrote $each; done; grep -c : /proc/net/dev; "
    "mount -t tmpfs x /tmp 2>&1 | head -n 1"
)


@isolated
@pytest.mark.parametrize("backend", ["bubblewrap", "unshare"])
async def test_namespaces_give_the_same_with_either_backend(backend: str, tmp_path: Path) -> None:
    if backend == "bubblewrap" and (await means_of("namespaces", os.environ)).backend != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    write(tmp_path, {"tree/a": "", "seen/b": "", "hidden/c": ""})
    for name in ("root", "shared/tmp", "shared/shm"):
        (tmp_path / name).mkdir(parents=True)
    tree, seen, hidden = (tmp_path / name for name in ("tree", "seen", "hidden"))
    means = Means("namespaces", backend)  # type: ignore[arg-type]
    root, shared = tmp_path / "root", tmp_path / "shared"
    box = Box(means, network=False, writable=(tree,), visible=(seen,), root=root, shared=shared)
    env = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C"}
    looks = LOOKS.format(hidden=hidden, seen=seen, tree=tree)
    ended = await run(box.confined(("sh", "-c", looks), env, tree), cwd=tmp_path, env=env, timeout_s=20)
    lines = ended.stdout.splitlines()
    assert ended.stderr == ""
    assert {"CapEff:\t0000000000000000", "NoNewPrivs:\t1"} <= {*lines}
    assert int(lines[2]) < 8
    assert f"ls: cannot access '{hidden}': No such file or directory" in lines
    assert f"touch: cannot touch '{seen}/x': Read-only file system" in lines
    assert "touch: cannot touch '/usr/x': Read-only file system" in lines
    assert [each for each in lines if each.startswith("wrote ")] == ["wrote /dev/shm", "wrote /tmp"]
    assert sorted(each.name for each in shared.rglob("x")) == ["x", "x"]
    assert lines[-2] == "1"
    assert "denied" in lines[-1] or "must be superuser" in lines[-1] or "not permitted" in lines[-1]
    assert (tree / "out").read_text() == "written\n"
    assert list((tmp_path / "root").iterdir()) == []


KEYS = """
import ctypes, sys
add, search, session = 248, 10, -3
call = ctypes.CDLL(None).syscall
key = (b"user", b"agentv-ci:test")
if sys.argv[1] == "add":
    print(call(add, *key, b"notes", 5, session) > 0)
else:
    print(call(250, search, session, *key, 0) > 0)
"""
"""Adds a key to the session's, or looks for it; numbers of x86-64 (syscalls(2), keyctl(2))."""


@isolated
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of system calls are those of x86-64")
def test_keys_of_the_session_are_not_there(agent: Agent) -> None:
    run_again = [sys.executable, "-c", KEYS]
    if subprocess.run([*run_again, "add"], capture_output=True, check=True).stdout != b"True\n":
        pytest.skip("this kernel has no keys")
    agent.project.write({"keys.py": KEYS})
    keys = f'{shlex.quote(sys.executable)} "$AGENTV_REPOSITORY/keys.py"'
    targets = {"sources": ["keys.py"]}
    said = agent.says(f"{keys} search; {keys} add; {keys} search", targets=targets, **CONFINED)
    assert said.split() == ["False", "True", "True"]
    assert agent.says(f"{keys} search", targets=targets, **CONFINED) == "False"


@isolated
@pytest.mark.parametrize("name", ["sub", "with space", "back\\slash", "100%", "deep/er"])
@pytest.mark.parametrize("backend", ["bubblewrap", "unshare"])
async def test_what_is_mounted_below_visible_folders_is_read_only(backend: str, name: str, tmp_path: Path) -> None:
    if backend == "bubblewrap" and (await means_of("namespaces", os.environ)).backend != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    place = tmp_path / "seen" / name
    for folder in (place, *(tmp_path / each for each in ("tree", "root", "shared/tmp", "shared/shm"))):
        folder.mkdir(parents=True)
    means = Means("namespaces", backend)  # type: ignore[arg-type]
    tree, seen, root, shared = (tmp_path / each for each in ("tree", "seen", "root", "shared"))
    box = Box(means, network=False, writable=(tree,), visible=(seen, place), root=root, shared=shared)
    env = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C"}
    mounts = 'mount -t tmpfs -o noexec,mode=777 t "$1"; shift; exec "$@"'
    before = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c", mounts, "sh", str(place))
    writes = ("sh", "-c", 'touch "$0/x" 2>&1; echo tried', str(place))
    ended = await run((*before, *box.confined(writes, env, tree)), cwd=tmp_path, env=env, timeout_s=20)
    assert (ended.stdout, ended.stderr) == (f"touch: cannot touch '{place}/x': Read-only file system\ntried\n", "")


@isolated
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])  # of the trial
def test_shared_folders_of_a_trial_count_against_its_limits(folder: str, agent: Agent) -> None:
    command = f"for n in 1 2 3 4; do head -c 15000000 /dev/zero > {folder}/$n; done; sleep 5"
    row = agent.row(command, **CONFINED, limits={"disk_mb": 20})
    assert row["error"] == "the command exceeded the limit of 20 MiB on disk"


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("tool/bin", "tool"),
        (".local/bin", ".local/bin"),
        (".venv/bin", ".venv"),
        (".pyenv/shims", ".pyenv"),
        ("x", "x"),
    ],
)
def test_installation_of_a_folder_of_path(tmp_path: Path, folder: str, found: str) -> None:
    write(tmp_path, {f"{folder}/python": "", ".venv/pyvenv.cfg": ""})
    assert list(installation(tmp_path / folder, Hidden(Path("/nowhere")))) == [tmp_path / found]


def test_packages_of_npm_are_there_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path, {"lib/node_modules/a/cli.js": "", "lib/node_modules/b/node_modules/c/x.js": "", "bin/tool": ""})
    packages = tmp_path / "lib/node_modules"
    link = tmp_path / "bin" / "a"
    link.symlink_to(packages / "a/cli.js")
    assert packages_of(packages / "b/node_modules/c/x.js") == [packages]
    assert packages_of(tmp_path / "bin/tool") == []
    assert program_of(str(link)) == str(packages / "a/cli.js")
    assert [program_of(each) for each in (str(tmp_path / "bin/tool"), "python3")] == [f"{tmp_path}/bin/tool", "python3"]


def test_installation_never_shows_what_is_hidden(tmp_path: Path) -> None:
    write(tmp_path, {"bin/tool": "", "repository/x": ""})
    assert list(installation(tmp_path / "bin", Hidden(tmp_path / "repository"))) == [tmp_path / "bin"]
    assert list(installation(tmp_path, Hidden(tmp_path / "repository"))) == []


@pytest.mark.parametrize(
    ("source", "program", "seen"),
    [
        ("evals/bin/agent.sh", None, ["evals/bin/agent.sh"]),
        ("evals/agent", None, ["evals/agent", "evals/bin/agent.sh"]),
        (None, "evals/bin/agent.sh", ["evals/bin", "evals/bin/agent.sh"]),
        (None, ".venv/bin/python", [".venv", ".venv/bin/python"]),
        (None, "env/bin/python", ["env", "env/bin/python"]),
        (None, "../home/bin/agent", ["../home/bin", "../home/bin/agent"]),
        (None, "../home/tool/bin/agent", ["../home/tool", "../home/tool/bin/agent"]),
    ],
)
def test_programs_and_sources_show_nothing_beside_them(
    source: str | None, program: str | None, seen: list[str], tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    files = ("evals/bin/agent.sh", "evals/hidden.txt", ".venv/pyvenv.cfg", ".venv/bin/python", "env/bin/python")
    write(repository, dict.fromkeys((*files, "env/conda-meta/history"), ""))
    write(tmp_path, {"home/bin/agent": "", "home/tool/bin/agent": ""})
    (repository / "evals/agent").symlink_to("bin/agent.sh")
    hidden = Hidden(repository, (tmp_path / "home",))
    chosen = [repository / source] if source is not None else []
    shown = needed_by(chosen, (repository / program).resolve() if program is not None else None, hidden)
    assert sorted({*shown}) == sorted((repository / each).parent.resolve() / Path(each).name for each in seen)


@isolated
def test_source_in_a_folder_named_bin_does_not_show_its_parent(agent: Agent) -> None:
    files = {"evals/bin/agent.sh": "cat $AGENTV_REPOSITORY/evals/hidden.txt", "evals/hidden.txt": "canary"}
    agent.project.write(files)
    command = 'sh "$AGENTV_REPOSITORY/evals/bin/agent.sh"'
    said = agent.says(command, targets={"sources": ["evals/bin/agent.sh"]}, isolation="namespaces")
    assert said.endswith("No such file or directory")


ENGINE = f"""#!{sys.executable}
# Starts what follows the image: https://docs.docker.com/reference/cli/docker/container/run/.
import json, os, subprocess, sys

log = open({{log!r}}, "a")
log.write(json.dumps(sys.argv[1:]) + "\\n")
log.close()
arguments = sys.argv[1:]
if arguments[0] == "run":
    ALONE = {{{{"--rm", "--interactive", "--init"}}}}
    place, cwd, env = 1, None, {{{{"PATH": os.environ["PATH"]}}}}
    while arguments[place].startswith("--"):
        name = arguments[place]
        place += 1
        if name in ALONE:
            continue
        value = arguments[place]
        place += 1
        if name == "--workdir":
            cwd = value
        if name == "--env":
            name, _, given = value.partition("=")
            env[name] = given or os.environ[name]
    assert arguments[place] == "debian:12", arguments
    sys.exit(subprocess.run(arguments[place + 1 :], cwd=cwd, env=env).returncode)
"""


def test_container(agent: Agent, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(tmp_path, {"bin/docker": ENGINE.format(log=str(log))})
    (tmp_path / "bin" / "docker").chmod(0o755)
    agent.project.env["PATH"] = f"{tmp_path / 'bin'}:{PATH}"
    row = agent.row(
        "echo $KEY > key",
        {"type": "command", "argv": ["cat", "key"], "equals": "a key"},
        targets={"env": {"KEY": "a key"}},
        isolation="container",
        image="debian:12",
        limits={"memory_mb": 512, "processes": 50, "cpu_s": 9},
    )
    assert row["verdict"] == "pass", row
    assert row["workspace"]["isolation"] == "container"
    calls = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [call[0] for call in calls] == ["info", "run", "rm", "run", "rm"]
    first, second = (call for call in calls if call[0] == "run")
    assert "a key" not in json.dumps(first)
    assert {"--cap-drop", "no-new-privileges", "--memory", "512m", "--pids-limit", "50", "cpu=9"} <= {*first}
    # The agent has the network of the engine, the grader none.
    assert ("--network" in first, second[second.index("--network") + 1]) == (False, "none")
    assert calls[2] == ["rm", "--force", first[first.index("--name") + 1]]


def test_folder_of_path_that_cannot_be_entered_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(f"/{'x' * 300}/python3")
    found = [*toolchains(f"/{'x' * 300}/bin:{tmp_path}/bin:/missing", Hidden(tmp_path / "repository"))]
    assert found == [tmp_path / "bin"]
