"""The texts a plan carries."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from agentv_ci.canonical import digest_of
from agentv_ci.contracts.plan import FileReference, FileText
from agentv_ci.contracts.source import Source

ReadText = Callable[[Path], str]
"""Read a UTF-8 file without touching its line ends."""


class Files:
    """Every referenced text once, by SHA-256."""

    def __init__(self, read_text: ReadText) -> None:
        self._read_text = read_text
        self._known: dict[Path, FileReference] = {}
        self._texts: dict[str, str] = {}
        self.paths: set[Path] = set()
        """All files that were read."""

    def add(self, source: Source, file_reference: str) -> FileReference:
        """Take in the file that a document refers to."""
        path = source.resolve(file_reference)
        if path not in self._known:
            text = self.read(path)
            digest = digest_of(text)
            self._texts[digest] = text
            self._known[path] = FileReference(path=relative(path, source.root), sha256=digest)
        return self._known[path]

    def read(self, path: Path) -> str:
        """Return the text of a file that the plan holds in another form."""
        self.paths.add(path)
        return self._read_text(path)

    def text(self, reference: FileReference) -> str:
        """Return the text of a file that was taken in."""
        return self._texts[reference.sha256]

    @property
    def texts(self) -> dict[str, FileText]:
        """SHA-256 → text; of equal files one path is named."""
        return {
            reference.sha256: FileText(path=reference.path, text=self._texts[reference.sha256])
            for reference in self._known.values()
        }


def relative(path: Path, root: Path) -> str:
    """Return a path from the repository, with `/` on every system."""
    return os.path.relpath(path, root).replace(os.sep, "/")
