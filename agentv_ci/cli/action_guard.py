"""Keep the agents of a step away from the runner and from the steps that follow.

The step runs in a child process. This one only waits: it imports nothing once agents run, and its
memory and output are closed to other processes of the same user. When the child ends, or is killed,
it ends all processes that are left, restores what the runner reads, and compares the installed tool
with its state before. If that fails, or this process is killed, the step fails, and the action
gives the publishing step no token.

On Linux, processes are adopted (`PR_SET_CHILD_SUBREAPER`) and memory is closed (`PR_SET_DUMPABLE`),
see prctl(2). Other systems have neither.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from types import FrameType
from typing import NoReturn

import click
from msgspec import Struct

from agentv_ci.base.file_states import State
from agentv_ci.base.process import children
from agentv_ci.cli.loaded_files import Watched, loaded_files
from agentv_ci.errors import BUG, NotContained

SUBREAPER, DUMPABLE = 36, 4
FORWARDED = (signal.SIGINT, signal.SIGTERM)
END_S = 10.0
"""How long to try to end processes that keep starting new ones."""
STDOUT, STDERR = 1, 2
MATCHER = "::remove-matcher owner=python::"
"""actions/setup-python has the runner turn tracebacks in a log into annotations; agents could print
them.
"""

INSTALLER = (".github/actions", "pylock.toml", "agentv_ci", "schemas")
"""What a later use of the action runs or installs, in the action's folder."""
UNSAFE = "agentv-ci.unsafe"
"""A file in RUNNER_TEMP while agents run, and after them if they may have changed what later steps
use.
"""


class Kept(Struct, frozen=True):
    """What must be the same after agents ran."""

    runner_files: Mapping[Path, bytes]
    """Restored if they change: the content of each file through which a step commands the runner.
    """
    watched: Watched
    """What must not change."""
    states: Mapping[str, State]
    """The state of each of its files."""


def guarded(
    work: Callable[[], int], runner_files: Sequence[str], environ: Mapping[str, str]
) -> int:
    """Do the work of a step in a child process and return its exit code.

    Raises NotContained if agents have changed what later steps use, or cannot be ended.
    """
    _close_process()
    watched = _watched(environ)
    kept = Kept({Path(file): _read(Path(file)) for file in runner_files}, watched, watched.states())
    unsafe = None
    if scratch := environ.get("RUNNER_TEMP"):
        unsafe = Path(scratch, UNSAFE)
        unsafe.touch()
    child, ready = _start(work)
    with _no_imports():
        # The child has no copy of the token: agents may read its memory where that cannot be
        # closed.
        token = secrets.token_hex(16)
        click.echo(f"{MATCHER}\n::stop-commands::{token}")
        os.close(ready)
        code = _wait(child)
        for number in FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        try:
            _end_descendants()
            click.echo(f"::{token}::")
            for path, content in kept.runner_files.items():
                _restore(path, content)
            _compare(kept.states, kept.watched.states())
        except NotContained:
            if unsafe is not None:
                _restore(unsafe, b"")  # agents may have removed it
            raise
        if unsafe is not None:
            unsafe.unlink(missing_ok=True)
    return code


def _close_process() -> None:
    """Adopt orphans, and close this process and its forks to others.

    That is their memory, their environment and their output.
    """
    if sys.platform == "linux":
        import ctypes  # only needed here

        prctl = ctypes.CDLL(None).prctl
        prctl(SUBREAPER, 1, 0, 0, 0)
        prctl(DUMPABLE, 0, 0, 0, 0)


@contextmanager
def _no_imports() -> Iterator[None]:
    """Allow no imports, also after an error: agents could have changed the modules."""
    finders = sys.meta_path[:]
    sys.meta_path.clear()
    yield
    sys.meta_path[:] = finders


def _start(work: Callable[[], int]) -> tuple[int, int]:
    """Start a child process; return its id, and a descriptor: the child begins when it is closed.

    Signals are forwarded to the child.
    """
    held, ready = os.pipe()
    child = 0

    def forward(number: int, _: FrameType | None) -> None:
        if child:
            os.kill(child, number)

    handlers = {number: signal.signal(number, forward) for number in FORWARDED}
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(ready)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _work_and_exit(work, held)
    os.close(held)
    return child, ready


def _work_and_exit(work: Callable[[], int], held: int) -> NoReturn:
    code = BUG
    try:
        # A terminal sends Ctrl-C to the whole group, and the parent forwards it.
        os.setpgid(0, 0)
        os.read(held, 1)
        # Keeps the order of both streams, and standard error between the commands that enclose this
        # output.
        os.dup2(STDOUT, STDERR)
        # The files of the tool must stay as they are.
        sys.dont_write_bytecode = True
        code = work()
        sys.stdout.flush()
    finally:
        os._exit(code)


def _wait(child: int) -> int:
    """Wait for a child, reap adopted processes meanwhile, and return its exit code.

    A killed one is a bug.
    """
    while True:
        pid, status = os.wait()
        if pid != child:
            continue
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        return BUG


def _end_descendants() -> None:
    """Kill all descendants; raises NotContained if there are still some after a while.

    They are children of this process as soon as their parents end, so none is left when there are
    no children. Listing processes would miss one that ends and leaves another at that moment.
    """
    if sys.platform != "linux":
        return
    end = time.monotonic() + END_S
    while time.monotonic() < end:
        for pid in children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
    raise NotContained("processes that an agent started cannot be ended")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _restore(path: Path, content: bytes) -> None:
    """Make a file anew if it has changed; raises NotContained."""
    try:
        if path.is_file() and not path.is_symlink() and _read(path) == content:
            return
        if not os.access(path.parent, os.W_OK):
            path.parent.chmod(0o755)
        if path.is_dir() and not path.is_symlink():
            rmtree(path)
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise NotContained(
            f"an agent changed '{path}', and it cannot be restored: {error.strerror}"
        ) from error


def _watched(environ: Mapping[str, str]) -> Watched:
    """Return what later steps trust.

    That is the event and, where the action has installed the tool, it and all that its Python
    loads, and what installs it again. The rest of the action's folder is left out: in its own
    repository (`uses: ./`) it is the workspace.
    """
    named = [environ.get("GITHUB_EVENT_PATH")]
    if not (installed := environ.get("AGENTV_INSTALLED")):
        return Watched(tuple(map(Path, filter(None, named))), ())
    named += [installed, environ.get("AGENTV_CI")]
    if action := environ.get("GITHUB_ACTION_PATH"):
        named += (f"{action}/{file}" for file in INSTALLER)
    loaded = loaded_files(environ)
    return Watched((*map(Path, filter(None, named)), *loaded.paths), loaded.folders)


def _compare(before: Mapping[str, State], after: Mapping[str, State]) -> None:
    changed = sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )
    if changed:
        raise NotContained(f"an agent changed '{changed[0]}', which the next step uses")
