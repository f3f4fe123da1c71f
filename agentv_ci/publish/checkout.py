"""Decide whether what is checked out may be run.

Under `pull_request_target` and `workflow_run` a job has secrets and a token with write access. Evals run the agents,
scripts and prompts of the checkout, so a checkout of a fork's code is refused there (GitHub Security Lab, "Preventing
pwn requests").
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agentv_ci.errors import UsageError
from agentv_ci.guarded_git import git_command, with_credentials
from agentv_ci.process import ProcessFailed, child_environment, run
from agentv_ci.publish.workflow import Workflow
from agentv_ci.secret_values import MIN_LENGTH

GIT_TIMEOUT_S = 30.0
EXTRA_HEADER = r"^http\..*\.extraheader$"
HINT = "run evals under `pull_request`, which has no secrets, and publish their results from a `workflow_run` job"


class _Checkout(Struct, frozen=True):
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


async def refuse_fork_code(workflow: Workflow | None, roots: Sequence[Path], environ: Mapping[str, str]) -> None:
    """Raise UsageError if what is checked out must not run with this job's secrets and token."""
    reason = await refusal(workflow, roots, environ) if workflow is not None else None
    if reason is not None:
        raise UsageError(reason, hint=HINT)


async def refusal(workflow: Workflow, roots: Sequence[Path], environ: Mapping[str, str]) -> str | None:
    """Return why nothing may run; None: it may.

    `roots` are the repositories that files are read from. All checkouts in them and in the workspace are examined.
    """
    if not workflow.is_guarded:
        return None
    under = f"`{workflow.event}` gives access to secrets, and"
    for folder in roots:
        if not (folder / ".git").exists():
            return f"{under} '{folder}' may be a fork's code: it is not a git checkout"
    workspace = environ.get("GITHUB_WORKSPACE")
    folders = [*roots, *([Path(workspace)] if workspace else [])]
    for path in dict.fromkeys(found for folder in folders for found in _checkouts(folder)):
        checkout = await _checkout(path, environ)
        if checkout is None:
            return f"{under} '{path}' may be a fork's code: git cannot read it"
        if reason := _foreign(checkout, workflow):
            return f"{under} '{path}' {reason}"
    return None


def _foreign(found: _Checkout, workflow: Workflow) -> str | None:
    """Return why a checkout is not trusted; None: it is the base, or another repository of the same owner."""
    head, repository = workflow.head, workflow.repository.lower()
    if head is not None and (found.commit == head.sha or found.source == (head.repository or "").lower()):
        return "is a fork's code"
    if found.origin and found.source != repository:
        is_ours = found.source.partition("/")[0] == repository.partition("/")[0]
        return None if is_ours else f"may be a fork's code: it comes from {found.source}"
    if found.commit in (workflow.commit, workflow.base_commit):
        return None
    if any(f"refs/remotes/origin/{branch}" in found.refs for branch in workflow.base_branches):
        return None
    return f"may be a fork's code: commit {found.commit} is not the base's"


def _checkouts(folder: Path) -> Iterator[Path]:
    """Yield all checkouts in and below a folder, however deep: what a fork adds could hide there."""
    for path, folders, files in os.walk(folder):
        if ".git" in folders or ".git" in files:
            yield Path(path)
        folders[:] = [name for name in folders if name != ".git"]


async def _checkout(folder: Path, environ: Mapping[str, str]) -> _Checkout | None:
    commit = await _git(folder, environ, "rev-parse", "HEAD")
    if commit is None:
        return None
    origin = await _git(folder, environ, "config", "--get", "remote.origin.url")
    refs = await _git(folder, environ, "for-each-ref", "--points-at", "HEAD", "--format=%(refname)")
    return _Checkout(commit, origin or "", frozenset((refs or "").split()))


async def source_of(folder: Path, environ: Mapping[str, str]) -> str:
    """Return the `owner/name`, in lower case, that a checkout was fetched from; empty if it is unknown."""
    found = await _checkout(folder, environ)
    return found.source if found is not None and found.origin else ""


async def commit_of(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the commit of a checkout, with `-dirty` if files have changed since; None for other folders."""
    if not (folder / ".git").exists():
        return None
    return await _git(
        folder, environ, "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"
    )


async def credentials(folder: Path, environ: Mapping[str, str]) -> set[str]:
    """Return the token that actions/checkout leaves in git's configuration; empty outside of GitHub Actions.

    It is in a header, `AUTHORIZATION: basic` and the user and token in base64.
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        return set()
    found: set[str] = set()
    for line in (await _git(folder, environ, "config", "--get-regexp", EXTRA_HEADER) or "").splitlines():
        encoded = line.split()[-1]
        found.add(encoded)
        with suppress(ValueError):
            found.add(b64decode(encoded, validate=True).decode().rpartition(":")[2])
    return {each for each in found if len(each) >= MIN_LENGTH}


async def _git(folder: Path, environ: Mapping[str, str], *words: str) -> str | None:
    # A program on PATH could be an agent's, in the step that has the token.
    known = child_environment(environ)
    path = {"PATH": f"{os.defpath}:{known.get('PATH', '')}"}
    env = with_credentials({name: value for name, value in known.items() if not name.startswith("GIT_")}) | path
    command = git_command("-C", str(folder), *words)
    try:
        done = await run(command, cwd=folder, env=env, timeout_s=GIT_TIMEOUT_S)
    except (ProcessFailed, OSError):
        return None
    return done.stdout.strip() if done.status == 0 else None
