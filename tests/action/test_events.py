"""The event decides what the action may do: a fork's pull request, `pull_request_target`, `workflow_run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.action.conftest import Once
from tests.action.evals import agent, mock, suite
from tests.action.events import pull_request, push, workflow_run
from tests.action.github_api import Failure, FakeGitHub, Pull
from tests.action.rig import CHECKOUT, SETUP, TOKEN, Outcome, Rig, git, play, uses
from tests.servers.git_http import GitServer
from tests.support import write

pytestmark = [pytest.mark.act, pytest.mark.slow]

NEEDS_A_KEY = {"name": "default", "provider": "openai", "model": "gpt", "api_key": "${{ OPENAI_API_KEY }}"}
FAILS = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock("no")}


@pytest.fixture(scope="module")
def fork(once: Once) -> Outcome:
    """A fork's pull request: the token can only read, and there are no secrets."""

    def scenario(folder: Path) -> Outcome:
        keyed = json.dumps({"$schema": "agentv-targets-v2.2", "targets": [NEEDS_A_KEY]})
        return play(
            folder,
            {**FAILS, "keyed/a.test.yaml": suite("a"), "keyed/targets.yaml": keyed},
            uses(),
            uses("keyed", evals="keyed/", results_dir="keyed-results"),
            event=lambda sha: pull_request(sha, fork=True),
            github=FakeGitHub(permissions={}),
        )

    return once("fork", scenario)


def test_fork_gets_a_verdict_without_a_comment(fork: Outcome) -> None:
    step = fork.agentv
    assert (step.result, step.outputs["verdict"], len(step.errors)) == ("failure", "fail", 1)
    assert step.notices == ()
    assert "no comment: GitHub returned 403: Resource not accessible by integration" in "\n".join(step.log)
    assert "1 failed" in step.summary
    assert fork.github.comments == []
    assert fork.github.violations == []
    assert {call.status for call in fork.github.writes()} == {403}
    comment = fork.file("agentv-results/comment.md")
    assert comment.startswith("<!-- agentv-ci:Evals/evals -->\n## ❌ Evaluations: not passed\n")
    assert comment == fork.github.writes()[0].body["body"]


def test_missing_secrets_of_a_fork_are_a_notice(fork: Outcome) -> None:
    step = fork.steps["keyed"]
    assert (step.result, step.outputs["verdict"], step.errors) == ("success", "nothing", ())
    said = "\n".join(each.message for each in step.notices)
    assert "GitHub provides no secrets to pull requests from forks and Dependabot" in said
    assert "OPENAI_API_KEY" in said


@pytest.fixture(scope="module")
def guarded(once: Once) -> Outcome:
    """`pull_request_target` of a fork: the base is checked out, then the fork's head, then GitHub's merge of it."""

    def scenario(folder: Path) -> Outcome:
        files = {"evals/a.test.yaml": suite("a"), "targets.yaml": agent("touch asked; echo yes")}
        rig = Rig(folder, files, event_name="pull_request_target")
        rig.prepare()
        base = rig.head
        head = rig.commit("the fork's change", base)
        commits = {"base": base, "head": head, "merge": rig.commit("the merge", base, head)}
        steps = [
            step
            for name, commit in commits.items()
            for step in (
                {"uses": "actions/checkout@v4", "with": {"path": name}},
                {"run": f"git -C {name} checkout -q {commit}", "shell": "bash"},
                uses(name, working_directory=name, comment_key=name),
            )
        ]
        return rig.run({"steps": steps}, pull_request(head, base=base, fork=True))

    return once("guarded", scenario)


@pytest.mark.parametrize("name", ["head", "merge"])
def test_code_of_a_fork_does_not_run_with_secrets(guarded: Outcome, name: str) -> None:
    step = guarded.steps[name]
    assert (step.result, step.outputs["verdict"], step.outputs["total"]) == ("failure", "invalid", "0")
    assert "fork's code" in step.errors[0].message
    assert not (guarded.workspace / name / "asked").exists()


def test_code_of_the_base_runs_and_comments_on_the_forks_pull_request(guarded: Outcome) -> None:
    assert (guarded.steps["base"].result, guarded.steps["base"].outputs["verdict"]) == ("success", "pass")
    assert (guarded.workspace / "base" / "asked").exists()
    assert guarded.github.violations == []
    assert "<!-- agentv-ci:Evals/base -->" in {each.body.splitlines()[0] for each in guarded.github.comments}


