"""A scratch folder for one question: copies of its files and its prompt."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        try:
            yield Workspace(folder, tuple(_mirrored(files, folder / "files")))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise ProviderError("process", f"cannot write the files of the question: {error}") from error


def _mirrored(files: Iterable[InputFile], folder: Path) -> Iterator[Link]:
    seen: Counter[str] = Counter()
    for file in files:
        name = file.path.name
        copy = folder / (f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
        folder.mkdir(exist_ok=True)
        # Bytes, not metadata: an agent may be told to edit what the repository keeps read-only.
        copy.write_bytes(file.path.read_bytes())
        yield Link(copy, file.is_guideline)
