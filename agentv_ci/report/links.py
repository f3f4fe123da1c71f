"""Where people look at the lines that a report names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

_SERVER = re.compile(r"https?://[\w.:-]+(/[\w./-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of lines in a repository's files."""

    base: str | None = None
    """The address of the repository's folder at one commit; None: it is not known."""

    @classmethod
    def of_commit(cls, server: str, repository: str, commit: str) -> Links:
        """Return those of a repository at one commit; none where the address of the server is none."""
        if not (repository and commit) or not _SERVER.fullmatch(server):
            return cls()
        return cls(f"{server}/{quoted(repository)}/blob/{quoted(commit)}")

    def to(self, path: str, line: int) -> str | None:
        """Return the address of a line; `path` is relative to the repository."""
        if self.base is None or path.startswith("/"):
            return None
        return f"{self.base}/{quoted(path)}#L{line}"


NO_LINKS = Links()


def quoted(path: str) -> str:
    """Return a path as part of an address; names of files need not be UTF-8."""
    try:
        return quote(path.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        # No name of a file, but rows come from anywhere.
        return quote(path.encode("utf-8", "replace"))
