"""Decide whether what is checked out may be run.

Under `pull_request_target` and `workflow_run` a job has secrets and a token with write access.
Evals run the agents, scripts and prompts of the checkout, so a checkout of a fork's code is refused
there (GitHub Security Lab, "Preventing pwn requests").
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from agentv_ci.base.checkout import Checkout, checkout_of
from agentv_ci.errors import UsageError
from agentv_ci.github.workflow import Workflow

HINT = (
    "run evals under `pull_request`, which has no secrets, and publish their results from a "
    "`workflow_run` job"
)


async def refuse_fork_code(
    workflow: Workflow | None, roots: Sequence[Path], environ: Mapping[str, str]
) -> None:
    """Raise UsageError if what is checked out must not run with this job's secrets and token."""
    if workflow is None:
        return
    reason = await refusal(workflow, roots, environ)
    if reason is not None:
        raise UsageError(reason, hint=HINT)


async def refusal(
    workflow: Workflow, roots: Sequence[Path], environ: Mapping[str, str]
) -> str | None:
    """Return why nothing may run; None: it may.

    `roots` are the repositories that files are read from. All checkouts in them and in the
    workspace are examined.
    """
    if not workflow.is_guarded:
        return None
    under = f"`{workflow.event}` gives access to secrets, and"
    for folder in roots:
        if not (folder / ".git").exists():
            return f"{under} '{folder}' may be a fork's code: it is not a git checkout"
    folders = [*roots]
    if workspace := environ.get("GITHUB_WORKSPACE"):
        folders.append(Path(workspace))
    for path in dict.fromkeys(chain.from_iterable(map(_checkouts, folders))):
        checkout = await checkout_of(path, environ)
        if checkout is None:
            return f"{under} '{path}' may be a fork's code: git cannot read it"
        if reason := _foreign(checkout, workflow):
            return f"{under} '{path}' {reason}"
    return None


def _foreign(found: Checkout, workflow: Workflow) -> str | None:
    """Return why a checkout is not trusted.

    None: it is the base, or another repository of the same owner.
    """
    head, repository = workflow.head, workflow.repository.lower()
    if head is not None and (
        found.commit == head.sha or found.source == (head.repository or "").lower()
    ):
        return "is a fork's code"
    if found.origin and found.source != repository:
        if found.source.partition("/")[0] == repository.partition("/")[0]:
            return None
        return f"may be a fork's code: it comes from {found.source}"
    if found.commit in (workflow.commit, workflow.base_commit):
        return None
    if any(f"refs/remotes/origin/{branch}" in found.refs for branch in workflow.base_branches):
        return None
    return f"may be a fork's code: commit {found.commit} is not the base's"


def _checkouts(folder: Path) -> Iterator[Path]:
    """Yield all checkouts in and below a folder, however deep.

    What a fork adds could hide there.
    """
    for path, folders, files in os.walk(folder):
        if ".git" in folders or ".git" in files:
            yield Path(path)
        folders[:] = [name for name in folders if name != ".git"]
