"""The files of the base branch, fetched from GitHub before any agent runs.

A change is compared with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentv_ci.base.checkout import source_of
from agentv_ci.contracts.exchange import Environment
from agentv_ci.github.base_files import PERMISSION
from agentv_ci.github.clone import empty_clone
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow
from agentv_ci.ledger.branch import REMOTE
from agentv_ci.ledger.git import Git
from agentv_ci.workspaces.git_refs import commit_of

MOST_COMMITS = 200
"""Of each branch, among which the commit is looked for that they have in common."""
BASE = "refs/agentv/base"
HEAD = "refs/agentv/head"


async def fetch_base_tree(
    folder: Path, workflow: Workflow, token: str | None, *, cwd: Path, environment: Environment
) -> Path:
    """Check out, in a new folder, the commit of the base branch that a change begins at.

    Raises NotPublished.

    That is the newest commit that both have. Of a checkout that GitHub does not know, it is the end
    of the base branch. Fetching it costs what the checkout of the change does, without files of Git
    LFS and submodules.
    """
    if workflow.base_branch is None:
        raise NotPublished("the base branch is unknown")
    commits, tree = folder / "commits", folder / "tree"
    for path in (commits, tree):
        path.mkdir(parents=True)
    async with empty_clone(commits, workflow, token, environment, PERMISSION) as known:
        commit = await _base_commit(
            Git(commits, known.variables), workflow, cwd, environment.variables
        )
    async with empty_clone(tree, workflow, token, environment, PERMISSION) as known:
        git = Git(tree, {**known.variables, "GIT_LFS_SKIP_SMUDGE": "1"})
        await git.run("fetch", "--quiet", "--depth=1", REMOTE, commit)
        await git.run("checkout", "--quiet", "--detach", commit)
    return tree


async def _base_commit(
    git: Git, workflow: Workflow, cwd: Path, variables: Mapping[str, str]
) -> str:
    fetch = ("fetch", "--quiet", "--filter=tree:0", f"--depth={MOST_COMMITS}", REMOTE)
    base = f"+refs/heads/{workflow.base_branch}:{BASE}"
    root = await repository_root(cwd, workflow, variables)
    head = commit_of(root, "HEAD") if root is not None else None
    is_of_event = head is not None and head in (workflow.commit, workflow.shown_commit)
    if is_of_event and (await git.attempt(*fetch, base, f"+{head}:{HEAD}")).status == 0:
        shared = await git.attempt("merge-base", BASE, HEAD)
        if shared.status == 0:
            return shared.stdout.strip()
    await git.run(*fetch, base)
    return (await git.run("rev-parse", BASE)).strip()


async def repository_root(
    path: Path, workflow: Workflow, variables: Mapping[str, str]
) -> Path | None:
    """Return the outermost checkout of the workflow's repository that contains a path.

    None for files elsewhere.

    A change may have made another checkout within it.
    """
    checkouts = [folder for folder in (path, *path.parents) if (folder / ".git").exists()]
    for root in reversed(checkouts):
        if await source_of(root, variables) in ("", workflow.repository.lower()):
            return root
    return None
