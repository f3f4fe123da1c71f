"""A ledger in a branch of git that holds nothing else.

With a remote `origin`, the branch is the remote's: it is fetched before it is read, and pushed with
what is added. Without one it is a local branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from msgspec import Struct

from agentv_ci.base.mappings import picked
from agentv_ci.base.text import counted
from agentv_ci.contracts.exchange import Environment, ProcessResult
from agentv_ci.contracts.ledger import Damage, Ledger, LedgerRun
from agentv_ci.errors import LedgerUnavailable
from agentv_ci.ledger.git import Git, failure
from agentv_ci.ledger.lines import FILE_NAME, MAX_FILE_BYTES, in_order, is_in_range, read_run

REMOTE = "origin"
QUIETLY = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
MAX_TRIES = 50
MAX_IN_VAIN = 3
"""Tries after which a push is given up while no other one changes the branch."""
MAX_WAIT_S = 2.0
README = """# Ledger of agentv-ci

What every case did in every run: \
a folder for each month, a file for each run, a line of JSON for each case.
`agentv-ci history` writes and reads it. Files are only added.
"""


class Tip(Struct, frozen=True):
    """Where a branch ends."""

    ref: str
    """Such as `refs/remotes/origin/agentv-history`."""
    commit: str
    """Empty: the branch does not exist yet."""
    is_new: bool = False
    """Whether the remote does not have it yet."""

    @property
    def name(self) -> str:
        """The ref and its commit, for people."""
        return f"{self.ref} ({self.commit[:7] or 'does not exist yet'})"


class _File(Struct, frozen=True):
    """A file in a commit."""

    path: str
    kind: str
    """Mode and type, such as `100644 blob`."""
    object_id: str
    size: int


PLAIN = "100644 blob"


async def read_branch(
    folder: Path, branch: str, environment: Environment, since: date | None = None
) -> Ledger:
    """Return the ledger in a branch of the repository of a folder; raises LedgerUnavailable."""
    git = Git(folder, environment.variables)
    tip = await _tip(git, branch)
    if not tip.commit:
        return Ledger(tip.name, (), ())
    await _fetch_missing(git, tip)
    found = await git.run("ls-tree", "-r", "-l", "-z", "--full-tree", tip.commit)
    damaged: list[Damage] = []
    files = list(_files_since(_files(found), since))
    usable = [file for file in files if _is_usable(file, damaged)]
    with TemporaryDirectory() as scratch:
        contents = Path(scratch) / "contents"
        wanted = "".join(f"{file.object_id}\n" for file in usable)
        await git.run("cat-file", "--batch", stdin=wanted.encode(), out=contents)
        with contents.open("rb") as file:
            runs = in_order(_runs(usable, file, damaged), since)
    return Ledger(tip.name, runs, tuple(damaged))


def _files_since(files: Iterable[_File], since: date | None) -> Iterator[_File]:
    """Yield the files of runs that may be of this time or later."""
    for file in files:
        if FILE_NAME.fullmatch(file.path) and is_in_range(file.path, since):
            yield file


async def _fetch_missing(git: Git, tip: Tip) -> None:
    """Fetch what a partial clone lacks of a ledger, which git would ask for file by file.

    Raises LedgerUnavailable.
    """
    if (
        await git.attempt("config", "--type=bool", "--get", f"remote.{REMOTE}.promisor")
    ).stdout.strip() != "true":
        return
    tree = f"{tip.commit}^{{tree}}"
    listed = await git.run("rev-list", "--objects", "--missing=print", "--no-object-names", tree)
    if missing := [line[1:] for line in listed.splitlines() if line.startswith("?")]:
        wanted = "\n".join([*missing, ""])
        await git.run(
            "fetch", *QUIETLY, "--filter=blob:none", "--stdin", REMOTE, stdin=wanted.encode()
        )


def _files(listed: str) -> Iterator[_File]:
    for entry in listed.split("\0")[:-1]:
        about, _, path = entry.partition("\t")
        mode, kind, object_id, size = about.split()
        yield _File(path, f"{mode} {kind}", object_id, int(size) if size.isdecimal() else 0)


def _is_usable(file: _File, damaged: list[Damage]) -> bool:
    if file.kind != PLAIN:
        damaged.append(Damage(file.path, "is not a regular file"))
    elif file.size > MAX_FILE_BYTES:
        damaged.append(Damage(file.path, f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB"))
    else:
        return True
    return False


def _runs(
    files: Sequence[_File], contents: IO[bytes], damaged: list[Damage]
) -> Iterator[LedgerRun]:
    """Yield runs from the output of `git cat-file --batch`.

    Each is a line with the size, the content, and a line break.
    """
    for file in files:
        *_, size = contents.readline().split()
        if not size.isdigit():
            damaged.append(Damage(file.path, "is missing from the repository"))
            continue
        content = contents.read(int(size) + 1)[:-1]
        if (run := read_run(file.path, content, damaged)) is not None:
            yield run


async def add_to_branch(
    folder: Path, branch: str, files: Mapping[str, bytes], environment: Environment
) -> list[str]:
    """Add the runs that a branch does not have, and return their paths in it.

    The work tree, the index and HEAD stay as they are. If another writer is faster, it is tried
    again on top of what that one has added. Raises LedgerUnavailable.
    """
    git = Git(folder, environment.variables)
    before, in_vain, done = "", 0, None
    for _ in range(MAX_TRIES):
        tip = await _tip(git, branch)
        known = ""
        if tip.commit:
            known = await git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", tip.commit)
        new = sorted(files.keys() - {*known.split("\0")})
        if not new:
            return []
        in_vain = in_vain + 1 if done is not None and tip.commit == before else 0
        if done is not None and in_vain >= MAX_IN_VAIN:
            raise failure("push", done)
        commit = await _commit(git, tip, picked(files, new), environment)
        done = await _move(git, branch, tip, commit)
        if done.status == 0:
            return new
        before = tip.commit
        await environment.sleep(environment.uniform(0.0, MAX_WAIT_S))
    raise LedgerUnavailable(f"'{branch}' was changed by others {counted(MAX_TRIES, 'time')}")


async def _tip(git: Git, branch: str) -> Tip:
    """Return where the branch ends, fetched if it is the remote's; raises LedgerUnavailable."""
    local = f"refs/heads/{branch}"
    if (await git.attempt("check-ref-format", local)).status != 0:
        raise LedgerUnavailable(f"'{branch}' is not a name for a branch")
    if (await git.attempt("rev-parse", "--git-dir")).status != 0:
        hint = "name a folder for the ledger with --dir"
        raise LedgerUnavailable(f"'{git.folder}' is not in a git repository", hint=hint)
    if not await _has_remote(git):
        return Tip(local, await _commit_of(git, local))
    ref = f"refs/remotes/{REMOTE}/{branch}"
    there = await _commit_there(git, local)
    if not there:
        # It may be from a time without a remote.
        return Tip(ref, await _commit_of(git, local), is_new=True)
    if await _commit_of(git, ref) != there:
        is_shallow = (await git.run("rev-parse", "--is-shallow-repository")).strip() == "true"
        depth = ("--depth=1",) if is_shallow else ()
        await git.run("fetch", *QUIETLY, *depth, REMOTE, f"+{local}:{ref}")
    return Tip(ref, await _commit_of(git, ref))


