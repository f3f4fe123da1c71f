"""Child processes that cannot hang, flood or outlive a run.

Every child leads its own session, so that whatever it starts can be ended with it: TERM, a grace period, KILL. What
has left the session is found by its parents, and adopted when these end: on Linux, which lists processes (proc(5)).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
GRACE_S = 5.0
DRAIN_S = 0.5
"""How long output may still come after the command itself has ended."""

RUNNER_VARIABLES = frozenset(
    {
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITHUB_OUTPUT",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
    }
)
"""What belongs to the workflow and not to an agent; so does everything that begins with ACTIONS_."""

MAX_ROUNDS = 100
"""How often is looked for processes that are left; a killed one may have started another one just before."""

ProcessId = tuple[int, int]
"""Number and start of a process: its number may be another one's when it has ended."""

_adopts = False
"""Whether this process is the parent of orphans."""

_running: set[int] = set()
"""Leaders of sessions that would outlive this process."""

Listener = Callable[[int, bytes], None]
"""Takes what a process prints as it comes: 1 or 2 for the output it came through, and bytes."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """A command that ended by itself."""

    status: int
    """Exit status; −N after signal N."""
    stdout: str
    stderr: str


class ProcessFailed(Exception):
    """A command that could not start, printed too much, or was ended."""

    def __init__(self, sentence: str, stdout: str = "", stderr: str = "") -> None:
        super().__init__(sentence)
        self.stdout = stdout
        self.stderr = stderr


class ProgramNotStarted(ProcessFailed):
    """A command whose program the system did not start."""


class ProcessTimedOut(ProcessFailed):
    """A command that took too long and was ended."""


def child_environment(environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child: this process's without the runner's own variables, then `extra`."""
    return {"NO_COLOR": "1", **without_runner(environ), "TERM": "dumb", **(extra or {})}


