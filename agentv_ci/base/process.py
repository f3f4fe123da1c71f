"""Child processes with limits on time and output, which cannot outlive a run.

Every child leads its own session, so that everything it starts can be ended with it: TERM, a grace
period, KILL. On Linux, processes that left the session are found through their parents (proc(5)).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from agentv_ci.base.mappings import grouped
from agentv_ci.contracts.exchange import Listener, ProcessResult

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
GRACE_S = 5.0
DRAIN_S = 0.5
"""How long to wait for output after the command itself has ended."""
DONE_GRACE_S = 3.0
"""How long a command may take to end after it has done its work."""

RUNNER_VARIABLES = frozenset(
    {
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"),
        *("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    }
)
"""Variables of a workflow's runner that agents must not get; those that begin with ACTIONS_ count
too.
"""

ProcessId = tuple[int, int]
"""Process id and start time: ids are reused."""

_running: set[int] = set()
"""Session leaders that would outlive this process."""

Watch = Callable[[int], Awaitable[str]]
"""Watches a process by its id; returns why it must end."""


class ProcessFailed(Exception):
    """A command could not start, printed too much, or was killed."""

    def __init__(self, sentence: str, stdout: str = "", stderr: str = "") -> None:
        super().__init__(sentence)
        self.stdout = stdout
        self.stderr = stderr


class ProgramNotStarted(ProcessFailed):
    """The program of a command could not be started."""


class ProcessTimedOut(ProcessFailed):
    """A command took too long and was killed."""


def child_environment(
    environ: Mapping[str, str], extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a child: `environ` without the runner's variables, then `extra`."""
    return {"NO_COLOR": "1", **without_runner(environ), "TERM": "dumb", **(extra or {})}


