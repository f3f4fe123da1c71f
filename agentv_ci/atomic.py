"""Files that are written: never over what was read, and replaced as a whole or not at all."""

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
    """Yield a file that takes the place of another one when all is written, or of none; raises OSError.

    A link stays one: the file behind it is replaced, and keeps its permissions. Processes that may replace the same
    file at the same time each have a scratch file of their own unless it is named.
    """
    path = path.resolve()
    scratch = path.with_name(scratch_name or f".{path.name[:100]}.{os.getpid()}.new")
    # An earlier process of this number may have left it, or another user may have put a link there.
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


def write_whole(path: Path, write: Callable[[IO[bytes]], object], *, is_appended: bool = False) -> None:
    """Put a file in its place when all of it is written; what is no file is written to. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = path.open("ab") if is_appended or (path.exists() and not path.is_file()) else replacing(path)
    with opened as file:
        write(file)


def refuse_to_overwrite(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise UsageError when an output is an input, or two outputs are one file."""
    taken = {path.resolve() for path in inputs}
    seen: set[Path] = set()
    for path in outputs:
        if path.resolve() in taken:
            raise UsageError(f"'{path}' is an input of this run and would be overwritten")
        if path.resolve() in seen:
            raise UsageError(f"two outputs would be written to '{path}'")
        seen.add(path.resolve())
