"""The options that matter when a case of a run is run again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def options_again(
    root: Path,
    cwd: Path,
    *,
    paths: Mapping[str, str | None],
    values: Mapping[str, float | None],
    dry_run: bool,
) -> tuple[str, ...]:
    """Return the options that are set, as words of a command in the repository's root."""
    words: list[str] = []
    for name, path in paths.items():
        if path is not None:
            words.append(f"{name}={_from_root(cwd / path, root)}")
    words += (f"{name}={value}" for name, value in values.items() if value is not None)
    if dry_run:
        words.append("--dry-run")
    return tuple(words)


def _from_root(path: Path, root: Path) -> str:
    path = Path(os.path.normpath(path))
    if path.is_relative_to(root):
        path = path.relative_to(root)
    return str(path)