def without_runner(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the runner's own variables: tokens, and files that it takes orders from."""
    return {
        name: value
        for name, value in environ.items()
        if name not in RUNNER_VARIABLES and not name.startswith("ACTIONS_")
    }


def kill_all() -> None:
    """End everything that runs now, at once, for a process that cannot wait for an orderly end."""
    for leader in tuple(_running):
        signal_tree(leader, signal.SIGKILL)


async def run(
    command: str | Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes = b"",
    listener: Listener | None = None,
    spares_children: bool = False,
) -> ProcessResult:
    """Run a shell text or a list of arguments to its end; raises ProcessFailed.

    A command that ends but leaves children holding its output has answered: what is left is killed, unless the command
    is there to start something that lasts (`spares_children`). `listener` gets the output as it comes.
    """
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    transport, output = await _start(argv, cwd, env, listener, feeds=bool(stdin))
    try:
        if stdin:
            _feed(transport, stdin)
        async with asyncio.timeout(timeout_s):
            await output.answered()
    except TimeoutError as error:
        output.asked_to_end = signal_tree(transport.get_pid(), signal.SIGTERM)
        await asyncio.wait((output.ended,), timeout=GRACE_S)
        raise ProcessTimedOut(f"timed out after {timeout_s:g} s", output.text(STDOUT), output.text(STDERR)) from error
    finally:
        await _end(transport, output, spares_children=spares_children and transport.get_returncode() is not None)
        bury_orphans()
    if output.is_flooded:
        raise ProcessFailed(
            f"printed more than {MAX_OUTPUT_BYTES // 1024 // 1024} MiB", output.text(STDOUT), output.text(STDERR)
        )
    status = transport.get_returncode()
    assert status is not None, "an ended process has a status"
    return ProcessResult(status, output.text(STDOUT), output.text(STDERR))


STDIN, STDOUT, STDERR = 0, 1, 2


class _Output(asyncio.SubprocessProtocol):
    """What a process prints, up to a limit, and when it has ended.

    The protocol, not asyncio's streams: those wait for the pipes of grandchildren, differently in every version.
    """

    def __init__(self, listener: Listener | None) -> None:
        loop = asyncio.get_running_loop()
        self._listener = listener
        self.is_flooded = False
        self.ended = loop.create_future()
        self.drained = loop.create_future()
        """Nothing holds its output any more."""
        self.closed = loop.create_future()
        self._chunks: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        self._size = 0
        self._open = {STDOUT, STDERR}
        self.asked_to_end: frozenset[ProcessId] = frozenset()
        """The processes asked to end; one that goes on is not found again when its parent has ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        _running.add(transport.get_pid())

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_OUTPUT_BYTES:
            self.is_flooded = True
            _settle(self.ended)
        else:
            self._chunks[fd].append(data)
            if self._listener is not None:
                self._listener(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  # the protocol's
        self._open.discard(fd)
        if not self._open:
            _settle(self.drained)

    def process_exited(self) -> None:
        _settle(self.ended)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the protocol's
        _settle(self.closed)

    async def answered(self) -> None:
        """Wait until the process has ended, and a moment longer for what it printed last."""
        # Not `await self.ended`: a time-out would cancel it, and its end would go unnoticed.
        await asyncio.wait((self.ended,))
        if not self.is_flooded:
            await asyncio.wait((self.drained,), timeout=DRAIN_S)

    def text(self, fd: int) -> str:
        """Return what came through a pipe."""
        return b"".join(self._chunks[fd]).decode("utf-8", "replace")


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], listener: Listener | None, *, feeds: bool
) -> tuple[asyncio.SubprocessTransport, _Output]:
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: _Output(listener),
            *argv,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.PIPE if feeds else asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    try:
        # A cancelled start would kill the command alone and leave what it has started already.
        started = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError, ValueError):
            await _end(*await starting)
        raise
    except (OSError, ValueError) as error:
        # ValueError: a NUL in an argument or a name.
        raise _not_started(argv, cwd, error) from error
    _widen(started[0])
    return started


def _widen(transport: asyncio.SubprocessTransport) -> None:
    """Let a command print much at once: programs of Node lose what waits in a full pipe when they exit."""
    pipe = transport.get_pipe_transport(STDOUT)
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        # ValueError: a command that has ended already.
        with suppress(OSError, ValueError):
            fcntl.fcntl(pipe.get_extra_info("pipe"), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _not_started(argv: Sequence[str], cwd: Path, error: OSError | ValueError) -> ProcessFailed:
    if not cwd.is_dir():
        return ProcessFailed(f"cannot start: the working directory does not exist: {cwd}")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ProgramNotStarted(f"cannot start '{argv[0]}': {reason}")


def _feed(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """Hand over what the command may read; it need not."""
    pipe = transport.get_pipe_transport(STDIN)
    assert isinstance(pipe, asyncio.WriteTransport)
    pipe.write(data)
    pipe.write_eof()


async def _end(transport: asyncio.SubprocessTransport, output: _Output, *, spares_children: bool = False) -> None:
    """End a process with everything it started, and close its pipes, whatever else holds them."""
    try:
        if not spares_children:
            # A command that has ended and holds no output any more is looked for by group alone: that takes no time.
            if output.ended.done() and output.drained.done() and not output.asked_to_end:
                signal_group(transport.get_pid(), signal.SIGKILL)
            else:
                signal_tree(transport.get_pid(), signal.SIGKILL, output.asked_to_end)
            # Closed before it has ended, a process may be waited for twice, and its status is lost.
            await asyncio.wait((output.ended,), timeout=GRACE_S)
    finally:
        transport.close()
        _running.discard(transport.get_pid())
    await output.closed


class _Process(NamedTuple):
    """A process that has not ended."""

    pid: int
    parent: int
    session: int
    started: int


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal the processes of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def signal_tree(leader: int, number: signal.Signals, known: frozenset[ProcessId] = frozenset()) -> frozenset[ProcessId]:
    """Signal a process with everything it started, whatever groups and sessions that has made of its own.

    `known` are signalled too, though what has started them may be gone; returns the processes that were signalled.
    """
    # Looked for first: the children of one that has ended have no parent to be found by.
    processes = _processes()
    session = [each for each in processes if each.session == leader or (each.pid, each.started) in known]
    tree = {(each.pid, each.started) for each in (*session, *_below([each.pid for each in session], processes))}
    signal_group(leader, number)
    for pid, _ in tree:
        _signal(pid, number)
    return frozenset(tree)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, so that none gets lost; on Linux alone.

    `PR_SET_CHILD_SUBREAPER`, see prctl(2).
    """
    global _adopts  # noqa: PLW0603  # it is the process's own
    if sys.platform == "linux":
        import ctypes  # no other command needs it

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        _adopts = True


def bury_orphans() -> None:
    """Forget the adopted processes that have ended; else they would take up numbers until this process ends.

    Those that lead a session may be commands whose end is waited for elsewhere: they are left to the end.
    """
    if not _adopts:
        return
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError, ValueError):
            for pid in map(int, listed.read_text().split()):
                with suppress(OSError):
                    if os.getsid(pid) != pid:
                        os.waitpid(pid, os.WNOHANG)


def end_descendants() -> None:
    """Kill all that this process has started, and all that was started by it in turn; on Linux alone."""
    for _ in range(MAX_ROUNDS):
        descendants = _below([os.getpid()], _processes())
        if not descendants:
            return
        for each in descendants:
            _signal(each.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> list[_Process]:
    """Return all processes, where the system lists them."""
    processes: list[_Process] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name in parentheses may hold anything.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 19 and fields[0] != b"Z":
            processes.append(_Process(int(entry.name), int(fields[1]), int(fields[3]), int(fields[19])))
    return processes


def _below(ancestors: Iterable[int], processes: Iterable[_Process]) -> list[_Process]:
    """Return the processes that others have started, and those that these have started in turn."""
    children: dict[int, list[_Process]] = {}
    for each in processes:
        children.setdefault(each.parent, []).append(each)
    descendants: list[_Process] = []
    generation = [child for pid in ancestors for child in children.get(pid, ())]
    while generation:
        descendants += generation
        generation = [child for parent in generation for child in children.get(parent.pid, ())]
    return descendants
