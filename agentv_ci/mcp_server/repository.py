"""The repository that a server shows: which files a client may name, and what it may see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from agentv_ci.base.redaction import Redactor, secrets_of
from agentv_ci.base.secret_values import worth_hiding
from agentv_ci.base.source_files import NEVER_MEANT
from agentv_ci.errors import UsageError
from agentv_ci.load.discover import discover
from agentv_ci.load.files import with_dotenv

DOTENV = ".env"


class Repository:
    """A folder that clients cannot leave, and the environment of the server."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root = root.resolve()
        self.environ = environ

    def patterns(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return paths, folders and globs that match files of the repository alone.

        Raises UsageError for any other, also if a link leads elsewhere, and for paths that do not
        exist.
        """
        for name in names:
            self.file(name)
        self.require_inside(each.path for each in discover(names, self.root))
        return tuple(names)

    def file(self, name: str) -> Path:
        """Return the path of a file, which need not exist.

        Raises UsageError if it is not in the repository.
        """
        path = self.root / name
        self._require_inside(path, name)
        return path

    def require_inside(self, paths: Iterable[Path]) -> None:
        """Raise UsageError unless all files are in the repository."""
        for path in paths:
            self._require_inside(path, path.name)

    def redactor(self) -> Redactor:
        """Return what masks the secrets of the environment and of the repository.

        The latter are all values in its `.env` files. Results may be of any folder, and of a time
        before this server.
        """
        values = chain.from_iterable(map(_values_in, self._dotenv_files()))
        return Redactor(secrets_of({}, {}, self.environ) | set(filter(worth_hiding, values)))

    def _dotenv_files(self) -> Iterator[Path]:
        """Yield the files that a run in any folder would read its variables from."""
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in NEVER_MEANT and name != ".git"]
            if DOTENV in names:
                yield Path(folder, DOTENV)

    def _require_inside(self, path: Path, name: str) -> None:
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:  # circular links; a NUL byte
            raise _outside(name) from error
        if not real.is_relative_to(self.root):
            raise _outside(name)
        if real.exists() and not (real.is_file() or real.is_dir()):
            raise UsageError(f"'{name}' is not a regular file")  # a pipe would hold up the server
        if ".git" in map(str.lower, real.relative_to(self.root).parts) or real.name.startswith(
            ".env"
        ):
            raise UsageError(f"'{name}' may contain credentials and is not read")


def _values_in(path: Path) -> Iterable[str]:
    try:
        # On its own: another file with the same names has other values.
        return with_dotenv({}, [path]).values() if path.is_file() else ()
    except (UsageError, OSError, ValueError):
        return ()


def _outside(name: str) -> UsageError:
    return UsageError(f"'{name}' is not a path in the repository")
