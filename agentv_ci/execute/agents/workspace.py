"""A scratch folder for one question: copies of its files and its prompt."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from agentv_ci.contracts.exchange import InputFile, ProviderError
from agentv_ci.execute.agents.preread import Link


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where an agent works."""

    folder: Path
    links: tuple[Link, ...]
    """The question's files, as copies in this folder."""


@contextmanager
def workspace(kind: str, files: Iterable[InputFile]) -> Iterator[Workspace]:
    """Make a workspace with copies of the files, and remove it with all that the agent leaves in it.

    Files of one name get `.1`, `.2` … behind it. Raises ProviderError when the disk takes no files.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"agentv-{kind}-")).resolve()
    except OSError as error:
        raise unwritable(error) from error
    try:
        yield Workspace(folder, _mirrored(files, folder / "files"))
    finally:
        _remove(folder)


def unwritable(error: OSError) -> ProviderError:
    """Return the failure of a question whose files cannot be written."""
    return ProviderError("process", f"cannot write the files of the question: {error}")


def _mirrored(files: Iterable[InputFile], folder: Path) -> tuple[Link, ...]:
    links: dict[str, Link] = {}
    try:
        for file in files:
            names = chain([file.path.name], (f"{file.path.name}.{number}" for number in count(1)))
            name = next(name for name in names if name not in links)
            folder.mkdir(exist_ok=True)
            # Bytes, not metadata: an agent may be told to edit what the repository keeps read-only.
            (folder / name).write_bytes(file.path.read_bytes())
            links[name] = Link(folder / name, file.is_guideline)
    except OSError as error:
        raise unwritable(error) from error
    return tuple(links.values())


def _remove(folder: Path) -> None:
    """Remove a folder, also one in which an agent made folders read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for place, _, _ in os.walk(folder):
            with suppress(OSError):
                Path(place).chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
