"""A ledger in a branch: real repositories, a real server, and writers that compete, or die."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv_ci.app.run.environment import system_environment
from agentv_ci.contracts.ledger import Damage, Ledger
from agentv_ci.errors import LedgerUnavailable
from agentv_ci.ledger.place import BRANCH, LedgerPlace, add_to_ledger, read_ledger
from agentv_ci.results import jsonl
from tests.servers.git_http import GitServer
from tests.support import clean_environment, run_process, run_program, write
from tests.support.nights import Stretch, files_of
from tests.support.runs import row

NIGHTS = [dict([each]) for each in files_of({"one": [Stretch(24, (1.0, 0.9, 0.5))]}).items()]
"""Runs, each a file."""
WHO = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")

# Waiting in vain takes most of the time.
ENVIRONMENT = replace(system_environment(clean_environment()), sleep=lambda seconds: asyncio.sleep(seconds / 20))


def git(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(["git", *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A bare repository with one commit on main."""
    hub, first = tmp_path / "hub.git", tmp_path / "first"
    git(tmp_path, "init", "-q", "--bare", "--initial-branch=main", hub)
    git(tmp_path, "init", "-q", "--initial-branch=main", first)
    write(first, {"evals/a.yaml": "x"})
    git(first, "add", "-A")
    git(first, *WHO, "commit", "-qm", "First")
    git(first, "push", "-q", hub, "main")
    return hub


def clone(hub: Path | str, name: str, folder: Path, *flags: str) -> Path:
    url = hub if isinstance(hub, str) else f"file://{hub}"
    git(folder, "clone", "-q", *flags, url, name)
    return folder / name


def state(folder: Path) -> tuple[str, str, str, bytes]:
    """Return what must not change: HEAD, the status, branches, and the index."""
    index = folder / ".git" / "index"
    branches = git(folder, "for-each-ref", "refs/heads", "refs/tags")
    return git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain"), branches, index.read_bytes()


async def add(folder: Path, *nights: Mapping[str, bytes]) -> list[str]:
    files = {path: content for night in nights for path, content in night.items()}
    return await add_to_ledger(LedgerPlace(folder), files, ENVIRONMENT)


async def read(folder: Path) -> Ledger:
    return await read_ledger(LedgerPlace(folder), ENVIRONMENT)


