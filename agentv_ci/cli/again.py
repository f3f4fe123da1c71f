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
    named = {name: _from_root(cwd / path, root) for name, path in paths.items() if path is not None}
    given = named | {name: str(value) for name, value in values.items() if value is not None}
    return (
        *(f"{name}={value}" for name, value in given.items()),
        *(["--dry-run"] if dry_run else []),
    )


def _from_root(path: Path, root: Path) -> str:
    path = Path(os.path.normpath(path))
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
