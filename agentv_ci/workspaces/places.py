"""The folders of a run.

There is a base for each workspace, and a fresh copy for each trial and each grader.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from errno import EEXIST, ELOOP
from itertools import count
from pathlib import Path
from typing import IO, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.atomic import keep_out_of_git
from agentv_ci.base.process import (
    ProcessFailed,
    ProgramNotStarted,
    child_environment,
    kill_marked,
    run,
)
from agentv_ci.base.text import shortened
from agentv_ci.contracts.exchange import Listener, Log, ProcessResult
from agentv_ci.contracts.plan_parts import PlanFile, PlanWorkspace
from agentv_ci.contracts.results import Change
from agentv_ci.contracts.workspaces import Isolation
from agentv_ci.errors import UsageError
from agentv_ci.workspaces.bases import Base, UnusableWorkspace, base_in, fill, lay
from agentv_ci.workspaces.contents import key_of
from agentv_ci.workspaces.isolation import Box, Means, means_of
from agentv_ci.workspaces.leftovers import LOCK, PREFIX, remove_run, sweep
from agentv_ci.workspaces.programs import Hidden, is_system, needed_by, program_of, toolchains
from agentv_ci.workspaces.submission import submitted
from agentv_ci.workspaces.trees import (
    apply,
    changes,
    content_of,
    copy_tree,
    copying,
    impossible,
    remove_special,
    remove_tree,
)
from agentv_ci.workspaces.watching import watch

Keep = Literal["none", "failed", "all"]

KEPT = ".agentv/workspaces"
SETUP_TIMEOUT_S = 1800.0
COPY_TIMEOUT_S = 1800.0
MAX_DETAIL = 500
LANGUAGE = "C.UTF-8"
COUNTED = ("work", "home", "tmp", "shared")
"""Folders whose files count as those of a trial."""


class TrialPlace(Struct, frozen=True):
    """A copy of a base, with a HOME and a TMPDIR of its own; see Place."""

    at: Path
    box: Box
    path: str
    """PATH."""
    repository: Path
    hidden: Hidden

    @property
    def folder(self) -> Path:
        """See Place."""
        return self.at / "work"

    @property
    def scratch(self) -> Path:
        """See Place."""
        return self.at / "scratch"

    def make(self, *names: str) -> None:
        """Make folders beside the copy; raises OSError."""
        for name in names:
            (self.at / name).mkdir(parents=True)
            if name.startswith("shared/"):
                (self.at / name).chmod(0o1777)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str],
        timeout_s: float,
        stdin: bytes = b"",
        listener: Listener | None = None,
        reads: Sequence[Path] = (),
    ) -> ProcessResult:
        """See Place."""
        if isinstance(command, str):
            argv: tuple[str, ...] = ("/bin/sh", "-c", command)
        else:
            argv = (program_of(command[0]), *command[1:])
        if (
            "/" not in argv[0]
            and self.box.image is None
            and shutil.which(argv[0], path=self.path) is None
        ):
            # What confines it would only say so by its exit code.
            raise ProgramNotStarted(f"cannot be started: '{argv[0]}' is not on PATH")
        whole = {
            "PATH": self.path,
            "LANG": LANGUAGE,
            "TERM": "dumb",
            "NO_COLOR": "1",
            "AGENTV_REPOSITORY": str(self.repository),
            **env,
            "HOME": str(self.at / "home"),
            "TMPDIR": str(self.at / "tmp"),
        }
        program = Path(argv[0])
        own = needed_by(
            reads,
            program if program.is_absolute() and not is_system(program) else None,
            self.hidden,
        )
        box = replace(self.box, visible=tuple(dict.fromkeys((*self.box.visible, *own))))
        watching = None
        if box.limits:
            watching = watch(box.limits, list(map(self.at.joinpath, COUNTED)))
        try:
            return await run(
                box.confined(argv, whole, self.folder),
                cwd=self.folder,
                env=box.environment(whole),
                timeout_s=timeout_s,
                stdin=stdin,
                listener=listener,
                watch=watching,
                before_start=self.box.before_start,
            )
        finally:
            await self._end()

    async def _end(self) -> None:
        """End what the command has left behind.

        That is a container, or processes that have detached from the command.
        """
        if (removal := self.box.removal) is not None:
            with suppress(ProcessFailed):
                env = self.box.environment({})
                await asyncio.shield(run(removal, cwd=self.at, env=env, timeout_s=SETUP_TIMEOUT_S))
        elif self.box.means.isolation == "none":
            # Twice: one may have started another in between.
            for _ in range(2):
                kill_marked(f"HOME={self.at}/")


class Work(Struct, frozen=True):
    """What an agent has left behind: a base and its changes."""

    workspace: PlanWorkspace
    base: Base
    changes: tuple[Change, ...]
    places: Workspaces

    @asynccontextmanager
    async def clean_tree(self, files: Mapping[str, bytes]) -> AsyncIterator[TrialPlace]:
        """Make a fresh copy of the base with the submitted changes, and a grader's files over them.

        It is confined like the agent, without a network. Raises OSError, UnusableWorkspace.
        """
        chosen, _ = submitted(self.changes, self.workspace)
        async with self.places.copy(self.workspace, self.base, network=False) as place:
            await asyncio.to_thread(apply, chosen, place.folder)
            await asyncio.to_thread(lay, files, place.folder)
            yield place

    def file(self, path: str) -> bytes | None:
        """Return the content of a file as the agent left it; None if it does not exist.

        Raises OSError.
        """
        for change in self.changes:
            if change.path == path:
                return content_of(change)
        known = self.base.entries.get(path)
        if known is not None and known.link is None:
            return (self.base.folder / path).read_bytes()
        return None

    def mode(self, path: str) -> int | None:
        """Return the permission bits of a file as the agent left it; None if it does not exist."""
        for change in self.changes:
            if change.path == path:
                if change.base64 is None:
                    return None
                return change.mode
        known = self.base.entries.get(path)
        if known is not None and known.link is None:
            return known.mode
        return None


@dataclass(slots=True)
class Workspaces:
    """Makes the workspaces of a run.

    A context manager that removes them, and those of runs that were killed.
    """

    files: Mapping[str, PlanFile]
    """The plan's files."""
    root: Path
    """The repository."""
    environ: Mapping[str, str]
    log: Log
    keep: Keep = "none"
    folder: Path | None = None
    _lock: IO[bytes] | None = None
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _bases: dict[str, asyncio.Task[Base]] = field(default_factory=dict)
    _means: dict[Isolation, Means] = field(default_factory=lambda: {"none": Means("none", None)})
    _ended: dict[Hashable, TrialPlace] = field(default_factory=dict)
    """By trial, the workspace of its last attempt, until it is known whether to keep it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder is not None and self._lock is not None:
            remove_run(self.folder)
            self._lock.close()
            self.folder = self._lock = None

    def _open(self) -> Path:
        """Return the folder of this run.

        Its lock, which ends with this process, shows others that it is in use.
        """
        if self.folder is None:
            parent = Path(tempfile.gettempdir()).resolve()
            for each in sweep(parent):
                self.log(f"removed the workspaces of a run that was killed: {each}")
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            new = self.folder / f"{LOCK}.new"
            self._lock = new.open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            # Others look for it only once it is locked.
            new.rename(self.folder / LOCK)
        return self.folder

    async def require(self, isolations: Iterable[Isolation]) -> None:
        """Raise UsageError if this machine cannot isolate like this."""
        for isolation in isolations:
            means = self._means[isolation] = await means_of(isolation, self.environ)
            if means.problem is not None:
                raise UsageError(
                    f"isolation '{isolation}' is not available here: {means.problem}", means.hint
                )

    async def base_of(self, workspace: PlanWorkspace) -> Base:
        """Return the base of a workspace, made when it is first needed.

        Raises OSError, UnusableWorkspace.
        """
        key = key_of(workspace)
        if key not in self._bases:
            self._bases[key] = asyncio.ensure_future(self._make(workspace))
        return await asyncio.shield(self._bases[key])

    async def _make(self, workspace: PlanWorkspace) -> Base:
        place = self._place(workspace, network=True)
        place.make("work", "home", "tmp", "scratch", "root", "shared/tmp", "shared/shm")
        await fill(place.folder, workspace, self.files, self.root, self.environ)
        for argv in workspace.setup:
            try:
                ended = await place.run(argv, env={}, timeout_s=SETUP_TIMEOUT_S)
            except ProcessFailed as error:
                raise UnusableWorkspace(f"setup: {argv[0]} {error}") from error
            if ended.status != 0:
                said = shortened(
                    " ".join((ended.stderr.strip() or ended.stdout.strip()).split()), MAX_DETAIL
                )
                raise UnusableWorkspace(
                    f"setup: {' '.join(argv)}: exit code {ended.status}: {said}"
                )
        return await base_in(place.folder)

    async def work_of(self, workspace: PlanWorkspace, found: tuple[Change, ...]) -> Work:
        """Return what an agent has left behind; raises OSError, UnusableWorkspace."""
        if (path := impossible(found)) is not None:
            raise UnusableWorkspace(f"{path!r} cannot be a change of an agent")
        return Work(workspace, await self.base_of(workspace), found, self)

    @asynccontextmanager
    async def open(
        self, workspace: PlanWorkspace, trial: Hashable
    ) -> AsyncIterator[tuple[TrialPlace, Callable[[], tuple[Change, ...]]]]:
        """Make a fresh workspace, and remove it.

        Also yields what returns its changes, once no process is alive.

        Raises OSError, UnusableWorkspace.
        """
        base = await self.base_of(workspace)
        async with self.copy(
            workspace, base, network=workspace.network == "on", trial=trial
        ) as place:
            yield place, lambda: changes(base.entries, place.folder)

    async def settle(self, trial: Hashable, name: str, *, passed: bool) -> str | None:
        """Keep or remove the workspace of a trial.

        Returns where it is kept, relative to the repository.
        """
        place = self._ended.pop(trial, None)
        if place is None:
            return None
        try:
            if self.keep == "all" or not passed:
                return await asyncio.to_thread(self._keep, place.folder, name)
        except OSError as error:
            self.log(f"a workspace cannot be kept: {error}")
        finally:
            await asyncio.to_thread(remove_tree, place.at)
        return None

    def _keep(self, tree: Path, name: str) -> str:
        folder = self.root / KEPT
        for each in (folder.parent, folder, folder / ".gitignore"):
            if each.is_symlink():
                raise OSError(ELOOP, "it is a link", str(each))
        keep_out_of_git(folder)
        folder.chmod(0o700)  # an agent may have made programs that run as this user (setuid)
        kept = folder / (re.sub(r"[^\w.-]+", "_", name).lstrip(".") or "case")
        remove_tree(kept)
        if os.path.lexists(kept):
            raise FileExistsError(EEXIST, "it cannot be removed", str(kept))
        remove_special(tree)
        shutil.move(tree, kept)
        return f"{KEPT}/{kept.name}"

    @asynccontextmanager
    async def copy(
        self, workspace: PlanWorkspace, base: Base, *, network: bool, trial: Hashable = None
    ) -> AsyncIterator[TrialPlace]:
        """Copy a base, and remove the copy, unless it may be kept for a trial.

        Raises OSError, UnusableWorkspace.
        """
        place = self._place(workspace, network=network)
        try:
            place.make("home", "tmp", "scratch", "root", "shared/tmp", "shared/shm")
            await self._copy(base.folder, place.folder)
            yield place
        finally:
            unneeded: TrialPlace | None = place
            if trial is not None and self.keep != "none":
                unneeded, self._ended[trial] = self._ended.get(trial), place
            if unneeded is not None:
                await asyncio.shield(asyncio.to_thread(remove_tree, unneeded.at))

    async def _copy(self, tree: Path, place: Path) -> None:
        argv = copying(tree, place)
        if argv is None:
            await asyncio.to_thread(copy_tree, tree, place)
            return
        env = {"PATH": self.environ.get("PATH", "")}
        try:
            ended = await run(argv, cwd=tree, env=env, timeout_s=COPY_TIMEOUT_S)
        except ProcessFailed as error:
            raise UnusableWorkspace(f"{argv[0]} {error}") from error
        if ended.status != 0:
            raise UnusableWorkspace(shortened(" ".join(ended.stderr.split()), MAX_DETAIL))

    def _place(self, workspace: PlanWorkspace, *, network: bool) -> TrialPlace:
        number = next(self._numbers)
        at = self._open() / str(number)
        path = self.environ.get("PATH", "")
        home = self.environ.get("HOME", "")
        hidden = Hidden(self.root, (at, *((Path(home),) if home.startswith("/") else ())))
        box = Box(
            # Never less than what was asked for: what is not required first is an error.
            means=self._means[workspace.isolation],
            network=network or workspace.isolation == "none",
            writable=tuple(map(at.joinpath, ("work", "home", "tmp", "scratch"))),
            visible=(
                *(toolchains(path, hidden) if workspace.isolation != "container" else ()),
                *(self.root / Path(os.path.expanduser(path)) for path in workspace.visible),  # noqa: PTH111
            ),
            image=workspace.image,
            limits=workspace.limits,
            masked=(self.root,) if is_system(self.root) else (),
            root=at / "root",
            shared=at / "shared",
            name=f"{at.parent.name}-{number}",
            engine_env=child_environment(self.environ)
            if workspace.isolation == "container"
            else {},
        )
        return TrialPlace(at, box, path, self.root, hidden)
