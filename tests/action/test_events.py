"""What caused a workflow decides what the action may do: forks, Dependabot, pushes, shards, other workflows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.action.conftest import Once
from tests.action.evals import agent, mock, suite
from tests.action.events import pull_request, push, workflow_run
from tests.action.github_api import FakeGitHub, Pull
from tests.action.rig import SETUP, Outcome, Rig, git, play, uses
from tests.action.steps import Step

pytestmark = pytest.mark.act

NEEDS_A_KEY = {"name": "default", "provider": "openai", "model": "gpt", "api_key": "${{ OPENAI_API_KEY }}"}
KEYED = {
    "evals/a.test.yaml": suite("a"),
    "targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": [NEEDS_A_KEY]}),
}
ASKS = {"evals/a.test.yaml": suite("a"), "targets.yaml": agent("touch asked; echo yes")}
FAILS = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock("no")}


def said(step: Step) -> str:
    return "\n".join(f"{each.title}: {each.message}" for each in step.notices)


@pytest.fixture(scope="module")
def fork(once: Once) -> Outcome:
    """A fork's pull request: the token only reads, and there are no secrets."""

    def scenario(folder: Path) -> Outcome:
        files = {**FAILS, "keyed/a.test.yaml": suite("a"), "keyed/targets.yaml": KEYED["targets.yaml"]}
        return play(
            folder,
            files,
            uses(),
            uses("keyed", evals="keyed/", results_dir="keyed-results"),
            event=lambda sha: pull_request(sha, fork=True),
            github=FakeGitHub(permissions={}),
        )

    return once("fork", scenario)


def test_fork_s_verdict_is_the_same_without_a_comment(fork: Outcome) -> None:
    step = fork.agentv
    assert (step.result, step.outputs["verdict"], len(step.errors)) == ("failure", "fail", 1)
    assert "GitHub returned 403: Resource not accessible by integration" in said(step)
    assert "1 failed" in step.summary
    assert fork.github.comments == []
    assert fork.github.violations == []
    assert {call.status for call in fork.github.writes()} == {403}


def test_comment_of_a_fork_s_run_is_kept_for_a_job_that_may_write(fork: Outcome) -> None:
    comment = fork.file("agentv-results/comment.md")
    assert comment.startswith("<!-- agentv-ci:Evals/evals -->\n## ❌ Evaluations: not passed\n")
    assert comment == fork.github.writes()[0].body["body"]


def test_fork_has_no_secrets_and_that_is_no_failure(fork: Outcome) -> None:
    step = fork.steps["keyed"]
    assert (step.result, step.outputs["verdict"], step.errors) == ("success", "nothing", ())
    assert "GitHub provides no secrets to pull requests from forks and Dependabot" in said(step)
    assert "OPENAI_API_KEY" in said(step)


@pytest.fixture(scope="module")
def dependabot(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        def event(sha: str) -> dict[str, Any]:
            return pull_request(sha, author="dependabot[bot]")

        return play(folder, KEYED, uses(), event=event, github=FakeGitHub(permissions={}), actor="dependabot[bot]")

    return once("dependabot", scenario)


def test_dependabot_has_no_secrets_either(dependabot: Outcome) -> None:
    step = dependabot.agentv
    assert (step.result, step.outputs["verdict"], step.errors) == ("success", "nothing", ())
    assert "GitHub provides no secrets to pull requests from forks and Dependabot" in said(step)


@pytest.fixture(scope="module")
def own(once: Once) -> Outcome:
    """A pull request of somebody who may have secrets, and has not set them; and a part of a whole."""

    def scenario(folder: Path) -> Outcome:
        files = {**KEYED, "shard/a.test.yaml": suite("a", "b", "c"), "shard/targets.yaml": mock("no")}
        shard = uses("shard", evals="shard/", shard="1/2", results_dir="shard-results")
        return play(folder, files, uses(comment="never"), shard)

    return once("own", scenario)


def test_missing_variable_of_one_s_own_is_a_failure(own: Outcome) -> None:
    step = own.agentv
    assert (step.result, step.outputs["verdict"]) == ("failure", "invalid")
    assert "OPENAI_API_KEY" in step.errors[0].message


def test_shard_is_not_judged_and_does_not_comment(own: Outcome) -> None:
    step = own.steps["shard"]
    assert step.result == "success"
    assert int(step.outputs["failed"]) == int(step.outputs["total"]) in (1, 2)
    assert own.github.calls == []


@pytest.fixture(scope="module")
def pushed(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        return play(folder, FAILS, uses(), event=push, event_name="push")

    return once("pushed", scenario)


def test_push_has_no_pull_request_and_nobody_wonders(pushed: Outcome) -> None:
    step = pushed.agentv
    assert (step.result, step.outputs["verdict"], step.notices) == ("failure", "fail", ())
    assert pushed.github.calls == []
    assert pushed.file("agentv-results/comment.md").startswith("<!-- agentv-ci:Evals/evals -->")


def test_links_of_a_push_lead_to_its_commit(pushed: Outcome) -> None:
    commit = git(pushed.workspace, "rev-parse", "HEAD")
    assert f"https://github.com/acme/demo/blob/{commit}/evals/a.test.yaml#L3" in pushed.agentv.summary


@pytest.fixture(scope="module")
def guarded(once: Once) -> Outcome:
    """`pull_request_target` of a fork: the base is checked out, then the fork's head, then GitHub's merge of it."""

    def scenario(folder: Path) -> Outcome:
        rig = Rig(folder, ASKS, event_name="pull_request_target")
        rig.prepare()
        base = rig.head
        head = rig.commit("what the fork has made of it", base)
        commits = {"base": base, "head": head, "merge": rig.commit("what GitHub tests", base, head)}
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
def test_fork_s_code_does_not_run_where_secrets_are(guarded: Outcome, name: str) -> None:
    step = guarded.steps[name]
    assert (step.result, step.outputs["verdict"], step.outputs["total"]) == ("failure", "invalid", "0")
    assert "fork's code" in step.errors[0].message
    assert not (guarded.workspace / name / "asked").exists()


def test_base_s_code_runs_and_the_comment_is_on_the_fork_s_pull_request(guarded: Outcome) -> None:
    assert (guarded.steps["base"].result, guarded.steps["base"].outputs["verdict"]) == ("success", "pass")
    assert (guarded.workspace / "base" / "asked").exists()
    assert guarded.github.violations == []
    assert "<!-- agentv-ci:base -->" in {each.body.splitlines()[0] for each in guarded.github.comments}


@pytest.fixture(scope="module")
def afterwards(once: Once) -> Outcome:
    """`workflow_run` after a fork's pull request: a job that may write publishes what lies there."""

    def scenario(folder: Path) -> Outcome:
        head = "f" * 40
        pulls = [
            Pull(5, "acme", "feat", head),
            Pull(6, "stranger", "feat", head, state="closed"),
            Pull(7, "stranger", "feat", head),
        ]
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

    return once("afterwards", scenario)


def test_pull_request_of_another_workflow_is_found_by_its_head(afterwards: Outcome) -> None:
    assert afterwards.github.violations == []
    assert afterwards.steps["publish"].result == "success"
    (search,) = [call for call in afterwards.github.calls if call.path.endswith("/pulls")]
    assert (search.query["state"], search.query["head"]) == ("open", "stranger:feat")
    (comment,) = afterwards.github.comments
    assert comment.body.startswith("<!-- agentv-ci:fork -->\n## ❌ Evaluations: not passed\n")
    assert f"/blob/{'f' * 40}/evals/a.test.yaml#L3" in comment.body
    assert len(afterwards.steps["publish"].errors) == 1
