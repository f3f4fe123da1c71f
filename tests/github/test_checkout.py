"""A fork's code is not run with access to secrets; the checkouts are real ones."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.base.checkout import commit_of, credentials
from agentv_ci.errors import UsageError
from agentv_ci.github.fork_code import refusal, refuse_fork_code
from agentv_ci.github.workflow import Workflow, workflow_of
from tests.action import events
from tests.support import write

OTHER = "5" * 40


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Checkouts:
    """A checkout of the base, and one of a fork, with their commits."""

    base: Path
    fork: Path
    base_commit: str
    fork_commit: str

    def target(self, head: str | None = None, *, commit: str | None = None, **given: Any) -> Workflow:
        """A `pull_request_target` for the fork's commit, or another head."""
        payload = events.pull_request(head or self.fork_commit, fork=True, **given)
        return flow("pull_request_target", payload, commit or self.base_commit)


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Checkouts:
    folder = tmp_path_factory.mktemp("checkouts")
    commits = []
    for name, address in (("base", "https://github.com/acme/demo"), ("fork", "git@github.com:Stranger/demo.git")):
        (folder / name).mkdir()
        git(folder / name, "init", "-q", "-b", "main")
        git(folder / name, "remote", "add", "origin", address)
        git(folder / name, "commit", "-q", "--allow-empty", "-m", name)
        commits.append(git(folder / name, "rev-parse", "HEAD"))
    return Checkouts(folder / "base", folder / "fork", *commits)


def flow(event: str, payload: Any, commit: str) -> Workflow:
    return workflow_of(
        {"GITHUB_EVENT_NAME": event, "GITHUB_REPOSITORY": "acme/demo", "GITHUB_SHA": commit},
        payload,
    )


def refused(workflow: Workflow, folder: Path, **environ: str) -> str:
    return asyncio.run(refusal(workflow, [folder], {**os.environ, **environ})) or ""


def test_commit_of_a_checkout(tmp_path: Path) -> None:
    def commit() -> str | None:
        return asyncio.run(commit_of(tmp_path, os.environ))

    assert commit() is None
    git(tmp_path, "init", "-q")
    assert commit() is None
    write(tmp_path, {"a": "1"})
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "a")
    git(tmp_path, "tag", "v1")
    git(tmp_path, "config", "core.fsmonitor", "touch watched")
    assert commit() == git(tmp_path, "rev-parse", "HEAD")
    write(tmp_path, {"a": "2"})
    assert commit() == f"{git(tmp_path, 'rev-parse', 'HEAD')}-dirty"
    assert not (tmp_path / "watched").exists()


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target", "pull_request_review", "push"])
def test_after_the_run_of_a_fork(checkouts: Checkouts, event: str) -> None:
    payload = events.workflow_run(checkouts.fork_commit)
    payload["workflow_run"]["event"] = event
    after = flow("workflow_run", payload, checkouts.base_commit)
    said = refused(after, checkouts.fork)
    assert said == f"`workflow_run` gives access to secrets, and '{checkouts.fork}' is a fork's code"
    assert refused(after, checkouts.base) == ""


def test_head_of_the_fork(checkouts: Checkouts) -> None:
    assert refused(checkouts.target(), checkouts.fork).endswith("is a fork's code")
    assert refused(checkouts.target(), checkouts.base) == ""


def test_fork_that_has_moved_on(checkouts: Checkouts) -> None:
    assert refused(checkouts.target(OTHER), checkouts.fork).endswith("is a fork's code")


@pytest.mark.parametrize("repository", [None, {"full_name": "stranger/renamed", "owner": {"login": "stranger"}}])
def test_fork_that_was_deleted_or_renamed(checkouts: Checkouts, repository: Any) -> None:
    payload = events.pull_request(OTHER, fork=True)
    payload["pull_request"]["head"]["repo"] = repository
    said = refused(flow("pull_request_target", payload, checkouts.base_commit), checkouts.fork)
    assert said.endswith("may be a fork's code: it comes from stranger/demo")


def test_unknown_commit_such_as_a_merge(checkouts: Checkouts) -> None:
    said = refused(checkouts.target(OTHER, commit="4" * 40), checkouts.base)
    assert said.endswith(f"may be a fork's code: commit {checkouts.base_commit} is not the base's")


def test_base_commit_of_the_event(checkouts: Checkouts) -> None:
    assert refused(checkouts.target(OTHER, commit="4" * 40, base=checkouts.base_commit), checkouts.base) == ""