def without_runner(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the runner's variables.

    These are tokens, and paths of its command files.
    """
    return {
        name: value
        for name, value in environ.items()
        if name not in RUNNER_VARIABLES and not name.startswith("ACTIONS_")
    }


def kill_all() -> None:
    """Kill all children at once, for a process that cannot end in order."""
    for leader in tuple(_running):
        signal_tree(leader, signal.SIGKILL)


async def run(  # noqa: PLR0913  # all that a process may be given
    command: str | Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes = b"",
    listener: Listener | None = None,
    spares_children: bool = False,
    watch: Watch | None = None,
    before_start: Callable[[], None] = lambda: None,
) -> ProcessResult:
    """Run a shell command or a list of arguments to its end; raises ProcessFailed.

    When the command ends, children that still hold its output are killed, unless it is meant to
    start something that lasts (`spares_children`). `listener` gets the output as it comes. When
    `watch` returns, the command is killed. `before_start` changes what the command inherits from
    this thread.
    """
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    transport, output = await _start(argv, cwd, env, listener, before_start, feeds=bool(stdin))
    watching = asyncio.ensure_future(watch(transport.get_pid())) if watch is not None else None
    settling = asyncio.ensure_future(_settled(listener.done)) if listener is not None else None
    is_late = False
    try:
        if stdin:
            _feed(transport, stdin)
        try:
            async with asyncio.timeout(timeout_s):
                await output.answered(watching, settling)
        except TimeoutError:
            # It may have ended, and only its output is waited for.
            is_late = transport.get_returncode() is None
        is_done = (
            listener is not None and listener.done.is_set() and transport.get_returncode() is None
        )
        if is_late or is_done:
            output.asked_to_end = signal_tree(transport.get_pid(), signal.SIGTERM)
            await asyncio.wait((output.ended,), timeout=GRACE_S)
    finally:
        for task in (watching, settling):
            if task is not None:
                task.cancel()
        await _end(
            transport,
            output,
            spares_children=spares_children and transport.get_returncode() is not None,
        )
    if watching is not None and watching.done() and not watching.cancelled():
        raise ProcessFailed(watching.result(), output.text(STDOUT), output.text(STDERR))
    if is_done:
        return ProcessResult(0, output.text(STDOUT), output.text(STDERR))
    if is_late:
        raise ProcessTimedOut(
            f"timed out after {timeout_s:g} s", output.text(STDOUT), output.text(STDERR)
        )
    if output.is_flooded:
        raise ProcessFailed(
            f"printed more than {MAX_OUTPUT_BYTES // 1024 // 1024} MiB",
            output.text(STDOUT),
            output.text(STDERR),
        )
    status = transport.get_returncode()
    assert status is not None, "an ended process has a status"
    return ProcessResult(status, output.text(STDOUT), output.text(STDERR))


STDIN, STDOUT, STDERR = 0, 1, 2


class _Output(asyncio.SubprocessProtocol):
    """Collects the output of a process up to a limit, and notices its end.

    Not asyncio's streams: they wait for the pipes of grandchildren, differently in every version.
    """

    def __init__(self, listener: Listener | None) -> None:
        loop = asyncio.get_running_loop()
        self._listener = listener
        self.is_flooded = False
        self.ended = loop.create_future()
        self.drained = loop.create_future()
        """Done when all of its output is closed."""
        self.closed = loop.create_future()
        self._chunks: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        self._size = 0
        self._open = {STDOUT, STDERR}
        self.asked_to_end: frozenset[ProcessId] = frozenset()
        """Processes that got TERM; one that goes on cannot be found again when its parent has
        ended.
        """

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

    def pipe_connection_lost(
        self,
        fd: int,
        exc: Exception | None,  # noqa: ARG002  # the protocol's
    ) -> None:
        self._open.discard(fd)
        if not self._open:
            _settle(self.drained)

    def process_exited(self) -> None:
        _settle(self.ended)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the protocol's
        _settle(self.closed)

    async def answered(self, *others: asyncio.Future[Any] | None) -> None:
        """Wait until the process has ended, or until one of `others` ends.

        After the end of the process, wait a moment longer for its last output.
        """
        # Not `await self.ended`: a timeout would cancel the future, and the end would not be
        # noticed.
        any_of = [self.ended, *filter(None, others)]
        await asyncio.wait(any_of, return_when=asyncio.FIRST_COMPLETED)
        if self.ended.done() and not self.is_flooded:
            await asyncio.wait((self.drained,), timeout=DRAIN_S)

    def text(self, fd: int) -> str:
        """Return the output of a pipe."""
        return b"".join(self._chunks[fd]).decode("utf-8", "replace")


async def _settled(done: asyncio.Event) -> None:
    """Wait until a command has had some time to end after its work."""
    while True:
        await done.wait()
        await asyncio.sleep(DONE_GRACE_S)
        if done.is_set():
            return


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _start(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    listener: Listener | None,
    before_start: Callable[[], None],
    *,
    feeds: bool,
) -> tuple[asyncio.SubprocessTransport, _Output]:
    def made() -> _Output:
        # Nothing else runs between this and the fork.
        before_start()
        return _Output(listener)

    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            made,
            *argv,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.PIPE if feeds else asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    try:
        # Cancelling the start would kill only the command, not the processes it has started.
        started = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError, ValueError):
            await _end(*await starting)
        raise
    except (OSError, ValueError) as error:
        # ValueError: a NUL character in an argument or a name.
        raise _not_started(argv, cwd, error) from error
    _widen(started[0])
    return started


def _widen(transport: asyncio.SubprocessTransport) -> None:
    """Enlarge the pipe: Node programs lose output that does not fit into it when they exit."""
    pipe = transport.get_pipe_transport(STDOUT)
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        # ValueError: the command has already ended.
        with suppress(OSError, ValueError):
            fcntl.fcntl(pipe.get_extra_info("pipe"), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _not_started(argv: Sequence[str], cwd: Path, error: OSError | ValueError) -> ProcessFailed:
    if not cwd.is_dir():
        return ProcessFailed(f"cannot start: working directory '{cwd}' does not exist")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ProgramNotStarted(f"cannot start '{argv[0]}': {reason}")


def _feed(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """Write standard input, which the command need not read."""
    pipe = transport.get_pipe_transport(STDIN)
    assert isinstance(pipe, asyncio.WriteTransport)
    pipe.write(data)
    pipe.write_eof()


async def _end(
    transport: asyncio.SubprocessTransport, output: _Output, *, spares_children: bool = False
) -> None:
    """End a process with everything it started, and close its pipes."""
    try:
        if not spares_children:
            # If the command has ended and its output is closed, killing its group is enough, and
            # fast.
            if output.ended.done() and output.drained.done() and not output.asked_to_end:
                signal_group(transport.get_pid(), signal.SIGKILL)
            else:
                signal_tree(transport.get_pid(), signal.SIGKILL, output.asked_to_end)
            # Closing the transport before the process has ended may lose its status.
            await asyncio.wait((output.ended,), timeout=GRACE_S)
    finally:
        transport.close()
        _running.discard(transport.get_pid())
    await output.closed


class _Process(NamedTuple):
    """A running process."""

    pid: int
    parent: int
    session: int
    started: int
    ticks: int
    """Processor time of it and of children that it has waited for."""
    pages: int
    """Resident memory."""

    @property
    def id(self) -> ProcessId:
        """What distinguishes it from a later process with the same number."""
        return self.pid, self.started


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def signal_tree(
    leader: int, number: signal.Signals, known: frozenset[ProcessId] = frozenset()
) -> frozenset[ProcessId]:
    """Signal a process and all its descendants, including other groups and sessions.

    `known` are signalled too, even if their parents are gone; returns the processes that were
    signalled.
    """
    # List them first: once a parent has ended, its children cannot be found.
    processes = _processes()
    session = [process for process in processes if process.session == leader or process.id in known]
    tree = {process.id for process in _with_descendants(session, processes)}
    signal_group(leader, number)
    for pid, _ in tree:
        _signal(pid, number)
    return frozenset(tree)


class Usage(NamedTuple):
    """What a process and all its descendants use."""

    processes: int
    cpu_s: float
    memory_bytes: int


def usage_of(leader: int) -> Usage:
    """Return what a process, its session and their descendants use.

    Zeros where there is no /proc.
    """
    processes = _processes()
    session = [process for process in processes if leader in (process.session, process.pid)]
    tree: set[int] = set()
    ticks = pages = 0
    for process in _with_descendants(session, processes):
        if process.pid not in tree:
            tree.add(process.pid)
            ticks += process.ticks
            pages += process.pages
    cpu_s = ticks / os.sysconf("SC_CLK_TCK")
    return Usage(len(tree), cpu_s, pages * os.sysconf("SC_PAGE_SIZE"))


def _with_descendants(
    ancestors: Sequence[_Process], processes: Sequence[_Process]
) -> list[_Process]:
    """Return processes with all of their descendants, some of them twice."""
    return [*ancestors, *_below(ancestors, processes)]


def kill_marked(mark: str) -> int:
    """Kill this user's processes with a text in their environment; returns how many.

    Only on Linux.
    """
    found = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and mark.encode() in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
                found += 1
    return found


def children() -> list[int]:
    """Return the children of this process, in their order; only on Linux."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_bytes().split())
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> list[_Process]:
    """Return all processes; empty where there is no /proc."""
    processes: list[_Process] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name in parentheses may hold any characters.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 21 and fields[0] != b"Z":
            ticks = sum(map(int, fields[11:15]))
            figures = (int(fields[1]), int(fields[3]), int(fields[19]), ticks, int(fields[21]))
            processes.append(_Process(int(entry.name), *figures))
    return processes


def _below(ancestors: Sequence[_Process], processes: Iterable[_Process]) -> list[_Process]:
    """Return all descendants of processes."""
    children = grouped(processes, lambda process: process.parent)
    descendants: list[_Process] = []
    generation = ancestors
    while generation:
        born = chain.from_iterable(children.get(parent.pid, ()) for parent in generation)
        generation = list(born)
        descendants += generation
    return descendants
