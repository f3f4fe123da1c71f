"""The workflows that users copy, in the five states of a run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.action.evals import agent, mock, suite
from tests.action.events import ACME, pull_request, workflow_run
from tests.action.github_api import FakeGitHub, Pull, Run
from tests.action.rig import Outcome, Rig, git
from tests.support import REPOSITORY, write
from tests.support.projects import Project

pytestmark = [pytest.mark.act, pytest.mark.slow]

WORKFLOWS = REPOSITORY / "docs" / "examples" / "workflows"
DOUBLES = REPOSITORY / "tests" / "action" / "doubles"
"""Doubles of the actions and programs that need GitHub."""
KEYED = mock().replace('"provider": "mock"', '"provider": "openai", "model": "m", "api_key": "${{ OPENAI_API_KEY }}"')
KEYED = re.sub(r', "responses?": ("yes"|\{\})', "", KEYED)
STATES = {
    "passed": (suite("a"), mock()),
    "failed": (suite("a"), mock("no")),
    "no verdict": (suite("a"), agent("exit 3")),
    "invalid": (suite("a").replace("role: user", "role: usr"), mock()),
    "a missing secret": (suite("a"), KEYED),
}
TITLES = {"passed": "passed", "failed": "not passed", "no verdict": "no verdict", "invalid": "invalid"}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", ["pull-request", "matrix"])
def test_example(name: str, state: str, tmp_path: Path) -> None:
    workflow = (WORKFLOWS / f"{name}.yml").read_text("utf-8")
    evals, targets = STATES[state]
    if name == "matrix":
        targets = re.sub(
            r"\{\"name\": \"default\"(.*)\}\]", r'{"name": "small-model"\1}, {"name": "large-model"\1}]', targets
        )
    rig = Rig(tmp_path, {"evals/a.test.yaml": evals, "targets.yaml": targets})
    rig.prepare()
    pins = re.findall(r"uses: (actions/upload-artifact@\S+)", workflow)
    outcome = rig.start(workflow, pull_request(rig.head), dict.fromkeys(pins, DOUBLES / "upload-artifact"))
    assert ("failure" in {step.result for step in outcome.steps.values()}) == (state != "passed")
    title = f"Evaluations: {TITLES.get(state, 'invalid')}"
    assert outcome.github.violations == []
    assert len(outcome.github.comments) == (2 if name == "matrix" else 1)
    if name == "matrix":
        keys = {comment.body.splitlines()[0].partition("/")[2] for comment in outcome.github.comments}
        assert keys == {f"targets %28{each}%29 -->" for each in ("small-model", "large-model")}
    for comment in outcome.github.comments:
        assert title in comment.body.splitlines()[1]
        assert ("secrets.OPENAI_API_KEY" in comment.body) == (state == "a missing secret")


def started(rig: Rig, name: str, event: Any) -> Outcome:
    """Run an example with doubles of the actions that need GitHub."""
    workflow = (WORKFLOWS / f"{name}.yml").read_text("utf-8")
    pins = re.findall(
        r"uses: (actions/(checkout|upload-artifact|download-artifact|upload-pages-artifact|deploy-pages)@\S+)", workflow
    )
    return rig.start(workflow, event, {pin: DOUBLES / action for pin, action in pins})


def result_of(outcome: Outcome, name: str) -> str | None:
    """Return the result of the step that uses the action, by its name or id."""
    return outcome.steps[name].result if name in outcome.steps else None


@pytest.mark.parametrize("state", STATES)
def test_only_changed(state: str, tmp_path: Path) -> None:
    evals, targets = STATES[state]
    rig = Rig(tmp_path, {"evals/old.test.yaml": suite("old"), "targets.yaml": targets})
    rig.prepare()
    base = rig.head
    write(rig.user, {"evals/new.test.yaml": evals})
    rig.save("change")
    outcome = started(rig, "only-changed", pull_request(rig.head, base=base))
    (comment,) = outcome.github.comments
    assert f"Evaluations: {TITLES.get(state, 'invalid')}" in comment.body
    if state != "invalid":
        assert "0 cases changed, 1 added, 0 removed" in comment.body
        assert "`old`" not in comment.body


@pytest.mark.parametrize("state", STATES)
def test_nightly(state: str, tmp_path: Path) -> None:
    evals, targets = STATES[state]
    rig = Rig(
        tmp_path,
        {"evals/a.test.yaml": evals, "targets.yaml": targets, ".gitignore": "agentv-results/\n"},
        event_name="workflow_dispatch",
        programs=DOUBLES / "bin",
    )
    rig.prepare()
    git(tmp_path, "clone", "-q", "--bare", str(rig.user), str(rig.remote))
    for _ in ("first", "second"):
        outcome = started(rig, "nightly", {"repository": {**ACME, "default_branch": "main"}})
        proposed = git(rig.remote, "branch", "--list", "agentv-ci/baseline")
        assert (outcome.ok, bool(proposed)) == (state == "passed", state == "passed")
    if state == "passed":
        # The second night updates the branch, and the pull request stays the same.
        assert git(rig.remote, "diff", "--name-only", "main", "agentv-ci/baseline") == ".agentv/baseline.json"
        calls = (rig.folder / "kept" / "gh.log").read_text("utf-8")
        assert calls.count("pr create") == 1


@pytest.mark.parametrize("state", STATES)
def test_canary(state: str, tmp_path: Path) -> None:
    evals, targets = STATES[state]
    rig = Rig(
        tmp_path,
        {"evals/a.test.yaml": evals, "targets.yaml": targets, ".gitignore": "agentv-results/\n"},
        github=FakeGitHub(permissions={"contents": "write", "issues": "write"}),
        event_name="workflow_dispatch",
        programs=DOUBLES / "bin",
    )
    rig.prepare()
    git(tmp_path, "clone", "-q", "--bare", str(rig.user), str(rig.remote))
    has_results = state in ("passed", "failed", "no verdict")
    for night in (1, 2):
        outcome = started(rig, "canary", {"repository": {**ACME, "default_branch": "main"}})
        assert (outcome.ok, outcome.github.violations) == (state == "passed", [])
        ledger = git(rig.remote, "branch", "--list", "agentv-history")
        assert bool(ledger) == has_results
        if has_results:
            listed = git(rig.remote, "ls-tree", "-r", "--name-only", "agentv-history").splitlines()
            assert sum(name.endswith(".jsonl") for name in listed) == night
            assert (rig.folder / "kept" / "github-pages" / "index.html").exists()
    assert rig.github.issues == []  # two nights show no shift


@pytest.mark.parametrize("state", [*STATES, "no results"])
def test_fork_pair(state: str, tmp_path: Path) -> None:
    evals, targets = STATES.get(state, STATES["passed"])
    files = {"evals/a.test.yaml": evals, "targets.yaml": targets, "recordings/none": "Other questions"}
    if state in ("passed", "failed"):
        files["targets.yaml"] = agent("echo yes" if state == "passed" else "echo no")
        files |= recorded(tmp_path / "recording", files)
    rig = Rig(tmp_path, files, github=FakeGitHub(permissions={}))
    rig.prepare()
    first = started(rig, "fork-evals", pull_request(rig.head, fork=True))
    assert first.ok == (state in ("passed", "no results"))
    assert [call for call in first.github.calls if call.method != "GET"] == []
    archive = packed(rig.folder / "kept" / "agentv-results") if state != "no results" else b""
    github = FakeGitHub(
        permissions={"actions": "read", "pull-requests": "write"},
        pulls=[Pull(7, "stranger", "feat", rig.head)],
        runs=[Run(30433642, {"agentv-results": archive})],
    )
    second = Rig(
        tmp_path / "second",
        {"README.md": "The base"},
        github=github,
        event_name="workflow_run",
        programs=DOUBLES / "bin",
    )
    second.prepare()
    outcome = started(second, "fork-comment", workflow_run(rig.head))
    assert (outcome.ok, github.violations) == (state != "invalid", [])
    if state == "no results":
        assert github.comments == []
        return
    (comment,) = github.comments
    title = {**TITLES, "a missing secret": "no verdict"}[state]
    assert f"Evaluations: {title}" in comment.body
    assert "from a fork's run, whose author controls the results" in comment.body


def recorded(folder: Path, files: dict[str, str]) -> dict[str, str]:
    """Return recordings of answers, as files of a repository."""
    write(folder, files)
    Project(folder).run("eval", "evals/", "--record", "recordings/")
    found = (path for path in folder.joinpath("recordings").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in found}


def packed(folder: Path) -> bytes:
    """Return a folder as GitHub stores it."""
    archive = shutil.make_archive(str(folder.with_suffix(".packed")), "zip", folder)
    return Path(archive).read_bytes()
