"""Trees of commits, checked out below `.agentv/` as long as an experiment needs them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType

from agentv_ci.errors import UsageError
from agentv_ci.workspaces.bases import UnusableWorkspace, git
from agentv_ci.workspaces.git_refs import commit_of

FOLDER = Path(".agentv", "commits")
SHORT = 12
"""Digits of a commit that name its folder."""


class CommitTrees(AbstractContextManager["CommitTrees"]):
    """Checks out commits as worktrees of Git, and removes them at the end."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._trees: dict[Path, Path] = {}
        """Tree → its repository."""

    def at(self, root: Path, ref: str) -> Path:
        """Return the tree of a branch, a tag or a commit.

        Raises UsageError if it cannot be checked out.
        """
        commit = commit_of(root, ref)
        if commit is None:
            raise UsageError(f"'{root}' has no '{ref}'")
        tree = root / FOLDER / commit[:SHORT]
        if tree not in self._trees:
            if tree.exists():
                message = f"'{tree}' exists: another experiment uses it, or one was killed"
                raise UsageError(message, hint=f"if none runs: git worktree remove --force {tree}")
            self._trees[tree] = root
            self._git(root, "worktree", "add", "--quiet", "--force", "--detach", str(tree), commit)
        return tree

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove all trees."""
        for tree, root in self._trees.items():
            shutil.rmtree(tree, ignore_errors=True)
            self._git(root, "worktree", "prune")
            with suppress(OSError):
                tree.parent.rmdir()

    def _git(self, root: Path, *arguments: str) -> None:
        try:
            asyncio.run(git(arguments, root, self._variables))
        except UnusableWorkspace as error:
            raise UsageError(str(error)) from error
