"""What an import takes and makes: a file of another tool, documents of ours, and what became of each construct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agentv_ci.contracts.source import Source

ImportKind = Literal["promptfoo", "agentv", "prompt-yml", "inspect", "deepeval", "openai-evals"]
"""The tool whose file is imported."""
Fate = Literal["kept", "approximated", "dropped"]
"""What became of a construct: the same, something near it, or nothing."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """What became of one construct of a file."""

    fate: Fate
    construct: str
    """What it is called in the file, such as `tests.assert.icontains`."""
    how: str
    """How it is approximated, or why it is dropped; may be empty if it is kept."""
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class ImportedFiles:
    """What an import writes."""

    texts: Mapping[str, str]
    """Path in the output folder → content."""
    notes: tuple[ImportNote, ...]

    def count(self, fate: Fate) -> int:
        """Return the number of places with a fate."""
        return sum(note.fate == fate for note in self.notes)


class ReadImports(Protocol):
    """Access to the files of another tool."""

    def document(self, path: Path) -> Source | None:
        """Return a YAML or JSON file; None if it cannot be read."""

    def text(self, path: Path) -> str | None:
        """Return a text; None if it cannot be read."""

    def matching(self, pattern: Path) -> list[Path]:
        """Return the files that a path or a glob names, in order."""
