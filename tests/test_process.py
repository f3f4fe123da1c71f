"""Child processes cannot hang, flood or outlive a run."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from agentv_ci import process
from agentv_ci.process import ProcessFailed, ProcessResult, ProcessTimedOut, child_environment, run
from tests.support import has_ended

T = TypeVar("T")

SOON_S = 10
"""Far more than anything here takes, far less than the sleep of a child that was left behind."""

DETACHES = """
import pathlib, subprocess
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
pathlib.Path("child").write_text(str(child.pid))
"""
"""Leaves a child behind that has a session of its own and holds the output."""


async def soon(work: Coroutine[None, None, T]) -> T:
    """Return what `work` returns; fails instead of hanging, also where `work` hangs while it is cancelled."""
    task = asyncio.create_task(work)
    done, _ = await asyncio.wait({task}, timeout=SOON_S)
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.2)
    assert done, f"takes more than {SOON_S} s"
    return await task


def finish(
    command: str | Sequence[str],
    cwd: Path,
    *,
    stdin: bytes = b"",
    timeout_s: float = 30,
    env: Mapping[str, str] | None = None,
) -> ProcessResult:
    """Run a command to its end; fails instead of hanging."""
    environment = child_environment(os.environ, env)
    return asyncio.run(soon(run(command, cwd=cwd, env=environment, timeout_s=timeout_s, stdin=stdin)))


def pid_in(path: Path) -> int:
    """Return the process id that a command writes into a file, as soon as it stands there."""
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            return int(path.read_text(encoding="utf-8"))
        time.sleep(0.01)
    raise AssertionError(f"nothing has written {path}")


@pytest.fixture
def ends_at_last() -> Iterator[list[int]]:
    """Process ids that the test cannot leave to the code under test."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_text_is_a_command_for_a_shell(tmp_path: Path) -> None:
    assert finish("printf a; printf b >&2; exit 3", tmp_path) == ProcessResult(3, "a", "b")


def test_a_list_is_run_without_a_shell(tmp_path: Path) -> None:
    assert finish(["printf", "%s", "$HOME `id`; *"], tmp_path) == ProcessResult(0, "$HOME `id`; *", "")


def test_a_command_runs_in_the_folder_it_is_given(tmp_path: Path) -> None:
    assert finish("pwd -P", tmp_path).stdout.strip() == str(tmp_path.resolve())


def test_the_status_is_negative_when_a_signal_ended_the_command(tmp_path: Path) -> None:
    assert finish("kill -KILL $$", tmp_path).status == -signal.SIGKILL


def test_output_that_is_no_utf8_is_replaced_and_not_refused(tmp_path: Path) -> None:
    assert finish(r"printf 'a\377b'; printf '\303' >&2", tmp_path) == ProcessResult(0, "a\ufffdb", "\ufffd")


def test_a_character_survives_that_lies_across_two_reads(tmp_path: Path) -> None:
    text = "x" + "é" * 100_000
    assert finish("cat", tmp_path, stdin=text.encode()).stdout == text


def test_commands_side_by_side_keep_their_outputs_apart(tmp_path: Path) -> None:
    async def main() -> list[ProcessResult]:
        each = (run(f"echo {n}", cwd=tmp_path, env=os.environ, timeout_s=30) for n in range(20))
        return await asyncio.gather(*each)

    assert [done.stdout for done in asyncio.run(main())] == [f"{n}\n" for n in range(20)]


def test_stdin_is_fed(tmp_path: Path) -> None:
    assert finish("cat", tmp_path, stdin="zwölf\n".encode()).stdout == "zwölf\n"


def test_much_input_and_much_output_do_not_block_each_other(tmp_path: Path) -> None:
    assert len(finish("cat", tmp_path, stdin=b"x" * 5_000_000).stdout) == 5_000_000


def test_stdin_is_empty_and_never_inherited_when_nothing_is_given(tmp_path: Path) -> None:
    own, (read, write) = os.dup(0), os.pipe()
    os.dup2(read, 0)
    try:
        assert finish("cat", tmp_path) == ProcessResult(0, "", "")
    finally:
        os.dup2(own, 0)
        for each in (own, read, write):
            os.close(each)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 3", ProcessResult(3, "", "")),
        ("sleep 0.1; echo done", ProcessResult(0, "done\n", "")),
        ("head -c 1", ProcessResult(0, "x", "")),
        ("exec <&-; echo closed", ProcessResult(0, "closed\n", "")),
    ],
)
def test_a_command_need_not_read_its_input(command: str, expected: ProcessResult, tmp_path: Path) -> None:
    assert finish(command, tmp_path, stdin=b"x" * 1_000_000) == expected


def test_a_command_has_answered_although_a_child_holds_the_input_that_nobody_reads(tmp_path: Path) -> None:
    command = "exec 3<&0; sleep 60 >/dev/null 2>&1 & echo done"
    assert finish(command, tmp_path, stdin=b"x" * 1_000_000) == ProcessResult(0, "done\n", "")


