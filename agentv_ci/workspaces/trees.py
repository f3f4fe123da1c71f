"""Folders as trees of files: list, copy, compare and remove them.

What an agent wrote is never followed or executed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from errno import EINVAL
from io import BufferedReader
from itertools import count
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agentv_ci.base.canonical import canonical, digest_of
from agentv_ci.base.left_files import open_left
from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.attachments import MAX_POINTER_BYTES, is_lfs_pointer
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.results import Change
from agentv_ci.workspaces.globs import matches

NEVER = frozenset({".git", ".agentv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Names that are never copied from a folder and never count as changes: history, results, and what
tools keep.
"""
BYTECODE = (".pyc", ".pyo")
MAX_DEPTH = 100
"""Folders in folders."""
MAX_CHANGED_BYTES = 50 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024


class TooMuchChanged(Exception):
    """An agent has changed more than is kept."""


class Entry(Struct, frozen=True):
    """A file or a symbolic link of a tree."""

    mode: int
    """Permission bits; of a link 0."""
    sha256: str | None
    """Of a file's content; None for a link."""
    link: str | None = None
    """Target of a link."""
    size: int = 0
    """Bytes of a file."""


def entries(root: Path) -> dict[str, Entry]:
    """Return path → entry of every file and link, sorted; raises OSError."""
    return dict(sorted((_relative(entry.path, root), _entry(entry)) for entry in _walk(str(root))))