async def _commit_there(git: Git, local: str) -> str:
    """Return the commit of a branch of the remote; empty if it does not exist."""
    # Git also lists refs that end alike, such as refs/heads/x/refs/heads/agentv-history.
    for line in (await git.run("ls-remote", REMOTE, local)).splitlines():
        commit, ref = line.split("\t")
        if ref == local:
            return commit
    return ""


async def _has_remote(git: Git) -> bool:
    return (await git.attempt("config", "--get", f"remote.{REMOTE}.url")).status == 0


async def _refuse_current(git: Git, local: str) -> None:
    """Raise LedgerUnavailable if a local branch is checked out.

    Its files would no longer be those of HEAD.
    """
    current = await git.attempt("symbolic-ref", "--quiet", "HEAD")
    elsewhere = await git.run("for-each-ref", "--format=%(worktreepath)", local)
    if current.stdout.strip() == local or elsewhere.strip():
        hint = "check out another branch, or its commit with `git switch --detach`"
        raise LedgerUnavailable(f"{local} is checked out", hint=hint)


async def _commit_of(git: Git, ref: str) -> str:
    """Return the commit of a ref; empty if it does not exist."""
    return (
        await git.attempt("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    ).stdout.strip()


async def _move(git: Git, branch: str, tip: Tip, commit: str) -> ProcessResult:
    """Make the branch end at a commit, if it still ends where it did."""
    local = f"refs/heads/{branch}"
    if tip.ref == local:
        await _refuse_current(git, local)
        return await git.attempt("update-ref", local, commit, tip.commit)
    lease = f"--force-with-lease={local}:{'' if tip.is_new else tip.commit}"
    return await git.attempt("push", "--quiet", lease, REMOTE, f"{commit}:{local}")


async def _commit(git: Git, tip: Tip, files: Mapping[str, bytes], environment: Environment) -> str:
    """Return a new commit on top of a branch, with more files; nothing refers to it yet."""
    if not tip.commit:
        files = {"README.md": README.encode(), **files}
    with TemporaryDirectory() as scratch:
        index = Path(scratch) / "index"
        if tip.commit:
            await git.run("read-tree", tip.commit, index=index)
        blobs = await _blobs(git, files, Path(scratch))
        entries = "".join(f"{PLAIN} {blob}\t{path}\n" for path, blob in blobs.items())
        await git.run("update-index", "--add", "--index-info", stdin=entries.encode(), index=index)
        tree = (await git.run("write-tree", index=index)).strip()
    parent = ("-p", tip.commit) if tip.commit else ()
    date_at = f"{environment.now():%Y-%m-%dT%H:%M:%S%z}"
    dated = Git(
        git.folder, {**git.variables, "GIT_AUTHOR_DATE": date_at, "GIT_COMMITTER_DATE": date_at}
    )
    runs = sum(path != "README.md" for path in files)
    return (
        await dated.run("commit-tree", tree, *parent, "-m", f"Add {counted(runs, 'run')}")
    ).strip()


async def _blobs(git: Git, files: Mapping[str, bytes], scratch: Path) -> dict[str, str]:
    """Store files in the repository, and return the id of each by its path."""
    stored = [scratch / str(number) for number in range(len(files))]
    for path, content in zip(stored, files.values(), strict=True):
        path.write_bytes(content)
    names = "\n".join([*map(str, stored), ""])
    ids = await git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names.encode())
    return dict(zip(files, ids.split(), strict=True))
