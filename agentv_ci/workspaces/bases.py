"""The tree that every trial of a workspace begins with: made once per run, then copied."""

from __future__ import annotations

import asyncio
import re
import tempfile
from codecs import escape_decode
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.guarded_git import NO_REPOSITORY, git_command, without_settings
from agentv_ci.base.process import ProcessFailed, run
from agentv_ci.base.text import shortened
from agentv_ci.contracts.plan_parts import PlanCommit, PlanFile, PlanFolder, PlanWorkspace
from agentv_ci.contracts.results import Change
from agentv_ci.workspaces.trees import (
    Entry,
    changes,
    cleared,
    copy_files,
    digest_of_files,
    entries,
    files_in,
    lfs_pointer_in,
)

GIT_TIMEOUT_S = 600.0
COPIED = re.compile(rb"^copy from (.*)", re.MULTILINE)
"""The file that a patch copies (git-diff(1), "Generating patch text")."""
MAX_DETAIL = 500


class UnusableWorkspace(Exception):
    """A workspace that cannot be made: its sentence says why."""


class Base(Struct, frozen=True):
    """The tree of a workspace before any agent has worked in it."""

    folder: Path
    entries: Mapping[str, Entry]


async def fill(
    tree: Path,
    workspace: PlanWorkspace,
    files: Mapping[str, PlanFile],
    root: Path,
    environ: Mapping[str, str],
) -> None:
    """Fill an empty folder with the files of a workspace, without its setup.

    Raises OSError, UnusableWorkspace.
    """
    if workspace.commit is not None:
        await _check_out(workspace.commit, tree, root, environ)
    elif workspace.folder is not None:
        await asyncio.to_thread(_copy, workspace.folder, workspace, tree, root)
    if workspace.patch is not None:
        await apply_patch(files[workspace.patch.sha256].content, tree, environ)
    await asyncio.to_thread(
        lay, {path: files[file.sha256].content for path, file in workspace.files.items()}, tree
    )
    if workspace.commit is not None:
        await asyncio.to_thread(_refuse_pointers, tree, workspace.commit.git)


def _refuse_pointers(tree: Path, repository: str) -> None:
    pointer = lfs_pointer_in(tree, files_in(tree))
    if pointer is not None:
        sentence = f"'{pointer}' of {repository} is a pointer of Git LFS, not the file itself"
        advice = (
            "run `git lfs pull` in a checkout and copy its folder, or replace the file with 'files'"
        )
        raise UnusableWorkspace(f"{sentence}; {advice}")


def lay(contents: Mapping[str, bytes], tree: Path) -> None:
    """Write files over a tree; raises OSError."""
    for path, content in contents.items():
        place = cleared(tree, path)
        place.write_bytes(content)
        place.chmod(0o755 if content.startswith(b"#!") else 0o644)


def _copy(folder: PlanFolder, workspace: PlanWorkspace, tree: Path, root: Path) -> None:
    place = root / folder.path
    if not place.is_dir():
        raise UnusableWorkspace(f"the folder '{folder.path}' does not exist in '{root}'")
    chosen = files_in(place, workspace.include, workspace.exclude)
    copy_files(place, chosen, tree)
    if digest_of_files(tree, chosen) != folder.sha256:
        raise UnusableWorkspace(f"the folder '{folder.path}' changed after the plan was compiled")


async def _check_out(
    commit: PlanCommit, tree: Path, root: Path, environ: Mapping[str, str]
) -> None:
    """Fetch a commit with its history, and nothing later."""
    place = root / commit.git
    origin, pack_options = commit.git, list[str]()
    if place.exists():
        # The default refuses commits that are no branch.
        pack = "git -c uploadpack.allowAnySHA1InWant=true upload-pack"
        origin, pack_options = str(place), ["--upload-pack", pack]
    await git(("init", "--quiet", "--template=", "."), tree, environ)
    await git(
        ("fetch", "--quiet", "--no-tags", *pack_options, "--", origin, commit.commit), tree, environ
    )
    await git(("checkout", "--quiet", "-B", "main", commit.commit), tree, environ)
    (tree / ".git" / "FETCH_HEAD").unlink(missing_ok=True)


async def apply_patch(patch: bytes, tree: Path, environ: Mapping[str, str]) -> None:
    """Apply a patch to a tree, which is not read as a repository; raises UnusableWorkspace."""
    # Git refuses to leave the tree, except for a file that is copied.
    if any(map(_leaves_the_tree, COPIED.findall(patch))):
        raise UnusableWorkspace("git apply: the patch copies a file from outside of the workspace")
    await git(
        ("apply", "--whitespace=nowarn", "-"), tree, environ, stdin=patch, variables=NO_REPOSITORY
    )


def _leaves_the_tree(name: bytes) -> bool:
    """Whether a path as Git writes it may be outside of the tree.

    Git may write it in quotes and with escapes.
    """
    try:
        path = escape_decode(name)[0].strip().strip(b'"')
    except ValueError:
        return True
    return path.startswith(b"/") or b".." in path.split(b"/")


async def changes_by(patch: bytes, base: Base, environ: Mapping[str, str]) -> tuple[Change, ...]:
    """Return what a patch changes in a base; raises OSError, UnusableWorkspace."""
    with tempfile.TemporaryDirectory(prefix="agentv-ci-") as scratch:
        tree = await asyncio.to_thread(_copied, base, scratch)
        await apply_patch(patch, tree, environ)
        return await asyncio.to_thread(changes, base.entries, tree)


def _copied(base: Base, scratch: str) -> Path:
    tree = Path(scratch).resolve() / "tree"
    tree.mkdir()
    copy_files(base.folder, base.entries, tree)
    return tree


async def git(
    arguments: tuple[str, ...],
    tree: Path,
    environ: Mapping[str, str],
    *,
    stdin: bytes = b"",
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run Git in a tree of our own, without hooks and without anyone's settings.

    Raises UnusableWorkspace.
    """
    env = {
        **without_settings(environ),
        "GIT_CEILING_DIRECTORIES": str(tree.parent),
        **(variables or {}),
    }
    try:
        ended = await run(
            git_command(*arguments), cwd=tree, env=env, timeout_s=GIT_TIMEOUT_S, stdin=stdin
        )
    except ProcessFailed as error:
        raise UnusableWorkspace(f"git {arguments[0]}: {error}") from error
    if ended.status != 0:
        raise UnusableWorkspace(
            f"git {arguments[0]}: {shortened(' '.join(ended.stderr.split()), MAX_DETAIL)}"
        )


async def base_in(tree: Path) -> Base:
    """Return a finished tree as a base; raises OSError."""
    return Base(tree, await asyncio.to_thread(entries, tree))
