"""Child processes have limits on time and output, and do not outlive a run."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from agentv_ci.base import process
from agentv_ci.base.process import ProcessFailed, ProcessTimedOut, child_environment, run
from agentv_ci.contracts.exchange import ProcessResult
from tests.support import has_ended
from tests.support.processes import commands

pytestmark = pytest.mark.slow

T = TypeVar("T")
Command = str | Sequence[str]

SOON_S = 10
"""Far more than anything here takes, far less than the sleep of a child that was left behind."""
DETACHES = """
import pathlib, subprocess
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
pathlib.Path("pid").write_text(str(child.pid))
"""
"""Leaves a child in a session of its own, which holds the output."""


async def soon(work: Coroutine[None, None, T]) -> T:
    """Return what `work` returns; fails instead of hanging, even if `work` hangs while it is cancelled."""
    task = asyncio.create_task(work)
    done, _ = await asyncio.wait({task}, timeout=SOON_S)
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.2)
    assert done, f"takes more than {SOON_S} s"
    return await task


def finish(
    command: Command, cwd: Path, *, stdin: bytes = b"", timeout_s: float = 30, env: Mapping[str, str] | None = None
) -> ProcessResult:
    """Run a command to its end."""
    environment = child_environment(os.environ, env)
    return asyncio.run(soon(run(command, cwd=cwd, env=environment, timeout_s=timeout_s, stdin=stdin)))


def pid_in(path: Path) -> int:
    """Return the process id that a command writes into a file, as soon as it is there."""
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            return int(path.read_text(encoding="utf-8"))
        time.sleep(0.01)
    raise AssertionError(f"{path} is missing")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder; processes that write their ids into files named `pid` are killed at the end."""
    yield tmp_path
    for path in tmp_path.glob("pid"):
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(int(path.read_text(encoding="utf-8")), signal.SIGKILL)


MUCH = b"x" * 1_000_000


