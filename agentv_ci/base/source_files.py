"""Files of an agent's own code.

A plan has the SHA-256 of each, so that answers of older code are not reused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

NEVER_MEANT = frozenset({"node_modules", "venv", "__pycache__"})
"""Folders that a pattern means only if it names them."""


def find_files(pattern: str, folder: Path) -> tuple[Path, ...]:
    """Return what a name or a glob matches in a folder, in order; of a folder, all files below it.

    Links to folders are not followed. Hidden files count only if they are named.
    """
    from wcmatch import glob  # few targets have a pattern

    named = folder / pattern
    try:
        if named.is_file():
            return (named,)
        below = f"{glob.escape(pattern)}/**" if named.is_dir() else pattern
    except (OSError, ValueError):  # too long, or with a NUL byte
        return ()
    names = glob.glob(below, flags=glob.GLOBSTAR | glob.NODIR, root_dir=str(folder))
    unmeant = NEVER_MEANT - set(Path(pattern).parts)
    return tuple(folder / name for name in sorted(names) if unmeant.isdisjoint(Path(name).parts))


def fingerprint(path: Path, name: str) -> str:
    """Return a line like those of `sha256sum`; raises OSError."""
    with path.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}"


def names_of(fingerprints: Iterable[str]) -> dict[str, str]:
    """Return name → SHA-256 of fingerprints."""
    names: dict[str, str] = {}
    for line in fingerprints:
        digest, _, name = line.partition("  ")
        names[name] = digest
    return names


def changed_files(fingerprints: Sequence[str], root: Path) -> Iterator[str]:
    """Yield the names of files whose content is another one, or that are gone."""
    for line, name in zip(fingerprints, names_of(fingerprints), strict=True):
        try:
            if fingerprint(root / name, name) != line:
                yield name
        except OSError:
            yield name
