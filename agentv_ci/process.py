"""Child processes that cannot hang, flood or outlive a run.

Every child leads its own session, so that whatever it starts can be ended with it: TERM, a grace period, KILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
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


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ended by itself."""

    status: int
    """Exit status; −N after signal N."""
    stdout: str
    stderr: str


class ProcessFailed(Exception):
    """A command that could not start, printed too much, or was ended."""


class ProcessTimedOut(ProcessFailed):
    """A command that took too long and was ended."""

    def __init__(self, timeout_s: float, stderr: str) -> None:
        super().__init__(f"timed out after {timeout_s:g} s")
        self.stderr = stderr


def child_environment(environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child: this process's without the runner's own variables, then `extra`."""
    inherited = {
        name: value
        for name, value in environ.items()
        if name not in RUNNER_VARIABLES and not name.startswith("ACTIONS_")
    }
    return {"NO_COLOR": "1", **inherited, "TERM": "dumb", **(extra or {})}


async def run(
    command: str | Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes = b"",
) -> Finished:
    """Run a shell text or a list of arguments to its end; raises ProcessFailed.

    A command that ends but leaves children holding its output has answered: what is left is killed.
    """
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        # ValueError: a NUL in an argument or a name.
        raise ProcessFailed(_cannot_start(argv, cwd, error)) from error
    output = _Output(process)
    try:
        async with asyncio.timeout(timeout_s):
            await output.collect(stdin)
    except TimeoutError as error:
        await _end(process)
        raise ProcessTimedOut(timeout_s, output.stderr) from error
    finally:
        await _end(process, grace_s=0)
        output.close()
    status = process.returncode
    assert status is not None, "an ended process has a status"
    return Finished(status, output.stdout, output.stderr)


def _cannot_start(argv: Sequence[str], cwd: Path, error: OSError | ValueError) -> str:
    if not cwd.is_dir():
        return f"the working directory does not exist: {cwd}"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"cannot start '{argv[0]}': {reason}"


class _Output:
    """Both pipes of a process, read at once and up to a limit."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._chunks: tuple[list[bytes], list[bytes]] = ([], [])
        self._size = 0

    @property
    def stdout(self) -> str:
        return b"".join(self._chunks[0]).decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return b"".join(self._chunks[1]).decode("utf-8", "replace")

    async def collect(self, stdin: bytes) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        readers = asyncio.gather(
            self._read(self._process.stdout, self._chunks[0]), self._read(self._process.stderr, self._chunks[1])
        )
        ended = asyncio.ensure_future(self._process.wait())
        try:
            await self._feed(stdin)
            await asyncio.wait((readers, ended), return_when=asyncio.FIRST_COMPLETED)
            if not readers.done():
                await asyncio.wait((readers,), timeout=DRAIN_S)
                _signal(self._process, signal.SIGKILL)
            await readers
            await ended
        finally:
            readers.cancel()
            ended.cancel()
            await asyncio.gather(readers, ended, return_exceptions=True)

    async def _feed(self, data: bytes) -> None:
        if self._process.stdin is None:
            return
        # A command need not read what it is given.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        self._process.stdin.close()

    async def _read(self, stream: asyncio.StreamReader, chunks: list[bytes]) -> None:
        while chunk := await stream.read(65536):
            self._size += len(chunk)
            if self._size > MAX_OUTPUT_BYTES:
                raise ProcessFailed(f"printed more than {MAX_OUTPUT_BYTES // 1024 // 1024} MiB")
            chunks.append(chunk)

    def close(self) -> None:
        # Without it, a pipe that a grandchild held open is closed by the garbage collector, with a warning.
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()


async def _end(process: asyncio.subprocess.Process, grace_s: float = GRACE_S) -> None:
    """End a process and everything it started."""
    if grace_s and process.returncode is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await process.wait()
    _signal(process, signal.SIGKILL)
    if process.returncode is None:
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
