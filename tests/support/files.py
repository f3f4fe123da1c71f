"""Files that tests write and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def lines(text: str) -> Sequence[str]:
    """Return the lines of a text that are not blank."""
    return [line for line in text.splitlines() if line.strip()]