def test_a_command_that_takes_too_long_is_ended_and_its_stderr_kept(tmp_path: Path) -> None:
    with pytest.raises(ProcessTimedOut, match=r"^timed out after 1 s$") as caught:
        finish("echo so far >&2; sleep 60", tmp_path, timeout_s=1)
    assert caught.value.stderr == "so far\n"


def test_a_timeout_ends_the_children_of_the_command_too(tmp_path: Path) -> None:
    with pytest.raises(ProcessTimedOut):
        finish("sleep 60 & echo $! > child; wait", tmp_path, timeout_s=1)
    assert has_ended(pid_in(tmp_path / "child"))


def test_a_command_is_asked_to_end_before_it_is_killed(tmp_path: Path) -> None:
    with pytest.raises(ProcessTimedOut):
        finish("trap 'echo bye > farewell; exit 0' TERM; sleep 60 & wait", tmp_path, timeout_s=1)
    assert (tmp_path / "farewell").read_text(encoding="utf-8") == "bye\n"


def test_a_command_that_does_not_mind_being_asked_is_killed_after_the_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    with pytest.raises(ProcessTimedOut):
        finish("trap '' TERM; echo $$ > self; while :; do sleep 60; done", tmp_path, timeout_s=1)
    assert has_ended(pid_in(tmp_path / "self"))


def test_a_child_that_does_not_mind_being_asked_is_killed_after_the_command_went(tmp_path: Path) -> None:
    with pytest.raises(ProcessTimedOut):
        finish("(trap '' TERM; sleep 60) & echo $! > child; wait", tmp_path, timeout_s=1)
    assert has_ended(pid_in(tmp_path / "child"))


def test_a_timeout_is_not_held_up_by_a_detached_child_that_holds_the_output(
    tmp_path: Path, ends_at_last: list[int]
) -> None:
    with pytest.raises(ProcessTimedOut):
        finish([sys.executable, "-c", f"{DETACHES}child.wait()"], tmp_path, timeout_s=3)
    ends_at_last.append(pid_in(tmp_path / "child"))


def test_a_command_has_answered_although_it_leaves_a_child_that_holds_its_output(tmp_path: Path) -> None:
    done = finish("sleep 60 & echo $!", tmp_path)
    assert (done.status, done.stderr) == (0, "")
    assert has_ended(int(done.stdout))


def test_a_command_has_answered_although_it_leaves_a_detached_child_that_holds_its_output(
    tmp_path: Path, ends_at_last: list[int]
) -> None:
    try:
        assert finish([sys.executable, "-c", f"{DETACHES}print('done')"], tmp_path) == ProcessResult(0, "done\n", "")
    finally:
        ends_at_last.append(pid_in(tmp_path / "child"))


def test_a_child_that_is_left_behind_silently_does_not_outlive_its_command(tmp_path: Path) -> None:
    assert has_ended(int(finish("sleep 60 >/dev/null 2>&1 & echo $!", tmp_path).stdout))


def test_what_is_printed_right_after_the_command_ended_still_belongs_to_it(tmp_path: Path) -> None:
    assert finish("(sleep 0.1; echo late) & echo early", tmp_path).stdout == "early\nlate\n"


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="nothing lists the open files here")
def test_no_file_stays_open(tmp_path: Path) -> None:
    def open_files() -> int:
        return sum(1 for _ in Path("/dev/fd").iterdir())

    async def main() -> tuple[int, int]:
        async def once(command: str) -> None:
            with contextlib.suppress(ProcessFailed):
                await run(command, cwd=tmp_path, env=os.environ, timeout_s=0.2, stdin=b"x" * 100_000)

        await once("true")
        before = open_files()
        for command in ("true", "cat", "sleep 60", "no-such-program"):
            await once(command)
        return before, open_files()

    before, after = asyncio.run(main())
    assert after <= before


def test_as_much_output_as_is_allowed_is_kept(tmp_path: Path) -> None:
    assert len(finish("head -c 10485760 /dev/zero", tmp_path).stdout) == 10 * 1024 * 1024


@pytest.mark.parametrize("command", ["exec yes", "exec yes >&2", "yes & yes >&2"])
def test_a_command_that_floods_is_ended(command: str, tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"^printed more than 10 MiB$"):
        finish(f"echo $$ > self; {command}", tmp_path)
    assert has_ended(pid_in(tmp_path / "self"))


def test_a_command_that_floods_is_ended_although_it_leaves_its_input_unread(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"^printed more than 10 MiB$"):
        finish("exec yes", tmp_path, stdin=b"x" * 1_000_000)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"^cannot start 'no-such-program': No such file or directory$"):
        finish(["no-such-program"], tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        finish("true", tmp_path / "gone")
    assert str(caught.value) == f"cannot start: working directory '{tmp_path / 'gone'}' does not exist"


def test_a_program_that_may_not_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program", encoding="utf-8")
    with pytest.raises(ProcessFailed, match=r"^cannot start '\./plain': Permission denied$"):
        finish(["./plain"], tmp_path)


@pytest.mark.parametrize("command", ["echo a\0b", ["echo", "a\0b"]])
def test_a_nul_in_a_command_is_a_failure_and_not_a_crash(command: str | list[str], tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="null byte"):
        finish(command, tmp_path)


def test_an_argument_too_long_for_the_system_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="Argument list too long"):
        finish(["echo", "x" * 200_000], tmp_path)


