"""What is checked out, and whether it may be run.

Under `pull_request_target` and `workflow_run` a job has secrets and a token that may write. Evals run the agents,
scripts and prompts of the checkout, so there a checkout of somebody else's code is refused (GitHub Security Lab,
"Preventing pwn requests").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentv_ci.process import ProcessFailed, child_environment, run
from agentv_ci.publish.context import GUARDED_EVENTS, Workflow

GIT_TIMEOUT_S = 30.0
HINT = "run evals under `pull_request`, which has no secrets, and publish what they leave from a `workflow_run` job"


@dataclass(frozen=True, slots=True)
class _Checkout:
    commit: str
    origin: str
    """The address it was fetched from; empty: none is known."""

    def is_of(self, repository: str) -> bool:
        """Whether it was fetched from a repository, `owner/name`, of whatever server and by whatever protocol."""
        address = self.origin.removesuffix("/").removesuffix(".git").lower()
        return address.endswith((f"/{repository.lower()}", f":{repository.lower()}"))


async def refusal(workflow: Workflow, folders: Iterable[Path], environ: Mapping[str, str]) -> str | None:
    """Return why what lies in these folders must not be run; None: it may."""
    head = workflow.head
    if workflow.event not in GUARDED_EVENTS or head is None or not workflow.is_from_fork:
        return None
    trusted = {each for each in (workflow.commit, workflow.base_commit) if each}
    for folder in dict.fromkeys(folders):
        found = await _checkout(folder, environ)
        where = f"under `{workflow.event}`, with secrets in reach, and what lies in '{folder}'"
        if found is None:
            return f"{where} cannot be told from a fork's code: it is no checkout of git"
        if found.commit == head.sha or (head.repository is not None and found.is_of(head.repository)):
            return f"{where} is a fork's code"
        if found.commit not in trusted and (not found.origin or found.is_of(workflow.repository)):
            return f"{where} may be a fork's code: commit {found.commit} is not that of the base"
    return None


async def _checkout(folder: Path, environ: Mapping[str, str]) -> _Checkout | None:
    commit = await _git(folder, environ, "rev-parse", "HEAD")
    if commit is None:
        return None
    return _Checkout(commit, await _git(folder, environ, "config", "--get", "remote.origin.url") or "")


async def _git(folder: Path, environ: Mapping[str, str], *words: str) -> str | None:
    # In a container the checkout belongs to somebody else, which git refuses to read by itself.
    command = ("git", "-c", "safe.directory=*", "-C", str(folder), *words)
    try:
        done = await run(command, cwd=folder, env=child_environment(environ), timeout_s=GIT_TIMEOUT_S)
    except (ProcessFailed, OSError):
        return None
    return done.stdout.strip() if done.status == 0 else None
