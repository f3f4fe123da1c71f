"""Read files that an agent, or a grader with its code, has left.

They are read through no link, without waiting, and not too much.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL
from io import BufferedReader
from pathlib import Path

MOST_NAMED_BYTES = 512 * 1024 * 1024
FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_left(root: Path, name: str, most: int) -> bytes:
    """Return the content of a file below a folder of the tool.

    Raises OSError if it is a link, special or larger.

    No folder on the way to it may be a link, either.
    """
    with open_left(root, name) as file:
        return _bounded(file, most)


def open_left(root: Path, name: str) -> BufferedReader:
    """Open a file below a folder of the tool; see `read_left`."""
    folder = os.open(root, FLAGS | os.O_DIRECTORY)
    try:
        *folders, last = name.split("/")
        for inner_name in folders:
            inner = os.open(inner_name, FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return _regular(_opened(last, folder))
    finally:
        os.close(folder)


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a file that the user named, perhaps a link.

    Raises OSError if it is special or larger.
    """
    with open_regular(path) as file:
        return _bounded(file, most)


def open_regular(path: Path) -> BufferedReader:
    """Open a file that the user named; see `read_regular`."""
    return _regular(os.open(path, FLAGS))


def read_named(path: Path) -> bytes:
    """Return the content of a file or pipe that the user named.

    Raises OSError if it is a device or larger than MOST_NAMED_BYTES: in a checkout, it may be a
    link.
    """
    with open_named(path) as file:
        return _bounded(file, MOST_NAMED_BYTES)


def open_named(path: Path) -> BufferedReader:
    """Open a file or pipe that the user named; see `read_named`."""
    file = path.open("rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        file.close()
        raise OSError(EINVAL, "it is a device")
    return file


def _opened(name: str, folder: int) -> int:
    if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
        raise OSError(EINVAL, "it is a link")
    try:
        return os.open(name, FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    except PermissionError:
        # Of an agent that has closed it.
        os.chmod(name, stat.S_IRUSR | stat.S_IWUSR, dir_fd=folder)
        return os.open(name, FLAGS | os.O_NOFOLLOW, dir_fd=folder)


def _regular(descriptor: int) -> BufferedReader:
    """Return a file of a descriptor: a pipe would never end, and a device has no end."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(EINVAL, "it is not a regular file")
    return open(descriptor, "rb")  # the caller closes it


def _bounded(file: BufferedReader, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise OSError(EFBIG, f"it is larger than {most // 1024 // 1024} MiB")
    return content
