"""Files beside documents: file references and `.env` files."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

from agentv_ci.base.mappings import known
from agentv_ci.contracts.attachments import is_lfs_pointer, media_type_of
from agentv_ci.contracts.documents import ROLE_MARKER, InspectFile, ReferencedFile
from agentv_ci.errors import UsageError

CACHED_FILES = 4096
MAX_BYTES = 64 * 1024 * 1024


def file_inspector() -> InspectFile:
    """Return `inspect_file` with a cache: many documents refer to the same files."""
    return lru_cache(maxsize=CACHED_FILES)(inspect_file)


def inspect_file(path: Path, homes: tuple[Path, ...]) -> ReferencedFile:
    """Return what `path` refers to; a file outside all `homes` is not opened. Never raises."""
    try:
        real = path.resolve()
        if ".git" in map(str.lower, real.parts):
            return ReferencedFile(real, "unreadable", "files of git may contain credentials")
        if not any(real.is_relative_to(home.resolve()) for home in homes):
            return ReferencedFile(real, "outside")
        status = real.stat()
    except (OSError, RuntimeError, ValueError):  # circular links; a NUL byte in the name
        return ReferencedFile(path, "missing")
    if stat.S_ISDIR(status.st_mode):
        return ReferencedFile(real, "folder")
    if not stat.S_ISREG(status.st_mode):
        return ReferencedFile(real, "unreadable", "not a regular file")
    if status.st_size > MAX_BYTES:
        return ReferencedFile(real, "unreadable", f"larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        content = real.read_bytes()
    except OSError as error:
        return ReferencedFile(real, "unreadable", error.strerror or str(error))
    if is_lfs_pointer(content):
        return ReferencedFile(real, "LFS pointer")
    format_ = partial(
        ReferencedFile, real, media_type=media_type_of(content), size_bytes=len(content)
    )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return format_("not UTF-8")
    return format_(
        "text" if text.strip() else "blank", has_role_marker=ROLE_MARKER.search(text) is not None
    )


def with_dotenv(environ: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    """Return `environ` plus the variables of `.env` files; the first value of a name wins.

    Raises UsageError for a file that cannot be read.
    """
    merged = dict(environ)
    for path in dict.fromkeys(files):
        for name, value in _read_dotenv(path).items():
            merged.setdefault(name, value)
    return merged


def _read_dotenv(path: Path) -> Mapping[str, str]:
    import logging  # few runs have such a file

    from dotenv import dotenv_values

    # It warns, without naming the file, about every line in shell syntax.
    logging.getLogger("dotenv.main").setLevel(logging.ERROR)
    try:
        # Without interpolation: a secret may contain `$`.
        values = dotenv_values(path, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read '{path}': {error}") from error
    return known(values)
