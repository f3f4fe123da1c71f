"""The ledger in the steps of the action: what runs of the default branch add, and what pull requests read."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.action import events
from tests.action.github_api import FakeGitHub, Run
from tests.action.rig import SIGNATURE, git
from tests.cli.builders import GREETS, LEAVES, PASSES, Job
from tests.servers.git_http import GitServer
from tests.support import CommandResult

TOKEN = "ghs_token0123456789"
WORSE = {**PASSES, "response": "no"}
LEAVING = {**PASSES, "response": "Hello and goodbye"}


class Clock:
    """Every reading is a second after the one before: runs of the same second and results are one."""

    def __init__(self) -> None:
        self.readings = count()

    def now(self, zone: tzinfo) -> datetime:
        return datetime.now(zone) + timedelta(seconds=next(self.readings))


@pytest.fixture
def server(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """The repository on GitHub; the job's own checkout knows nothing of it."""
    monkeypatch.setattr("agentv_ci.app.run.environment.datetime", Clock())
    found = GitServer(tmp_path / "served", TOKEN)
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(found.folder / "acme/demo.git"))
    git(found.folder / "acme/demo.git", "config", "http.receivepack", "true")
    with found.running() as url:
        job.env |= {"GITHUB_SERVER_URL": url, "AGENTV_HISTORY": "write"}
        job.env |= {"GITHUB_REF": "refs/heads/main", "AGENTV_BASE_ARTIFACT": ""}
        yield found


def ran(job: Job, event: str = "push", payload: Any = None, token: str = TOKEN) -> CommandResult:
    """Run both steps as a job of an event."""
    job.on(event, events.push("1" * 40) if payload is None else payload)
    job.step("--exit-zero")
    return published(job, token)


def published(job: Job, token: str = TOKEN) -> CommandResult:
    job.env["GITHUB_TOKEN"] = token
    done = job.publish("--comment=never")
    del job.env["GITHUB_TOKEN"]
    return done


def files(server: GitServer) -> list[str]:
    """The files of the ledger."""
    there = git(server.folder / "acme/demo.git", "branch", "--list", "agentv-history")
    listed = ("ls-tree", "-r", "--name-only", "agentv-history")
    found = git(server.folder / "acme/demo.git", *listed).splitlines() if there else []
    return [name for name in found if name.endswith(".jsonl")]


def change(job: Job, ref: str = "refs/pull/7/merge") -> CommandResult:
    job.env["GITHUB_REF"] = ref
    return ran(job, "pull_request", events.pull_request("1" * 40))


def test_runs_of_the_default_branch_are_added(job: Job, server: GitServer) -> None:
    assert "history: 1 run added\n" in ran(job).out
    assert "history: 0 runs added\n" in published(job).out
    assert len(files(server)) == 1
    assert TOKEN not in ran(job).out
    assert len(files(server)) == 2


@pytest.mark.parametrize(
    ("event", "payload", "env"),
    [
        ("pull_request", events.pull_request("1" * 40), {"GITHUB_REF": "refs/pull/7/merge"}),
        ("pull_request", events.pull_request("1" * 40), {}),
        ("merge_group", {"merge_group": {"base_ref": "refs/heads/main"}, **events.push("1" * 40)}, {}),
        ("push", events.push("1" * 40), {"GITHUB_REF": "refs/heads/feat"}),
        ("push", events.push("1" * 40), {"GITHUB_REF": "refs/tags/main"}),
        ("push", {}, {}),
        ("issue_comment", events.push("1" * 40), {}),
        ("push", events.push("1" * 40), {"AGENTV_HISTORY": "read"}),
        ("push", events.push("1" * 40), {"AGENTV_DRY_RUN": "true"}),
        ("push", events.push("1" * 40), {"AGENTV_SHARD": "1/2"}),
        ("push", events.push("1" * 40), {"AGENTV_ARGS": "--filter id:*"}),
    ],
)
def test_other_runs_are_not(event: str, payload: Any, env: dict[str, str], job: Job, server: GitServer) -> None:
    job.env |= env
    assert ran(job, event, payload).code == 0
    assert files(server) == []
    assert [each for each in server.asked if "receive-pack" in each] == []


@pytest.mark.parametrize("narrowing", [{"AGENTV_ARGS": "--eval-id *"}, {"AGENTV_ONLY_CHANGED": "old.json"}])
def test_run_of_some_cases_is_not_added_and_says_so(narrowing: dict[str, str], job: Job, server: GitServer) -> None:
    job.documents(GREETS, targets=(PASSES,))
    job.write({"old.json": job.run("compile", "evals/").out})
    job.documents(GREETS, {**GREETS, "id": "new"}, targets=(PASSES,))
    job.env |= narrowing
    done = ran(job)
    assert "::notice title=Not added to the history::options left cases out" in done.out
    assert files(server) == []


def test_refusal_is_a_notice(job: Job, server: GitServer) -> None:
    server.may_write = False
    done = ran(job)
    assert (done.code, "::notice title=Not added to the history::git push failed: " in done.out) == (0, True)
    assert "(the job needs `contents: write`)" in done.out
    done = ran(job, token="ghs_another-token-789")
    assert (done.code, "::notice title=Not added to the history::" in done.out) == (0, True)
    assert "::GITHUB_TOKEN is not set" in ran(job, token="").out


