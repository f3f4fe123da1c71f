"""A fork's code is not run where secrets are in reach; checkouts are real ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agentv_ci.publish.checkout import refusal
from agentv_ci.publish.workflow import Head, Workflow
from tests.publish.workflows import FORK, PULL_REQUEST


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit, fetched from acme/demo."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "remote", "add", "origin", "https://github.com/acme/demo")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "start")
    return tmp_path


def refused(flow: Workflow, folder: Path) -> str | None:
    return asyncio.run(refusal(flow, [folder, folder], os.environ))


def guarded(*, head: str | None = None, base: str | None = None, event: str = "pull_request_target") -> Workflow:
    """A workflow of the base whose fork's head, and own commit, may be what is checked out."""
    return replace(
        FORK,
        event=event,
        commit=base or "4" * 40,
        head=Head(head or "5" * 40, "stranger/demo", "stranger", "feat"),
    )


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
class TestGuardedEvents:
    def test_head_of_the_fork(self, checkout: Path, event: str) -> None:
        said = refused(guarded(head=git(checkout, "rev-parse", "HEAD"), event=event), checkout)
        assert said is not None
        assert said.endswith("is a fork's code")
        assert event in said

    def test_base(self, checkout: Path, event: str) -> None:
        assert refused(guarded(base=git(checkout, "rev-parse", "HEAD"), event=event), checkout) is None

    def test_commit_that_nobody_knows_such_as_a_merge(self, checkout: Path, event: str) -> None:
        said = refused(guarded(event=event), checkout)
        assert said is not None
        assert "may be a fork's code" in said

    def test_branch_of_the_fork_that_has_moved_on(self, checkout: Path, event: str) -> None:
        git(checkout, "remote", "set-url", "origin", "git@github.com:Stranger/demo.git")
        said = refused(guarded(event=event), checkout)
        assert said is not None
        assert said.endswith("is a fork's code")

    def test_repository_that_has_nothing_to_do_with_it(self, checkout: Path, event: str) -> None:
        git(checkout, "remote", "set-url", "origin", "https://github.com/acme/evals")
        assert refused(guarded(event=event), checkout) is None

    def test_folder_that_is_no_checkout(self, tmp_path: Path, event: str) -> None:
        said = refused(guarded(event=event), tmp_path)
        assert said is not None
        assert "it is not a git checkout" in said


def test_base_that_the_event_names(checkout: Path) -> None:
    flow = replace(guarded(), base_commit=git(checkout, "rev-parse", "HEAD"))
    assert refused(flow, checkout) is None


def test_workspace_that_holds_checkouts_and_is_none(tmp_path: Path) -> None:
    for name in ("base", "pr"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q", "-b", "main")
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", name)
    base, head = (git(tmp_path / name, "rev-parse", "HEAD") for name in ("base", "pr"))
    flow = guarded(head=head, base=base)
    environ = {**os.environ, "GITHUB_WORKSPACE": str(tmp_path)}
    said = asyncio.run(refusal(flow, [tmp_path / "base"], environ))
    assert said is not None
    assert f"'{tmp_path / 'pr'}' is a fork's code" in said
    (tmp_path / "pr").rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    assert asyncio.run(refusal(flow, [tmp_path / "base"], environ)) is None


def test_own_branches_may_run(checkout: Path) -> None:
    flow = replace(PULL_REQUEST, event="pull_request_target")
    assert refused(flow, checkout) is None


def test_forks_may_run_where_there_are_no_secrets(checkout: Path) -> None:
    assert refused(replace(guarded(), event="pull_request"), checkout) is None