@pytest.mark.parametrize(
    ("command", "stdin", "expected"),
    [
        ("printf a; printf b >&2; exit 3", b"", ProcessResult(3, "a", "b")),
        (["printf", "%s", "$HOME `id`; *"], b"", ProcessResult(0, "$HOME `id`; *", "")),
        ("kill -KILL $$", b"", ProcessResult(-signal.SIGKILL, "", "")),
        ("kill -TERM 0", b"", ProcessResult(-signal.SIGTERM, "", "")),
        (r"printf '42\0'", b"", ProcessResult(0, "42\0", "")),
        (r"printf 'a\377b'; printf '\303' >&2", b"", ProcessResult(0, "a\ufffdb", "\ufffd")),
        ("(sleep 0.1; echo late) & echo early", b"", ProcessResult(0, "early\nlate\n", "")),
        ("head -c 10485760 /dev/zero", b"", ProcessResult(0, "\0" * 10 * 1024 * 1024, "")),
        ("cat", "zwölf\n".encode(), ProcessResult(0, "zwölf\n", "")),
        ("cat", ("x" + "é" * 1_000_000).encode(), ProcessResult(0, "x" + "é" * 1_000_000, "")),
        ("exit 3", MUCH, ProcessResult(3, "", "")),
        ("sleep 0.1; echo done", MUCH, ProcessResult(0, "done\n", "")),
        ("head -c 1", MUCH, ProcessResult(0, "x", "")),
        ("exec <&-; echo closed", MUCH, ProcessResult(0, "closed\n", "")),
        ("exec 3<&0; sleep 60 >/dev/null 2>&1 & echo done", MUCH, ProcessResult(0, "done\n", "")),
        ([sys.executable, "-c", f"{DETACHES}print('done')"], b"", ProcessResult(0, "done\n", "")),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_command_has_a_status_and_outputs_and_need_not_read_its_input(
    command: Command, stdin: bytes, expected: ProcessResult, folder: Path
) -> None:
    assert finish(command, folder, stdin=stdin) == expected


def test_a_command_runs_in_its_folder_with_its_environment_alone(tmp_path: Path) -> None:
    shown = run(["/bin/sh", "-c", "pwd -P; /usr/bin/env"], cwd=tmp_path, env={"ONLY": "this"}, timeout_s=30)
    printed = asyncio.run(soon(shown)).stdout.split()
    assert (printed[0], "ONLY=this" in printed) == (str(tmp_path.resolve()), True)
    assert {each.split("=")[0] for each in printed[1:]} <= {"ONLY", "PWD", "_", "SHLVL", "OLDPWD"}


def test_standard_input_is_empty_and_never_inherited(tmp_path: Path) -> None:
    own, (read, write) = os.dup(0), os.pipe()
    os.dup2(read, 0)
    try:
        assert finish("cat", tmp_path) == ProcessResult(0, "", "")
    finally:
        os.dup2(own, 0)
        for each in (own, read, write):
            os.close(each)


@pytest.mark.parametrize(
    "command",
    [
        "echo $$ > pid; echo so far >&2; exec sleep 60",
        "echo so far >&2; sleep 60 & echo $! > pid; wait",
        "trap 'echo bye > farewell; exit 0' TERM; echo so far >&2; sleep 60 & echo $! > pid; wait",
        "trap '' TERM; echo $$ > pid; echo so far >&2; while :; do sleep 60; done",
        "echo $$ > pid; echo so far >&2; kill -STOP $$",
        "echo so far >&2; (trap '' TERM; sleep 60) & echo $! > pid; wait",
    ],
    ids=["command", "child", "trap", "ignores TERM", "stopped", "child ignores TERM"],
)
def test_a_time_out_ends_a_command_with_its_children_and_keeps_its_output(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    with pytest.raises(ProcessTimedOut, match=r"^timed out after 0.5 s$") as caught:
        finish(command, folder, timeout_s=0.5)
    assert caught.value.stderr == "so far\n"
    assert has_ended(pid_in(folder / "pid"))
    assert (folder / "farewell").exists() == ("farewell" in command)


class Done:
    """A listener that hears the end of the work in a word."""

    def __init__(self) -> None:
        self.done = asyncio.Event()

    def __call__(self, output: int, data: bytes) -> None:
        if output == process.STDOUT and b"done" in data:
            self.done.set()


@pytest.mark.parametrize(
    ("command", "timeout_s", "grace_s"),
    [
        ("echo $$ > pid; echo so far >&2; echo done; exec sleep 60", 30, 0.5),
        ("echo so far >&2; sleep 60 & echo $! > pid; echo done; wait", 30, 0.5),
        ("trap '' TERM; echo $$ > pid; echo so far >&2; echo done; while :; do sleep 60; done", 30, 0.5),
        ("(trap '' TERM; exec sleep 60) & echo $! > pid; echo so far >&2; echo done; exec sleep 60", 30, 0.5),
        ("echo $$ > pid; echo so far >&2; echo done; exec sleep 60", 3, 30),
        ("trap 'exit 7' TERM; echo $$ > pid; echo so far >&2; echo done; sleep 60 & wait", 30, 0.5),
        ("echo $$ > pid; echo so far >&2; echo done; sleep 0.3; exec yes", 30, 0.5),
    ],
    ids=["command", "child", "ignores TERM", "child ignores TERM", "late", "trap", "floods"],
)
def test_a_command_that_has_done_its_work_is_ended_with_its_children(
    command: str, timeout_s: float, grace_s: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    monkeypatch.setattr(process, "DONE_GRACE_S", grace_s)
    found = asyncio.run(
        soon(run(command, cwd=folder, env=os.environ, timeout_s=timeout_s, stdin=b"x", listener=Done()))
    )
    assert (found.status, found.stdout[:5], found.stderr) == (0, "done\n", "so far\n")
    assert has_ended(pid_in(folder / "pid"))


@pytest.mark.parametrize(("command", "status"), [("echo done; exit 3", 3), ("echo done; sleep 0.1; exit 3", 3)])
def test_a_command_that_ends_after_its_work_has_its_own_status(command: str, status: int, tmp_path: Path) -> None:
    found = asyncio.run(soon(run(command, cwd=tmp_path, env=os.environ, timeout_s=30, listener=Done())))
    assert (found.status, found.stdout) == (status, "done\n")


def test_a_command_that_has_ended_does_not_time_out_while_its_output_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DRAIN_S", 60)
    command = "sleep 60 & echo $! > pid; echo done; exit 3"
    assert finish(command, folder, timeout_s=3) == ProcessResult(3, "done\n", "")
    assert has_ended(pid_in(folder / "pid"))


async def test_a_command_that_works_on_is_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "DONE_GRACE_S", 0.05)
    listener = Done()
    listener.done.set()
    begun = asyncio.create_task(
        run("sleep 0.5; echo more", cwd=tmp_path, env=os.environ, timeout_s=30, listener=listener)
    )
    await asyncio.sleep(0)
    listener.done.clear()
    assert (await begun).stdout == "more\n"


def test_a_time_out_is_not_held_up_by_a_detached_child_that_holds_the_output(folder: Path) -> None:
    with pytest.raises(ProcessTimedOut):
        finish([sys.executable, "-c", f"{DETACHES}child.wait()"], folder, timeout_s=1)


@pytest.mark.parametrize("command", ["sleep 60 & echo $!", "sleep 60 >/dev/null 2>&1 & echo $!"])
def test_children_that_a_command_leaves_are_ended(command: str, tmp_path: Path) -> None:
    done = finish(command, tmp_path)
    assert (done.status, done.stderr, has_ended(int(done.stdout))) == (0, "", True)


def test_children_are_spared_where_they_are_meant_to_last(folder: Path) -> None:
    command = "sleep 60 >/dev/null 2>&1 & echo $! > pid"
    asyncio.run(soon(run(command, cwd=folder, env=os.environ, timeout_s=30, spares_children=True)))
    os.kill(pid_in(folder / "pid"), 0)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="/dev/fd is missing")
async def test_no_file_stays_open(tmp_path: Path) -> None:
    def open_files() -> int:
        return sum(1 for _ in Path("/dev/fd").iterdir())

    async def once(command: str) -> None:
        with contextlib.suppress(ProcessFailed):
            await run(command, cwd=tmp_path, env=os.environ, timeout_s=0.2, stdin=b"x" * 100_000)

    await once("true")
    before = open_files()
    for command in ("true", "cat", "sleep 60", "no-such-program"):
        await once(command)
    assert open_files() <= before


@pytest.mark.parametrize(
    ("command", "stdin"), [("exec yes", b""), ("exec yes >&2", b""), ("yes & yes >&2", b""), ("exec yes", MUCH)]
)
def test_a_command_that_prints_too_much_is_ended(command: str, stdin: bytes, folder: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"^printed more than 10 MiB$"):
        finish(f"echo $$ > pid; {command}", folder, stdin=stdin)
    assert has_ended(pid_in(folder / "pid"))


@pytest.mark.parametrize(
    ("command", "env", "message"),
    [
        (["no-such-program"], {}, "cannot start 'no-such-program': No such file or directory"),
        (["./plain"], {}, "cannot start './plain': Permission denied"),
        (["echo", "x" * 200_000], {}, "cannot start 'echo': Argument list too long"),
        ("echo a\0b", {}, "cannot start '/bin/sh': embedded null byte"),
        (["echo", "a\0b"], {}, "cannot start 'echo': embedded null byte"),
        ("true", {"A=B": "c"}, "cannot start '/bin/sh': illegal environment variable name"),
    ],
    ids=["missing", "not executable", "too long", "NUL", "NUL in a list", "variable"],
)
def test_a_command_that_cannot_start_is_named(
    command: Command, env: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("not a program", encoding="utf-8")
    with pytest.raises(process.ProgramNotStarted) as caught:
        finish(command, tmp_path, env=env)
    assert str(caught.value) == message


def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        finish("true", tmp_path / "gone")
    assert str(caught.value) == f"cannot start: working directory '{tmp_path / 'gone'}' does not exist"
    assert not isinstance(caught.value, process.ProgramNotStarted)


async def cancel(task: asyncio.Task[ProcessResult]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=SOON_S)
    assert task.cancelled()


@pytest.mark.parametrize(
    "command", ["sleep 60 & echo $! > pid; wait", "trap '' TERM; echo $$ > pid; sleep 60; sleep 60"]
)
async def test_cancelling_a_command_leaves_no_process(command: str, folder: Path) -> None:
    task = asyncio.create_task(run(command, cwd=folder, env=os.environ, timeout_s=60))
    await asyncio.to_thread(pid_in, folder / "pid")
    await asyncio.sleep(0.05)
    await cancel(task)
    assert has_ended(pid_in(folder / "pid"))


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("starts", [True, False])
async def test_cancelling_a_command_while_it_starts_leaves_no_process(turns: int, starts: bool, tmp_path: Path) -> None:
    unique = f"sleep 60.{os.getpid()}{turns}"

    command = unique if starts else ["no-such-program"]
    task = asyncio.create_task(run(command, cwd=tmp_path, env=os.environ, timeout_s=60))
    for _ in range(turns):
        await asyncio.sleep(0)
    if not task.done():
        await cancel(task)
    else:
        assert isinstance(task.exception(), ProcessFailed)
    assert all(has_ended(pid) for pid, command in commands().items() if unique in command)


async def test_a_process_that_has_ended_is_forgotten_when_its_run_is_cancelled_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    task = asyncio.create_task(run("echo 42", cwd=tmp_path, env=os.environ, timeout_s=60))

    def killpg(group: int, _: int) -> None:
        killed.append(group)
        task.cancel()

    monkeypatch.setattr(os, "killpg", killpg)
    await asyncio.wait({task})
    assert killed
    killed.clear()
    process.kill_all()
    assert killed == []


@pytest.mark.parametrize(
    ("name", "is_inherited"),
    [
        *((f"GITHUB_{name}", False) for name in ("TOKEN", "OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY")),
        *((name, False) for name in ("GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_CACHE_URL")),
        *((name, True) for name in ("PATH", "OPENAI_API_KEY", "GITHUB_ACTIONS", "GITHUB_REPOSITORY", "XACTIONS_X")),
    ],
)
def test_variables_of_the_runner_are_not_inherited_but_can_be_set(name: str, is_inherited: bool) -> None:
    assert (name in child_environment({name: "inherited"})) is is_inherited
    assert child_environment({name: "inherited"}, {name: "explicit"})[name] == "explicit"


def test_children_are_not_asked_for_colours() -> None:
    environment = child_environment({"TERM": "xterm-256color"})
    assert (environment["NO_COLOR"], environment["TERM"]) == ("1", "dumb")


NODE_LIKE = """
import fcntl, os, sys, time
for _ in range(1000):
    if fcntl.fcntl(1, fcntl.F_GETPIPE_SZ) >= 1_000_000:
        break
    time.sleep(0.01)
os.set_blocking(1, False)
sys.stderr.write(str(os.write(1, b"x" * 1_000_000)))
"""


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="the size of pipes cannot be set here")
def test_a_program_that_does_not_wait_for_its_reader_loses_nothing(tmp_path: Path) -> None:
    done = finish([sys.executable, "-c", NODE_LIKE], tmp_path)
    assert (len(done.stdout), done.stderr) == (1_000_000, "1000000")
