"""The plan's files as files: the repository's own where they still say the same, else scratch copies."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Self

from agentv_ci.contracts.plan import FileReference, FileText


class Materials:
    """Finds the plan's files on disk; a context manager that removes its scratch copies."""

    def __init__(self, files: Mapping[str, FileText], root: Path) -> None:
        self._files = files
        self._root = root
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._known: dict[tuple[str, str], Path] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def locate(self, reference: FileReference) -> Path:
        """Return the absolute path of a file with exactly the content that the plan knows."""
        key = (reference.path, reference.sha256)
        if key not in self._known:
            self._known[key] = self._find(reference)
        return self._known[key]

    def _find(self, reference: FileReference) -> Path:
        original = (self._root / reference.path).resolve()
        try:
            if hashlib.sha256(original.read_bytes()).hexdigest() == reference.sha256:
                return original
        except OSError:
            pass
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="agentv-ci-")
        # The parts of a path may be `..`; below the scratch folder they are names like any other.
        names = ("up" if part == ".." else part for part in Path(reference.path).parts if part != "/")
        parts = tuple(names)
        # Files of one script lie side by side as in the repository; another file of the same path lies elsewhere.
        copies = (Path(self._scratch.name, str(number), *parts) for number in count())
        copy = next(each for each in copies if not each.exists())
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(self._files[reference.sha256].text.encode("utf-8"))
        return copy
