"""What referenced paths lead to, remembered for a run: many documents refer to the same few files."""

from __future__ import annotations

import stat
from functools import lru_cache
from pathlib import Path

from agentv_ci.contracts.documents import ROLE_MARKER, InspectFile, ReferencedFile

REMEMBERED = 4096
MAX_BYTES = 64 * 1024 * 1024


def file_inspector() -> InspectFile:
    """Return a function that inspects files and remembers the last few thousand of them."""
    return lru_cache(maxsize=REMEMBERED)(inspect_file)


def inspect_file(path: Path, homes: tuple[Path, ...]) -> ReferencedFile:
    """Return what `path` leads to; what leads out of all `homes` is not opened. Never raises."""
    try:
        real = path.resolve()
        if not any(real.is_relative_to(home.resolve()) for home in homes):
            return ReferencedFile(real, "outside")
        status = real.stat()
    except (OSError, RuntimeError, ValueError):  # links in a circle; a NUL in the name
        return ReferencedFile(path, "missing")
    if stat.S_ISDIR(status.st_mode):
        return ReferencedFile(real, "folder")
    if not stat.S_ISREG(status.st_mode):
        return ReferencedFile(real, "unreadable", "it is not a regular file")
    if status.st_size > MAX_BYTES:
        return ReferencedFile(real, "unreadable", f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        text = real.read_bytes().decode("utf-8")
    except OSError as error:
        return ReferencedFile(real, "unreadable", error.strerror or str(error))
    except UnicodeDecodeError:
        return ReferencedFile(real, "not UTF-8")
    return ReferencedFile(
        real, "text" if text.strip() else "blank", has_role_marker=ROLE_MARKER.search(text) is not None
    )