def test_base_branch_that_has_moved_on(checkouts: Checkouts, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(checkouts.base), ".")
    git(tmp_path, "remote", "set-url", "origin", "https://github.com/acme/demo")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "later")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert refused(checkouts.target(OTHER), tmp_path) == ""


@pytest.mark.parametrize(("source", "is_refused"), [("acme/evals", False), ("acme-2/evals", True)])
def test_another_repository_of_the_same_owner(tmp_path: Path, source: str, is_refused: bool) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", f"https://github.com/{source}")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "start")
    said = refused(flow("pull_request_target", events.pull_request(OTHER, fork=True), "4" * 40), tmp_path)
    assert said.endswith(f"it comes from {source}" if is_refused else "")
    assert bool(said) == is_refused


def test_folder_without_git(checkouts: Checkouts, tmp_path: Path) -> None:
    assert refused(checkouts.target(), tmp_path).endswith("may be a fork's code: it is not a git checkout")


def test_broken_checkout(checkouts: Checkouts, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert refused(checkouts.target(), tmp_path).endswith("may be a fork's code: git cannot read it")


def test_files_that_look_like_a_bare_repository(checkouts: Checkouts, tmp_path: Path) -> None:
    config = '[core]\nbare = true\n[remote "origin"]\nurl = https://github.com/acme/demo\n'
    write(tmp_path, {"HEAD": f"{checkouts.base_commit}\n", "config": config, "objects/x": "", "refs/x": "", ".git": ""})
    assert refused(checkouts.target(OTHER), tmp_path)


@pytest.mark.parametrize("place", ["a/b/c/d/e/f/g/h", "node_modules/a"])
def test_checkout_deep_in_the_workspace(checkouts: Checkouts, tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    git(tmp_path, "clone", "-q", str(checkouts.fork), place)
    said = refused(checkouts.target(), checkouts.base, GITHUB_WORKSPACE=str(tmp_path))
    assert said.endswith(f"'{tmp_path / place}' is a fork's code")


def test_credentials_that_a_checkout_keeps(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    encoded = base64.b64encode(b"x-access-token:ghs_0123456789").decode()
    git(tmp_path, "config", "http.https://github.com/.extraheader", f"AUTHORIZATION: basic {encoded}")
    git(tmp_path, "config", "http.https://example.com/.extraheader", "X: short")
    found = {name: asyncio.run(credentials(tmp_path, {"GITHUB_ACTIONS": name})) for name in ("true", "false")}
    assert found == {"true": {encoded, "ghs_0123456789"}, "false": set()}


def test_all_checkouts_in_the_workspace(checkouts: Checkouts) -> None:
    workspace = str(checkouts.base.parent)
    said = refused(checkouts.target(), checkouts.base, GITHUB_WORKSPACE=workspace)
    assert said.endswith(f"'{checkouts.fork}' is a fork's code")


def test_worktree(checkouts: Checkouts, tmp_path: Path) -> None:
    git(checkouts.fork, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    assert refused(checkouts.target(), tmp_path / "tree")


def test_git_variables_select_no_other_checkout(checkouts: Checkouts) -> None:
    assert refused(checkouts.target(), checkouts.fork, GIT_DIR=str(checkouts.base / ".git"))


@pytest.mark.parametrize("payload", [None, [], {}, {"pull_request": {"head": {"sha": "main"}}}])
def test_event_without_a_readable_head(checkouts: Checkouts, payload: Any) -> None:
    assert refused(flow("pull_request_target", payload, checkouts.base_commit), checkouts.fork)


@pytest.mark.parametrize("event", ["push", "schedule", "merge_group", "pull_request"])
def test_other_events_run_any_checkout(checkouts: Checkouts, event: str) -> None:
    payload = events.pull_request(OTHER, fork=True) if event == "pull_request" else events.push(OTHER)
    asyncio.run(refuse_fork_code(flow(event, payload, OTHER), [checkouts.fork], os.environ))


def test_branches_of_the_same_repository_run(checkouts: Checkouts) -> None:
    own = flow("pull_request_target", events.pull_request(OTHER), "4" * 40)
    assert refused(own, checkouts.fork) == ""


def test_refusal_is_an_error_with_a_hint(checkouts: Checkouts) -> None:
    with pytest.raises(UsageError, match="is a fork's code") as error:
        asyncio.run(refuse_fork_code(checkouts.target(), [checkouts.fork], os.environ))
    assert "run evals under `pull_request`" in (error.value.hint or "")