def files_in(root: Path, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> list[str]:
    """Return the sorted paths of the files and links of a folder that globs choose.

    Raises OSError.
    """
    include, exclude = tuple(include), tuple(exclude)
    found = (_relative(entry.path, root) for entry in _walk(str(root)))
    return sorted(
        each
        for each in found
        if (not include or matches(each, include)) and not (exclude and matches(each, exclude))
    )


def digest_of_files(root: Path, paths: Iterable[str]) -> str:
    """Return a digest of files: of their paths, executable bits and contents. Raises OSError."""
    listed: JsonObject = {}
    for each in paths:
        path = root / each
        if path.is_symlink():
            listed[each] = ["link", str(path.readlink())]
        else:
            listed[each] = [bool(path.stat().st_mode & stat.S_IXUSR), sha256_of(path)]
    return digest_of(canonical(listed))


def lfs_pointer_in(root: Path, paths: Iterable[str]) -> str | None:
    """Return the first of these files that is only a pointer of Git LFS; raises OSError."""
    for path in paths:
        status = (root / path).lstat()
        is_small = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_POINTER_BYTES
        if is_small and is_lfs_pointer((root / path).read_bytes()):
            return path
    return None


def sha256_of(path: Path) -> str:
    """Return the digest of a file; raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_files(root: Path, paths: Iterable[str], place: Path) -> None:
    """Copy files and links of a folder to an empty one; raises OSError."""
    for path in paths:
        copy = place / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, copy, follow_symlinks=False)


def remove_special(tree: Path) -> None:
    """Remove pipes, sockets and devices, for which readers would wait; raises OSError."""
    for folder, _, names in os.walk(tree):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink() and not path.is_file():
                path.unlink()


def copying(tree: Path, place: Path) -> tuple[str, ...] | None:
    """Return the command that copies a tree to a folder that does not exist.

    None where there is no fast one.

    Copies share their blocks with the original where the file system can.
    """
    match sys.platform:
        case "linux":
            return ("cp", "-a", "--reflink=auto", "--", str(tree), str(place))
        case "darwin":
            return ("cp", "-c", "-p", "-R", str(tree), str(place))
        case _:
            return None


def copy_tree(tree: Path, place: Path) -> None:
    """Copy a tree with everything in it, such as its history; raises OSError."""
    shutil.copytree(tree, place, symlinks=True)


def remove_tree(tree: Path) -> None:
    """Remove a tree, however deep, and what an agent has closed; what cannot be removed stays."""
    with suppress(OSError):
        if tree.is_symlink() or tree.is_file():
            tree.unlink()
            return
        tree.chmod(stat.S_IRWXU)
        root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            waiting = [*os.listdir(root)]  # noqa: PTH208  # of a descriptor
            names = (f".{number}" for number in count())
            while waiting:
                waiting += _emptied(root, waiting.pop(), names)
        finally:
            os.close(root)
        tree.rmdir()


def _emptied(root: int, name: str, names: Iterator[str]) -> list[str]:
    """Remove an entry of a folder, and move the folders in it up beside it.

    Returns their new names.

    So no path is longer than two names, however deep a tree is.
    """
    with suppress(OSError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=root)
            return []
        os.chmod(name, stat.S_IRWXU, dir_fd=root)
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
        moved: list[str] = []
        try:
            for inner in os.listdir(folder):  # noqa: PTH208
                with suppress(OSError):
                    if stat.S_ISDIR(os.stat(inner, dir_fd=folder, follow_symlinks=False).st_mode):
                        # A closed folder cannot be moved: its own entry for the parent changes.
                        os.chmod(inner, stat.S_IRWXU, dir_fd=folder)
                        new = next(new for new in names if not _exists(new, root))
                        os.rename(inner, new, src_dir_fd=folder, dst_dir_fd=root)
                        moved.append(new)
                    else:
                        os.unlink(inner, dir_fd=folder)
        finally:
            os.close(folder)
        with suppress(OSError):
            os.rmdir(name, dir_fd=root)
        return moved
    return []


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def changes(before: Mapping[str, Entry], tree: Path) -> tuple[Change, ...]:
    """Return what has changed in a tree, by path; raises OSError, and TooMuchChanged."""
    after = _entries_now(before, tree)
    known = dict(_changeable(before))
    found: list[Change] = []
    size = 0
    for path in sorted({*known, *after}):
        # A name that is not UTF-8 becomes another one: it is shown, and means nothing to a grader.
        shown = well_formed_text(path)
        if (now := after.get(path)) is None:
            found.append(Change(path=shown, kind="deleted"))
        elif now != (was := known.get(path)):
            content = None if now.link is not None else _content(str(tree / path))
            size += len(content or b"")
            if size > MAX_CHANGED_BYTES:
                raise _too_much()
            encoded = None if content is None else b64encode(content).decode("ascii")
            kind: Literal["added", "modified"] = "added" if was is None else "modified"
            link = None if now.link is None else well_formed_text(now.link)
            found.append(Change(path=shown, kind=kind, mode=now.mode, base64=encoded, link=link))
    return tuple(found)


def content_of(change: Change) -> bytes | None:
    """Return the content of a changed file; None for a link or a deleted file.

    Raises OSError for one that was not recorded as base64.
    """
    if change.base64 is None:
        return None
    try:
        return b64decode(change.base64)
    except ValueError as error:
        raise OSError(EINVAL, "it is not base64", change.path) from error


def impossible(found: Iterable[Change]) -> str | None:
    """Return the path of a recorded change that is none of an agent's; None if all can be."""
    for change in found:
        has_nul = "\0" in f"{change.path}{change.link}"
        if has_nul or not NEVER.isdisjoint(change.path.split("/")):
            return change.path
    return None


def apply(found: Iterable[Change], tree: Path) -> None:
    """Make changes in a tree, without leaving it through a link; raises OSError."""
    ordered = sorted(found, key=lambda change: (change.kind != "deleted", change.path))
    for change in ordered:
        place = cleared(tree, change.path)
        if change.link is not None:
            place.symlink_to(change.link)
        elif (content := content_of(change)) is not None:
            place.write_bytes(content)
            place.chmod(change.mode & 0o777 | stat.S_IRUSR)


def cleared(tree: Path, path: str) -> Path:
    """Return the place of a file in a tree, with nothing there, in folders that are no links.

    Raises OSError.
    """
    place = tree
    *folders, name = path.split("/")
    for folder in folders:
        place /= folder
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
    place /= name
    if place.is_dir() and not place.is_symlink():
        remove_tree(place)
    else:
        place.unlink(missing_ok=True)
    return place


def _changeable(found: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    for path, entry in found.items():
        if not path.endswith(BYTECODE):
            yield path, entry


def _relative(path: str, root: Path) -> str:
    return path[len(str(root)) + 1 :].replace(os.sep, "/")


def _walk(folder: str, depth: int = 0) -> Iterator[os.DirEntry[str]]:
    """Yield the files and links below a folder, except those that never count.

    Special files are left out.
    """
    if depth > MAX_DEPTH:
        raise TooMuchChanged(f"the agent nested folders deeper than {MAX_DEPTH}")
    with _listing(folder) as listing:
        for entry in listing:
            if entry.name in NEVER:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, depth + 1)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield entry


def _listing(folder: str) -> os._ScandirIterator[str]:
    try:
        return os.scandir(folder)
    except PermissionError:
        # Of an agent that has closed it.
        os.chmod(folder, stat.S_IRWXU)  # noqa: PTH101
        return os.scandir(folder)


def _entry(found: os.DirEntry[str]) -> Entry:
    if found.is_symlink():
        return Entry(0, None, os.readlink(found.path))  # noqa: PTH115
    state = found.stat(follow_symlinks=False)
    return Entry(stat.S_IMODE(state.st_mode), _sha256(found.path), size=state.st_size)


def _entries_now(before: Mapping[str, Entry], tree: Path) -> dict[str, Entry]:
    """Return path → entry of what may have changed.

    No more is read than may change: files can be all holes.
    """
    found: dict[str, Entry] = {}
    size = 0
    for entry in _walk(str(tree)):
        path = _relative(entry.path, tree)
        if path.endswith(BYTECODE):
            continue
        was = before.get(path)
        now = entry.stat(follow_symlinks=False).st_size
        size += 0 if was is not None and was.size == now else now
        if size > MAX_CHANGED_BYTES:
            raise _too_much()
        found[path] = _entry(entry)
    return found


def _too_much() -> TooMuchChanged:
    return TooMuchChanged(
        f"the agent changed files of more than {MAX_CHANGED_BYTES // 1024 // 1024} MiB"
    )


def _open(path: str) -> BufferedReader:
    folder, _, name = path.rpartition("/")
    return open_left(Path(folder), name)


def _sha256(path: str) -> str:
    with _open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content(path: str) -> bytes:
    with _open(path) as file:
        return file.read(MAX_CHANGED_BYTES + 1)