@pytest.mark.parametrize(
    "flags", [(), ("--depth=1",), ("--depth=1", "--no-tags")], ids=["whole", "shallow", "checkout"]
)
async def test_runs_are_added_to_the_branch_of_the_remote(hub: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    here, there = clone(hub, "here", tmp_path, *flags), clone(hub, "there", tmp_path, *flags)
    write(here, {"evals/a.yaml": "changed", "new.txt": "new"})
    before = state(here)
    assert (await read(here)).runs == ()
    assert await add(here, NIGHTS[0]) == [*NIGHTS[0]]
    assert await add(there, NIGHTS[1], NIGHTS[0]) == [*NIGHTS[1]]
    assert await add(here, NIGHTS[1]) == []
    ledger = await read(here)
    commit = git(hub, "rev-parse", "--short=7", BRANCH).strip()
    assert ledger.source == f"refs/remotes/origin/{BRANCH} ({commit})"
    assert [run.head.time[:10] for run in ledger.runs] == ["2026-01-01", "2026-01-02"]
    assert ledger.damaged == ()
    assert state(here) == before
    assert git(hub, "ls-tree", "-r", "--name-only", BRANCH).split() == [*NIGHTS[0], *NIGHTS[1], "README.md"]
    assert git(hub, "log", "--format=%s", BRANCH).splitlines() == ["Add 1 run", "Add 1 run"]
    git(hub, "fsck", "--strict")


async def test_clone_stays_whole(hub: Path, tmp_path: Path) -> None:
    here, there = clone(hub, "here", tmp_path), clone(hub, "there", tmp_path)
    await add(there, NIGHTS[0])
    await add(there, NIGHTS[1])
    assert len((await read(here)).runs) == 2
    assert git(here, "rev-parse", "--is-shallow-repository") == "false\n"


async def test_without_a_remote_the_branch_is_local(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--initial-branch=main")
    await add(tmp_path, NIGHTS[0])
    await add(tmp_path, NIGHTS[1])
    ledger = await read(tmp_path)
    assert ledger.source.startswith(f"refs/heads/{BRANCH} (")
    assert len(ledger.runs) == 2
    assert [*tmp_path.iterdir()] == [tmp_path / ".git"]
    assert not (tmp_path / ".git" / "index").exists()


async def test_local_branch_is_continued_when_there_is_a_remote(hub: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    git(tmp_path, "init", "-q", "--initial-branch=main", here)
    await add(here, NIGHTS[0])
    git(here, "remote", "add", "origin", f"file://{hub}")
    await add(here, NIGHTS[1])
    assert git(hub, "rev-list", "--count", BRANCH) == "2\n"
    assert len((await read(clone(hub, "there", tmp_path))).runs) == 2


async def test_branches_that_a_pull_request_brings_are_not_believed(hub: Path, tmp_path: Path) -> None:
    await add(clone(hub, "writer", tmp_path), NIGHTS[0])
    forged = tmp_path / "forged"
    git(tmp_path, "init", "-q", forged)
    await add(forged, NIGHTS[1])
    here = clone(hub, "here", tmp_path)
    for ref in (f"refs/heads/{BRANCH}", f"refs/tags/{BRANCH}", f"refs/remotes/origin/{BRANCH}"):
        git(here, "fetch", "-q", forged, f"+{BRANCH}:{ref}")
    ledger = await read(here)
    assert [run.head.time[:10] for run in ledger.runs] == ["2026-01-01"]
    assert ledger.source.endswith(f"({git(hub, 'rev-parse', '--short=7', BRANCH).strip()})")


async def test_hooks_and_variables_of_a_repository_do_not_matter(hub: Path, tmp_path: Path) -> None:
    here = clone(hub, "here", tmp_path)
    for name in ("pre-push", "reference-transaction", "post-index-change"):
        hook = here / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\nexit 1\n")
        hook.chmod(0o755)
    elsewhere = {"GIT_DIR": "/nonexistent", "GIT_INDEX_FILE": "/nonexistent", "GIT_WORK_TREE": "/nonexistent"}
    environment = replace(ENVIRONMENT, variables={**ENVIRONMENT.variables, **elsewhere})
    assert await add_to_ledger(LedgerPlace(here), NIGHTS[0], environment) == [*NIGHTS[0]]
    assert not (tmp_path / "hooked").exists()


async def test_helper_of_credentials_gets_the_token(tmp_path: Path) -> None:
    """As `gh auth setup-git` sets it up, for a server that wants a token."""
    served = GitServer(tmp_path / "served", "ghs_token0123456789")
    git(tmp_path, "init", "-q", "--bare", served.folder / "demo.git")
    git(served.folder / "demo.git", "config", "http.receivepack", "true")
    git(tmp_path, "init", "-q", "here")
    here = tmp_path / "here"
    git(here, "config", "credential.helper", '!printf "username=x-access-token\\npassword=$GH_TOKEN\\n" #')
    variables = {**ENVIRONMENT.variables, "GH_TOKEN": served.token}
    with served.running() as url:
        git(here, "remote", "add", "origin", f"{url}/demo.git")
        added = await add_to_ledger(LedgerPlace(here), NIGHTS[0], replace(ENVIRONMENT, variables=variables))
    assert added == [*NIGHTS[0]]


async def test_branch_with_a_similar_name_is_another(hub: Path, tmp_path: Path) -> None:
    git(hub, "branch", f"a/refs/heads/{BRANCH}", "main")
    here = clone(hub, "here", tmp_path)
    assert (await read(here)).runs == ()
    await add(here, NIGHTS[0])
    await add(here, NIGHTS[1])
    assert len((await read(clone(hub, "there", tmp_path))).runs) == 2


async def test_partial_clone_fetches_a_ledger_at_once(hub: Path, tmp_path: Path) -> None:
    for name in ("allowFilter", "allowAnySHA1InWant"):
        git(hub, "config", f"uploadpack.{name}", "true")
    await add(clone(hub, "writer", tmp_path), *NIGHTS)
    here = clone(hub, "here", tmp_path, "--filter=blob:none")
    packs = {*here.glob(".git/objects/pack/*.pack")}
    assert len((await read(here)).runs) == len(NIGHTS)
    assert len({*here.glob(".git/objects/pack/*.pack")} - packs) == 1
    await add(here, *(dict([each]) for each in files_of({"two": [Stretch(1, (1.0,))]}).items()))
    assert len((await read(here)).runs) == len(NIGHTS) + 1


REFUSED = {
    "not a repository": ("", "is not in a git repository"),
    "unreachable": ("git init -q; git remote add origin file:///nonexistent/hub.git", "git ls-remote failed: "),
}


@pytest.mark.parametrize(("commands", "reason"), REFUSED.values(), ids=REFUSED)
async def test_ledger_that_cannot_be_reached_is_refused(tmp_path: Path, commands: str, reason: str) -> None:
    assert run_program("sh", "-c", commands, cwd=tmp_path).code == 0
    with pytest.raises(LedgerUnavailable, match=reason):
        await read(tmp_path)
    with pytest.raises(LedgerUnavailable, match=reason):
        await add(tmp_path, NIGHTS[0])


async def test_branch_that_is_checked_out_is_read_and_not_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--initial-branch=main")
    await add(tmp_path, NIGHTS[0])
    git(tmp_path, "checkout", "-q", BRANCH)
    assert len((await read(tmp_path)).runs) == 1
    with pytest.raises(LedgerUnavailable, match=f"refs/heads/{BRANCH} is checked out"):
        await add(tmp_path, NIGHTS[1])
    assert git(tmp_path, "status", "--porcelain") == ""


async def test_branch_of_another_work_tree_is_not_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--initial-branch=main", "here")
    here = tmp_path / "here"
    await add(here, NIGHTS[0])
    git(here, "worktree", "add", "-q", tmp_path / "ledger", BRANCH)
    with pytest.raises(LedgerUnavailable, match=f"refs/heads/{BRANCH} is checked out"):
        await add(here, NIGHTS[1])
    assert git(tmp_path / "ledger", "status", "--porcelain") == ""
    git(tmp_path / "ledger", "switch", "-q", "--detach")
    await add(here, NIGHTS[1])
    assert git(tmp_path / "ledger", "status", "--porcelain") == ""


async def test_push_that_a_server_forbids_is_given_up(hub: Path, tmp_path: Path) -> None:
    hook = hub / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'only on Sundays' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(LedgerUnavailable, match="only on Sundays"):
        await add(clone(hub, "here", tmp_path), NIGHTS[0])
    assert git(hub, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"


async def test_hostile_files_in_the_branch_are_reported(hub: Path, tmp_path: Path) -> None:
    here = clone(hub, "here", tmp_path)
    await add(here, NIGHTS[0])
    other = clone(hub, "other", tmp_path, "--branch", BRANCH)
    write(other, {"2026-01/20260109T000000Z-000000000000.jsonl": '{"kind":"run","schema_version":7}\n'})
    write(other, {"2026-01/evil\n::error::.jsonl": "x", "2026-01/notes.txt": "x"})
    (other / "2026-01" / "20260110T000000Z-000000000000.jsonl").symlink_to("/etc/passwd")
    git(other, "add", "-A")
    git(other, *WHO, "commit", "-qm", "Evil")
    git(other, "push", "-q")
    ledger = await read(here)
    assert len(ledger.runs) == 1
    assert ledger.damaged == (
        Damage("2026-01/20260110T000000Z-000000000000.jsonl", "is not a regular file"),
        Damage(
            "2026-01/20260109T000000Z-000000000000.jsonl:1",
            "schema_version 7 is not supported; this version of agentv-ci reads 1",
        ),
    )


async def test_huge_and_missing_files_in_the_branch_are_reported(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = clone(hub, "here", tmp_path)
    await add(here, NIGHTS[0], NIGHTS[1])
    (first,), (second,) = NIGHTS[0], NIGHTS[1]
    lost = git(here, "rev-parse", f"origin/{BRANCH}:{second}").strip()
    (here / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    ledger = await read(here)
    assert [run.head.time[:10] for run in ledger.runs] == ["2026-01-01"]
    assert ledger.damaged == (Damage(second, "is missing from the repository"),)
    monkeypatch.setattr("agentv_ci.ledger.branch.MAX_FILE_BYTES", 10)
    ledger = await read(clone(hub, "there", tmp_path))
    assert ledger.damaged == (Damage(first, "is larger than 0 MiB"), Damage(second, "is larger than 0 MiB"))


async def test_writer_that_is_always_too_late_gives_up(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = clone(hub, "here", tmp_path), clone(hub, "there", tmp_path)
    nights = iter(NIGHTS[1:])

    async def others_push(_: float) -> None:
        await add(there, next(nights))

    hook = here / "slow"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git(here, "config", "remote.origin.receivepack", str(hook))
    monkeypatch.setattr("agentv_ci.ledger.branch.MAX_TRIES", 4)
    with pytest.raises(LedgerUnavailable, match=f"'{BRANCH}' was changed by others 4 times"):
        await add_to_ledger(LedgerPlace(here), NIGHTS[0], replace(ENVIRONMENT, sleep=others_push))


async def test_missing_git_is_said(tmp_path: Path) -> None:
    environment = replace(ENVIRONMENT, variables={"PATH": str(tmp_path)})
    with pytest.raises(LedgerUnavailable, match="git check-ref-format: cannot start 'git'"):
        await read_ledger(LedgerPlace(tmp_path), environment)


@pytest.fixture
def server(hub: Path) -> Iterator[str]:
    """The address of a git server that takes pushes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1"]
    process = subprocess.Popen([*command, f"--port={port}", f"--base-path={hub.parent}", hub.parent])
    try:
        url = f"git://127.0.0.1:{port}/hub.git"
        deadline = time.monotonic() + 10
        while subprocess.run(["git", "ls-remote", url], capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


# These two are no coroutines, which have a minute: they start hundreds of processes.


@pytest.mark.slow
def test_twenty_writers_at_once_lose_no_line(server: str, hub: Path, tmp_path: Path) -> None:
    clones = [clone(server, f"writer-{number}", tmp_path, "--depth=1") for number in range(20)]

    async def add_all() -> list[list[str]]:
        return await asyncio.gather(*(add(each, night) for each, night in zip(clones, NIGHTS, strict=False)))

    assert asyncio.run(add_all()) == [[*night] for night in NIGHTS[:20]]
    ledger = asyncio.run(read(clones[0]))
    assert {run.head.run for run in ledger.runs} == {path[-18:-6] for night in NIGHTS[:20] for path in night}
    assert ledger.damaged == ()
    assert git(hub, "rev-list", "--count", BRANCH) == "20\n"
    git(hub, "fsck", "--strict")


KILLER = """#!/bin/sh
# Kills its parent before or after its n-th call.
echo x >> {count}
if [ $(wc -l < {count}) -eq {call} ]; then
  {before}
  {real} "$@"
  kill -KILL $PPID
  exit 1
fi
exec {real} "$@"
"""


def dying(folder: Path, call: int, *, early: bool) -> dict[str, str]:
    """Return an environment in which a program that calls git dies with one of its calls."""
    real = shutil.which("git")
    wrapper = folder / f"bin-{call}-{early}" / "git"
    before = "kill -KILL $PPID; exit 1" if early else ":"
    script = KILLER.format(count=f"{wrapper}.count", call=call, before=before, real=real)
    write(folder, {f"{wrapper.parent.name}/git": script})
    wrapper.chmod(0o755)
    return {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"}


@pytest.mark.slow
def test_killed_writer_leaves_a_valid_branch(hub: Path, tmp_path: Path) -> None:
    here = clone(hub, "here", tmp_path)
    asyncio.run(add(here, NIGHTS[0]))
    killed, call = 0, 0
    results = tmp_path / "results.jsonl"
    results.write_text(jsonl.encode(row(timestamp="2026-02-02T03:04:05.000Z")), "utf-8")
    while True:
        call += 1
        done = run_process("history", "add", results, cwd=here, env=dying(tmp_path, call, early=bool(call % 2)))
        git(hub, "fsck", "--strict")
        runs = asyncio.run(read(here)).runs
        assert len(runs) in (1, 2)
        assert all(len(run.cases) == run.head.cases for run in runs)
        if done.code == 0:
            break
        killed += 1
    assert len(runs) == 2
    assert killed >= 10