def test_workflow_run_comments_on_the_pull_request_of_its_head(once: Once) -> None:
    head = "f" * 40

    def scenario(folder: Path) -> Outcome:
        closed = Pull(6, "stranger", "feat", head, state="closed")
        pulls = [Pull(5, "acme", "feat", head), closed, Pull(7, "stranger", "feat", head)]
        publish = {
            "id": "publish",
            "shell": "bash",
            "env": {"GITHUB_TOKEN": "${{ github.token }}", "AGENTV_COMMENT_KEY": "fork"},
            "run": "agentv-ci github publish --results-dir agentv-results --fail-on never",
        }
        return play(
            folder,
            FAILS,
            uses(comment="never", fail_on="never", annotations="none"),
            {"uses": SETUP},
            publish,
            event=lambda _: workflow_run(head),
            event_name="workflow_run",
            github=FakeGitHub(pulls=pulls),
        )

    outcome = once("workflow-run", scenario)
    assert outcome.github.violations == []
    assert outcome.steps["publish"].result == "success"
    (search,) = [call for call in outcome.github.calls if call.path.endswith("/pulls")]
    assert (search.query["state"], search.query["head"]) == ("open", "stranger:feat")
    (comment,) = outcome.github.comments
    assert comment.body.startswith("<!-- agentv-ci:Evals/fork -->\n## ❌ Evaluations: not passed\n")
    assert f"/blob/{head}/evals/a.test.yaml#L3" in comment.body
    assert len(outcome.steps["publish"].errors) == 1


@pytest.mark.parametrize("event", ["pull_request", "pull_request_review"])
def test_quarantine_of_a_pull_request_is_that_of_its_base_branch(event: str, tmp_path: Path) -> None:
    """Whatever the checkout says: an entry that the change adds does not count, one that it removes does."""

    def quarantine(case_id: str) -> str:
        entry = {"id": case_id, "reason": "It is slow.", "owner": "ops", "expires": "2999-12-31"}
        return json.dumps({"$schema": "agentv-quarantine-v1", "quarantine": [entry]})

    name = ".agentv/quarantine.yaml"
    github = FakeGitHub(repository=tmp_path / "user")
    files = {"evals/a.test.yaml": suite("a", "b"), "targets.yaml": mock(), name: quarantine("a")}
    rig = Rig(tmp_path, files, github, event_name=event)
    rig.prepare()
    git(rig.user, "switch", "-q", "-c", "feat")
    write(rig.user, {"targets.yaml": mock("no"), name: quarantine("b")})
    rig.save("excuses itself")
    outcome = rig.run({"steps": [CHECKOUT, uses()]}, pull_request(rig.head))
    step = outcome.agentv
    assert (step.result, step.outputs["failed"], github.violations) == ("failure", "1", [])
    assert [each.title for each in step.errors] == ["b: fail 0.000"]
    assert "🔒 1 case in quarantine, not in the gate" in github.comments[0].body


@pytest.mark.parametrize(
    ("event", "payload", "verdict"), [("pull_request", pull_request, "pass"), ("push", push, "invalid")]
)
def test_baseline_that_github_refuses_is_not_the_one_of_the_change(
    event: str, payload: Callable[[str], Any], verdict: str, tmp_path: Path
) -> None:
    """The file of the checkout is invalid, so that reading it shows."""
    github = FakeGitHub(failures=[Failure(403, "no"), Failure(403, "no")])
    files = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock(), "baseline.json": "no baseline"}
    rig = Rig(tmp_path, files, github, event_name=event)
    rig.prepare()
    step = rig.run({"steps": [CHECKOUT, uses(baseline="baseline.json", comment="never")]}, payload(rig.head)).agentv
    assert step.outputs["verdict"] == verdict


def test_gate_of_a_pull_request_is_held_to_its_base_branch(tmp_path: Path) -> None:
    files = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock("no")}
    served = GitServer(tmp_path / "served", TOKEN)
    with served.running() as url:
        rig = Rig(tmp_path, files, FakeGitHub(), environ={"GITHUB_SERVER_URL": url})
        rig.prepare()
        git(rig.user, "switch", "-q", "-c", "feat")
        lower = suite("a").replace("evalcases:", "execution: {gate: {min_pass_rate: 0}}\nevalcases:")
        write(rig.user, {"evals/a.test.yaml": lower})
        rig.save("lowers its gate")
        (served.folder / "acme").mkdir(parents=True)
        (served.folder / "acme/demo.git").symlink_to(rig.user / ".git")
        outcome = rig.run({"steps": [CHECKOUT, uses()]}, pull_request(rig.head))
    step = outcome.agentv
    assert (step.result, step.outputs["verdict"]) == ("failure", "fail")
    assert "`min_pass_rate 1 → 0`" in "\n".join(outcome.github.comments[0].body.splitlines()[:10])
    assert [each.file for each in step.of("warning")] == ["evals/a.test.yaml"]
