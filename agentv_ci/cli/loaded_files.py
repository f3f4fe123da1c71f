"""What a later start of this interpreter would load, as far as agents can change it.

That is more than its files: some places are searched before the standard library and are empty by
default. See the search for the standard library (Modules/getpath.py of CPython) and for libraries
(ld.so(8)).
"""

from __future__ import annotations

import os
import re
import ssl
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.file_states import State, file_states

BESIDE_THE_LIBRARY = frozenset({"site-packages", "dist-packages", "test"})
"""Folders of Python that the tool does not import from; agents may install packages there."""
LOADED_NAME = re.compile(
    r".+\.(so|dylib)(\..+)?|.*\._pth|pybuilddir\.txt|pyvenv\.cfg|glibc-hwcaps|tls|x86_64|haswell|avx512_1"
)
"""Names in the folders of programs and libraries that the interpreter or the linker looks for."""
OF_PACKAGES = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64")
"""Folders in which the packages of a system put libraries: only root can."""
OPENSSL = ("OPENSSL_CONF", "SSL_CERT_FILE")


class Watched(Struct, frozen=True):
    """What must stay as it is."""

    paths: tuple[Path, ...]
    """Files and folders, with everything in them; also those that do not exist."""
    folders: tuple[Path, ...]
    """Folders in which only names that would be loaded count."""

    def states(self) -> dict[str, State]:
        """Return the state of each file; what is not there has none."""
        return file_states([*self.paths, *self._named()], without=BESIDE_THE_LIBRARY)

    def _named(self) -> Iterator[Path]:
        for folder in self.folders:
            try:
                names = os.listdir(folder)  # noqa: PTH208  # names are enough
            except OSError:
                continue
            yield from (folder / name for name in names if LOADED_NAME.fullmatch(name) is not None)


def loaded_files(environ: Mapping[str, str]) -> Watched:
    """Return what another process would load and this user can change.

    The process has this interpreter and environment.
    """
    programs = list(_with_links([Path(sys.executable)]))
    library = list(map(Path, filter(_is_of_base, sys.path)))
    openssl = Path(ssl.get_default_verify_paths().openssl_cafile).with_name("openssl.cnf")
    named = list(map(Path, filter(None, map(environ.get, OPENSSL))))
    mapped = list(_mapped())
    paths = dict.fromkeys(_with_links([*programs, *library, openssl, *named, *mapped]))
    searched = list(map(Path, filter(None, environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))))
    searched += [Path(sys.base_prefix, name) for name in ("lib", "lib64")]
    for program in programs:
        searched += (program.parent, program.parent.parent)
    folders = dict.fromkeys(_with_links([*searched, *(each.parent for each in mapped)]))
    return Watched(
        tuple(filter(_may_change, paths)),
        tuple(
            each for each in folders if not str(each).startswith(OF_PACKAGES) and _may_change(each)
        ),
    )


def _is_of_base(path: str) -> bool:
    return path.startswith((sys.base_prefix, sys.base_exec_prefix))


def _mapped() -> Iterator[Path]:
    """Yield the programs and libraries that this process has loaded; only on Linux."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    yield from dict.fromkeys(
        Path(fields[5]) for line in lines if (fields := line.split(maxsplit=5))[5:] and "/" in line
    )


def _with_links(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield paths, the links on the way to each, and what they lead to."""
    waiting = list(paths)
    known: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in known:
            continue
        known.add(path)
        yield path
        for link in (path, *path.parents):
            if link.is_symlink():
                waiting += (link, link.parent / link.readlink())
        if (real := path.resolve()) != path:
            waiting.append(real)


def _may_change(path: Path) -> bool:
    """Whether this user can change what is at a path.

    Owners can, whatever its mode says, and so can who owns a folder. An entry of a sticky folder belongs to its owner alone.
    """
    user = os.geteuid()
    is_there = False
    for part in (path, *path.parents):
        try:
            state = part.stat()
        except OSError:
            continue
        is_protected = is_there and bool(state.st_mode & stat.S_ISVTX)
        if state.st_uid == user or (os.access(part, os.W_OK) and not is_protected):
            return True
        is_there = True
    return False
