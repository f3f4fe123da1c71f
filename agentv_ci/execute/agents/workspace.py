"""A scratch folder for one question: copies of its files and its prompt."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from agentv_ci.contracts.exchange import InputFile
from agentv_ci.execute.agents.preread import Link
from agentv_ci.execute.services import unwritable


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where an agent works."""

    folder: Path
    links: tuple[Link, ...]
    """The question's files, as copies in this folder."""


@asynccontextmanager
async def workspace(kind: str, files: Iterable[InputFile]) -> AsyncIterator[Workspace]:
    """Make a workspace with copies of the files, and remove it with all that the agent leaves in it.

    Files of one name get `.1`, `.2` … behind it. Raises ProviderError when the disk takes no files.
    """
    # In threads: other questions go on while files are copied, and while what an agent left is removed.
    making = asyncio.ensure_future(asyncio.to_thread(_make, kind, tuple(files)))
    try:
        made = await asyncio.shield(making)
    except asyncio.CancelledError:
        # A thread cannot be stopped: what it makes is removed.
        _remove((await making).folder)
        raise
    try:
        yield made
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, made.folder))


def _make(kind: str, files: Iterable[InputFile]) -> Workspace:
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"agentv-{kind}-")).resolve()
    except OSError as error:
        raise unwritable(error) from error
    try:
        return Workspace(folder, _mirrored(files, folder / "files"))
    except OSError as error:
        _remove(folder)
        raise unwritable(error) from error


def _mirrored(files: Iterable[InputFile], folder: Path) -> tuple[Link, ...]:
    links: dict[str, Link] = {}
    for file in files:
        names = chain([file.path.name], (f"{file.path.name}.{number}" for number in count(1)))
        name = next(name for name in names if name not in links)
        folder.mkdir(exist_ok=True)
        # Bytes, not metadata: an agent may be told to edit what the repository keeps read-only.
        (folder / name).write_bytes(file.path.read_bytes())
        links[name] = Link(folder / name, file.is_guideline)
    return tuple(links.values())


def _remove(folder: Path) -> None:
    """Remove a folder, also one in which an agent made folders read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for place, inside, _ in os.walk(folder):
            for path in (Path(place), *(Path(place, name) for name in inside)):
                with suppress(OSError):
                    if not path.is_symlink():
                        path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
