"""The plan's files on disk: the repository's own where they are unchanged, else scratch copies."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Self

from agentv_ci.contracts.plan_parts import FilePart, FileReference, PlanFile

Mark = tuple[int, int, int] | None
"""A file's modification time, size and inode when its content was that of the plan."""


def _mark(path: Path) -> Mark:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Materials:
    """Finds the plan's files on disk; a context manager that removes its scratch copies."""

    def __init__(self, files: Mapping[str, PlanFile], root: Path) -> None:
        self._files = files
        self._root = root
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._sets: dict[tuple[tuple[str, str], ...], tuple[Mapping[str, Path], list[Mark]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def locate(self, reference: FileReference | FilePart) -> Path:
        """Return the absolute path of a file with exactly the plan's content."""
        return self.locate_together([reference])[reference.path]

    def locate_together(self, references: Sequence[FileReference | FilePart]) -> Mapping[str, Path]:
        """Return path → absolute path of files that belong together: a script and what it loads.

        All are the repository's own, or all are scratch copies: a script never runs beside files
        that differ.
        """
        key = tuple((reference.path, reference.sha256) for reference in references)
        paths, marks = self._sets.get(key, ({}, [None]))
        # Agents edit files: check the content again when the marks have changed.
        if marks != list(map(_mark, paths.values())):
            paths = self._find(references)
            self._sets[key] = paths, list(map(_mark, paths.values()))
        return paths

    def _find(self, references: Sequence[FileReference | FilePart]) -> Mapping[str, Path]:
        originals: dict[str, Path] = {}
        for reference in references:
            original = self._original(reference)
            if original is None:
                return self._copied(references)
            originals[reference.path] = original
        return originals

    def _original(self, reference: FileReference | FilePart) -> Path | None:
        """Return the repository's file, if it still has the plan's content."""
        # Its own path, not that of a link's target.
        original = Path(os.path.normpath(self._root.resolve() / reference.path))
        try:
            same = hashlib.sha256(original.read_bytes()).hexdigest() == reference.sha256
        except OSError:
            return None
        return original if same else None

    def _copied(self, references: Sequence[FileReference | FilePart]) -> Mapping[str, Path]:
        """Write scratch copies, with the same relative paths as in the repository."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="agentv-ci-")
        places = {file.path: _below(file.path) for file in references}
        folder = _folder_without(places.values(), Path(self._scratch.name))
        try:
            for reference in references:
                copy = folder / places[reference.path]
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(self._files[reference.sha256].content)
        except OSError:
            # The disk may be full: leave no partial set.
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return {path: folder / place for path, place in places.items()}


def _folder_without(places: Collection[Path], root: Path) -> Path:
    """Return a numbered folder in which all of these places are free."""
    folders = (root / str(number) for number in count())
    return next(
        folder for folder in folders if not any((folder / place).exists() for place in places)
    )


def _below(path: str) -> Path:
    """Return a relative path that cannot leave its folder.

    `..` becomes `up`, and the root is dropped.
    """
    return Path(*("up" if part == ".." else part for part in Path(path).parts if part != "/"))
