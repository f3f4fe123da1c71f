"""What a git checkout is of.

Its commit, where it was fetched from, and the credentials that it keeps.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.guarded_git import git_command, with_credentials
from agentv_ci.base.process import ProcessFailed, child_environment, run
from agentv_ci.base.secret_values import MIN_LENGTH

GIT_TIMEOUT_S = 30.0
EXTRA_HEADER = r"^http\..*\.extraheader$"


class Checkout(Struct, frozen=True):
    """What is checked out in a folder."""

    commit: str
    origin: str
    """The address it was fetched from; empty: unknown."""
    refs: frozenset[str]
    """The refs that point at its commit."""

    @property
    def source(self) -> str:
        """`owner/name` of where it was fetched from, for any server and protocol."""
        address = self.origin.removesuffix("/").removesuffix(".git").lower().replace(":", "/")
        return "/".join(address.split("/")[-2:])


async def checkout_of(folder: Path, environ: Mapping[str, str]) -> Checkout | None:
    """Return what is checked out in a folder; None if git cannot tell."""
    commit = await _git(folder, environ, "rev-parse", "HEAD")
    if commit is None:
        return None
    origin = await _git(folder, environ, "config", "--get", "remote.origin.url")
    refs = await _git(folder, environ, "for-each-ref", "--points-at", "HEAD", "--format=%(refname)")
    return Checkout(commit, origin or "", frozenset((refs or "").split()))


async def source_of(folder: Path, environ: Mapping[str, str]) -> str:
    """Return the `owner/name`, in lower case, that a checkout was fetched from.

    Empty if it is unknown.
    """
    checkout = await checkout_of(folder, environ)
    if checkout is None or not checkout.origin:
        return ""
    return checkout.source


async def tracked_files(folder: Path, path: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files below a path that a checkout tracks, each with the id of its content."""
    entries = await _git(folder, environ, "ls-files", "--stage", "-z", "--", str(path)) or ""
    files: dict[str, str] = {}
    for entry in entries.split("\0"):
        if entry:
            head, _, name = entry.partition("\t")
            files[name] = head.split(" ")[1]
    return files


async def commit_of(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the commit of a checkout, with `-dirty` if files have changed since.

    None for other folders.
    """
    if not (folder / ".git").exists():
        return None
    return await _git(
        folder,
        environ,
        "--no-optional-locks",
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    )


async def credentials(folder: Path, environ: Mapping[str, str]) -> set[str]:
    """Return the token that actions/checkout leaves in git's configuration.

    Empty outside of GitHub Actions.

    It is in a header, `AUTHORIZATION: basic` and the user and token in base64.
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        return set()
    headers = await _git(folder, environ, "config", "--get-regexp", EXTRA_HEADER) or ""
    tokens: set[str] = set()
    for header in headers.splitlines():
        encoded = header.split()[-1]
        tokens.add(encoded)
        with suppress(ValueError):
            tokens.add(b64decode(encoded, validate=True).decode().rpartition(":")[2])
    return {token for token in tokens if len(token) >= MIN_LENGTH}


async def _git(folder: Path, environ: Mapping[str, str], *words: str) -> str | None:
    # A program on PATH could be an agent's, in the step that has the token.
    known = child_environment(environ)
    path = {"PATH": f"{os.defpath}:{known.get('PATH', '')}"}
    others = {name: value for name, value in known.items() if not name.startswith("GIT_")}
    env = with_credentials(others) | path
    command = git_command("-C", str(folder), *words)
    try:
        done = await run(command, cwd=folder, env=env, timeout_s=GIT_TIMEOUT_S)
    except (ProcessFailed, OSError):
        return None
    if done.status != 0:
        return None
    return done.stdout.strip()
