"""Writes files atomically, and never over an input."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from agentv_ci.errors import UsageError


@contextlib.contextmanager
def replacing(path: Path, *, scratch_name: str | None = None) -> Iterator[IO[bytes]]:
    """Yield a scratch file that replaces `path` when the block succeeds; raises OSError.

    Links are followed and permissions kept. Each process has a scratch file of its own unless it is
    named.
    """
    path = path.resolve()
    scratch = path.with_name(scratch_name or f".{path.name[:100]}.{os.getpid()}.new")
    # It may be left from an earlier process with the same id, or be another user's link.
    scratch.unlink(missing_ok=True)
    try:
        with scratch.open("xb") as file:
            yield file
        if path.exists():
            shutil.copymode(path, scratch)
        scratch.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise


def write_whole(
    path: Path, write: Callable[[IO[bytes]], object], *, is_appended: bool = False
) -> None:
    """Replace or append to a file; devices and pipes are written to directly.

    Raises OSError, with the file's name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = (
        path.open("ab")
        if is_appended or (path.exists() and not path.is_file())
        else replacing(path)
    )
    try:
        with opened as file:
            write(file)
    except OSError as error:
        # Only opening a file names it, not writing to it.
        error.filename = error.filename or str(path)
        raise


def keep_out_of_git(folder: Path) -> None:
    """Create a folder whose files git ignores; raises OSError."""
    mark = folder / ".gitignore"
    if not mark.exists():
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text("# Written by agentv-ci, and safe to remove.\n*\n", encoding="utf-8")


def refuse_to_overwrite(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise UsageError when an output is an input, or two outputs are the same file."""
    folders: dict[str, str] = {}
    taken = {_real(path, folders) for path in inputs}
    seen: set[str] = set()
    for path in outputs:
        real = os.path.realpath(path)
        if real in taken:
            raise UsageError(f"'{path}' is an input of this run and would be overwritten")
        if real in seen:
            raise UsageError(f"two outputs would be written to '{path}'")
        seen.add(real)


def _real(path: Path, folders: dict[str, str]) -> str:
    """Return a path without symbolic links; those of its folder are looked for once."""
    folder, name = os.path.split(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    found = os.path.join(folders[folder], name)  # noqa: PTH118  # for thousands of files
    return os.path.realpath(found) if os.path.islink(found) else found  # noqa: PTH114
