"""Find commits of a Git repository on this machine, without Git: compiling starts no programs.

Layout of repositories: https://git-scm.com/docs/gitrepository-layout.
"""

from __future__ import annotations

import re
from pathlib import Path

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
MOST_LINKS = 5
"""References that refer to others."""


def is_commit(ref: str) -> bool:
    """Whether a ref is the whole id of a commit."""
    return COMMIT.fullmatch(ref) is not None


def is_url(repository: str) -> bool:
    """Whether a repository is on another machine: `https://…`, or `user@host:path`."""
    return "://" in repository or re.match(r"[^/]+@[^/]+:", repository) is not None


def git_folder(repository: Path) -> Path | None:
    """Return the folder with the history of a repository or a worktree.

    None where there is none.
    """
    if (repository / "HEAD").is_file() and (repository / "objects").is_dir():
        return repository
    found = repository / ".git"
    if found.is_file():
        named = _line(found).removeprefix("gitdir:").strip()
        return repository / named if named else None
    return found if found.is_dir() else None


def commit_of(repository: Path, ref: str) -> str | None:
    """Return the commit that a branch, a tag, `origin/main` or `HEAD` refers to.

    None for one that does not exist.
    """
    folder = git_folder(repository)
    if folder is None:
        return None
    common = folder / _line(folder / "commondir") if (folder / "commondir").is_file() else folder
    for _ in range(MOST_LINKS):
        if is_commit(ref):
            return ref
        found = _value(folder, common, ref)
        if found is None:
            return None
        ref = found.removeprefix("ref:").strip()
    return None


def _value(folder: Path, common: Path, ref: str) -> str | None:
    """Return what a ref contains: a commit, or `ref:` and another ref."""
    is_whole = ref == "HEAD" or ref.startswith("refs/")
    names = [ref] if is_whole else [f"refs/{kind}/{ref}" for kind in ("heads", "tags", "remotes")]
    packed = _packed(common / "packed-refs")
    for name in names:
        for place in (folder, common):
            if ".." not in name and (text := _line(place / name)):
                return text
        if name in packed:
            return packed[name]
    return None


def _packed(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    pairs = (line.split(" ", 1) for line in lines if line[:1] not in ("#", "^") and " " in line)
    return {name: commit for commit, name in pairs}


def _line(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").split("\n", 1)[0].strip()
    except OSError:
        return ""