def test_cancelling_leaves_no_process_behind(tmp_path: Path) -> None:
    cancel_when_started("sleep 60 & echo $! > child; wait", tmp_path)
    assert has_ended(pid_in(tmp_path / "child"))


def test_cancelling_kills_what_does_not_mind_being_asked(tmp_path: Path) -> None:
    cancel_when_started("trap '' TERM; echo $$ > child; while :; do sleep 60; done", tmp_path)
    assert has_ended(pid_in(tmp_path / "child"))


def cancel_when_started(command: str, cwd: Path) -> None:
    """Cancel a command that has written the file `child`."""

    async def main() -> None:
        task = asyncio.create_task(run(command, cwd=cwd, env=os.environ, timeout_s=60))
        await asyncio.to_thread(pid_in, cwd / "child")
        await asyncio.sleep(0.05)
        await cancel(task)

    asyncio.run(main())


async def cancel(task: asyncio.Task[ProcessResult]) -> None:
    task.cancel()

    async def outcome() -> None:
        with pytest.raises(asyncio.CancelledError):
            await task

    await soon(outcome())


@pytest.mark.parametrize("turns", range(8))
def test_cancelling_a_command_while_it_starts_leaves_no_process_behind(turns: int, tmp_path: Path) -> None:
    unique = f"sleep 60.{os.getpid()}{turns}"
    cancel_after_turns(turns, unique, tmp_path)
    assert all(map(has_ended, pids_of(unique)))


def pids_of(command: str) -> list[int]:
    shown = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in shown.splitlines() if command in line]


@pytest.mark.parametrize("turns", range(3))
def test_cancelling_a_command_that_cannot_start_is_still_a_cancellation(turns: int, tmp_path: Path) -> None:
    cancel_after_turns(turns, ["no-such-program"], tmp_path)


def cancel_after_turns(turns: int, command: str | Sequence[str], cwd: Path) -> None:
    """Cancel a command after so many turns of the event loop, unless it has failed by itself."""

    async def main() -> None:
        task = asyncio.create_task(run(command, cwd=cwd, env=os.environ, timeout_s=60))
        for _ in range(turns):
            await asyncio.sleep(0)
        if not task.done():
            await cancel(task)
        elif not task.cancelled():
            assert isinstance(task.exception(), ProcessFailed)

    asyncio.run(main())


RUNNER_VARIABLES = [
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_OUTPUT",
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNTIME_URL",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_CACHE_URL",
    "ACTIONS_RESULTS_URL",
]


@pytest.mark.parametrize("name", RUNNER_VARIABLES)
def test_a_variable_of_the_runner_is_not_inherited(name: str) -> None:
    assert name not in child_environment({name: "secret", "PATH": "/bin"})


@pytest.mark.parametrize("name", RUNNER_VARIABLES)
def test_a_variable_of_the_runner_passes_when_the_target_says_so(name: str) -> None:
    assert child_environment({name: "inherited"}, {name: "explicit"})[name] == "explicit"


@pytest.mark.parametrize("name", ["PATH", "OPENAI_API_KEY", "GITHUB_ACTIONS", "GITHUB_REPOSITORY", "CI", "XACTIONS_X"])
def test_every_other_variable_is_inherited(name: str) -> None:
    assert child_environment({name: "kept"})[name] == "kept"


def test_an_explicit_variable_wins_over_an_inherited_one() -> None:
    assert child_environment({"MODEL": "a"}, {"MODEL": "b"})["MODEL"] == "b"


def test_a_child_is_told_that_nobody_sees_colours() -> None:
    environment = child_environment({"TERM": "xterm-256color"})
    assert (environment["NO_COLOR"], environment["TERM"]) == ("1", "dumb")


def test_a_command_sees_the_environment_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> ProcessResult:
        return await run(["/usr/bin/env"], cwd=tmp_path, env={"ONLY": "this"}, timeout_s=30)

    assert asyncio.run(main()).stdout == "ONLY=this\n"


def test_a_variable_name_that_cannot_be_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="cannot start"):
        finish("true", tmp_path, env={"A=B": "c", "NUL": "a\0b"})


NODE_LIKE = """
import fcntl, os, sys, time
for _ in range(1000):
    if fcntl.fcntl(1, fcntl.F_GETPIPE_SZ) >= 1_000_000:
        break
    time.sleep(0.01)
os.set_blocking(1, False)
sys.stderr.write(str(os.write(1, b"x" * 1_000_000)))
"""


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="this system's pipes have one size")
def test_program_that_does_not_wait_for_its_reader_loses_nothing(tmp_path: Path) -> None:
    """Programs of Node write to a pipe without waiting, and lose what does not fit when they exit."""
    done = asyncio.run(run([sys.executable, "-c", NODE_LIKE], cwd=tmp_path, env=dict(os.environ), timeout_s=60))
    assert (len(done.stdout), done.stderr) == (1_000_000, "1000000")