def test_red_case_is_mine_or_known(job: Job, server: GitServer) -> None:
    job.documents(GREETS, LEAVES, {**GREETS, "id": "new"}, targets=(LEAVING,))
    both = job.text("evals/x.yaml")
    job.documents(GREETS, LEAVES, targets=(LEAVING,))
    before = job.text("evals/x.yaml")
    ran(job)
    job.targets(PASSES)  # it no longer says goodbye
    ran(job)
    job.write({"evals/x.yaml": both})
    job.targets(WORSE)
    done = change(job)
    assert (done.code, files(server)) == (1, files(server)[:2])
    said = "Mine or known? On `main`, 3 cases that did not pass: 1 green, 1 red, 1 unknown."
    assert said in job.summary
    day = files(server)[1].partition("/")[2][:8]
    assert f"🔁 red on `main`, too, since `{day[:4]}-{day[4:6]}-{day[6:]}` |" in job.summary
    assert "🆕 passes on `main` |" in job.summary
    # It passes there again with its old target.
    job.env["GITHUB_REF"] = "refs/heads/main"
    job.write({"evals/x.yaml": before})
    job.targets(LEAVING)
    ran(job)
    job.targets(WORSE)
    change(job)
    assert f"🆕 passes on `main` since `{day[:4]}-{day[4:6]}-{day[6:]}` |" in job.summary


def test_history_that_a_change_brings_along_is_not_believed(job: Job, server: GitServer) -> None:
    """Neither a branch of the checkout nor its remote counts, wherever they lead."""
    ran(job)
    git(job.folder, "init", "-q", "-b", "feat")
    forged = job.path("forged.git")
    git(job.folder, "init", "-q", "--bare", "-b", "main", str(forged))
    git(job.folder, "remote", "add", "origin", str(forged))
    git(job.folder, *SIGNATURE, "commit", "-q", "--allow-empty", "-m", "start")
    job.targets(WORSE)
    job.run("eval", "evals/", "--out", "worse.jsonl")
    assert job.run("history", "add", "worse.jsonl").code == 0
    assert git(forged, "branch", "--list", "agentv-history")
    change(job)
    assert "🆕 passes on `main`" in job.summary
    assert "red on" not in job.summary


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("main", ["On `main`, 2 cases that did not pass: 2 green.", "🆕 passes on `main` (2 of 2 trials passed)"]),
        ("release", ["On `release (0000000)`, 2 cases that did not pass: 2 green."]),
    ],
)
def test_artifact_of_the_base_branch_says_what_the_ledger_does_not(
    base: str, said: list[str], job: Job, server: GitServer
) -> None:
    """The ledger is of the default branch, so that of another one counts alone."""
    ran(job)
    ran(job)
    job.documents(GREETS, {**GREETS, "id": "new"}, targets=(PASSES,))
    job.step("--results-dir=base")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in job.path("base").iterdir():
            archive.write(path, path.name)
    job.targets(WORSE)
    payload = events.pull_request("1" * 40)
    payload["pull_request"]["base"]["ref"] = base
    job.env |= {"GITHUB_REF": "refs/pull/7/merge", "AGENTV_BASE_ARTIFACT": "agentv-results"}
    job.env["GITHUB_WORKFLOW_REF"] = "acme/demo/.github/workflows/evals.yml@main"
    artifacts = {"agentv-results": packed.getvalue()}
    github = FakeGitHub(permissions={"actions": "read"}, runs=[Run(4, artifacts, branch=base)])
    with github.running() as url:
        job.env["GITHUB_API_URL"] = url
        ran(job, "pull_request", payload)
    assert [each for each in said if each not in job.summary] == []


@pytest.mark.parametrize("attack", ["program", "settings", "variables"])
def test_agents_do_not_get_the_token(attack: str, job: Job, server: GitServer) -> None:
    """They may write a git that is found first, and the settings of their user."""
    stolen, url = job.path("stolen"), job.env["GITHUB_SERVER_URL"]
    job.write({"home/bin/thief": f'#!/bin/sh\nenv >> {stolen}\nexec /usr/bin/git "$@"\n'})
    thief = job.path("home/bin/thief")
    thief.chmod(0o755)
    elsewhere = f"url.ext::{thief} x .insteadOf"
    match attack:
        case "program":
            thief.rename(thief.with_name("git"))
            job.env["PATH"] = f"{thief.parent}:{os.environ['PATH']}"
        case "settings":
            job.env["HOME"] = str(job.path("home"))
            for name, value in ((elsewhere, f"{url}/"), ("protocol.ext.allow", "always")):
                git(job.folder, "config", "--file", "home/.gitconfig", name, value)
        case _:
            settings = {"KEY_0": elsewhere, "VALUE_0": f"{url}/", "KEY_1": "protocol.ext.allow", "VALUE_1": "always"}
            job.env |= {f"GIT_CONFIG_{name}": value for name, value in {**settings, "COUNT": "2"}.items()}
    ran(job)
    assert len(files(server)) == 1
    assert not stolen.exists() or TOKEN not in stolen.read_text("utf-8")


def test_no_history(job: Job, server: GitServer) -> None:
    job.targets(WORSE)
    done = change(job)
    assert (done.code, "the history says nothing of these cases: no run is in " in done.out) == (1, True)
    assert "Mine or known?" not in job.summary
    job.targets(PASSES)
    asked = len(server.asked)
    assert change(job).code == 0
    assert len(server.asked) == asked
