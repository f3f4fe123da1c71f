"""What variables and the event's payload say of a workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.publish.workflow import Head, Workflow, read_workflow, workflow_of

ENVIRON = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_REPOSITORY": "acme/demo",
    "GITHUB_SHA": "3" * 40,
    "GITHUB_WORKFLOW": "Evals",
    "GITHUB_JOB": "evals",
    "GITHUB_RUN_ID": "5",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_ACTOR": "ada",
}


def pull_request(repository: str | None = "acme/demo", author: str = "ada") -> Any:
    head = {"sha": "1" * 40, "ref": "feat", "repo": repository and {"full_name": repository, "owner": {"login": "x"}}}
    base = {"sha": "2" * 40}
    return {"pull_request": {"number": 7, "head": head, "base": base}, "sender": {"login": author}}


def known(environ: dict[str, str], event: Any) -> Workflow:
    return workflow_of({**ENVIRON, **environ}, event)


def test_pull_request_is_looked_at_by_its_head() -> None:
    flow = known({}, pull_request())
    assert (flow.pull_request, flow.shown_commit, flow.base_commit) == (7, "1" * 40, "2" * 40)
    assert not flow.is_from_fork
    assert not flow.lacks_secrets
    assert flow.run_url == "https://github.com/acme/demo/actions/runs/5"
    assert flow.run_attempt == 2


@pytest.mark.parametrize("repository", ["stranger/demo", None])
def test_fork_is_another_repository_even_when_it_is_gone(repository: str | None) -> None:
    flow = known({}, pull_request(repository))
    assert flow.is_from_fork
    assert flow.lacks_secrets


def test_dependabot_gets_no_secrets_by_what_it_pushes() -> None:
    flow = known({}, pull_request(author="dependabot[bot]"))
    assert not flow.is_from_fork
    assert flow.lacks_secrets


def test_dependabot_has_none_for_its_pushes_either() -> None:
    assert known({"GITHUB_EVENT_NAME": "push"}, {"sender": {"login": "dependabot[bot]"}}).lacks_secrets
    assert not known({"GITHUB_EVENT_NAME": "push"}, {"sender": {"login": "ada"}}).lacks_secrets


def test_events_of_the_base_have_secrets() -> None:
    flow = known({"GITHUB_EVENT_NAME": "pull_request_target"}, pull_request("stranger/demo"))
    assert flow.is_from_fork
    assert not flow.lacks_secrets


def test_push_is_looked_at_by_its_commit() -> None:
    flow = known({"GITHUB_EVENT_NAME": "push"}, {"ref": "refs/heads/main"})
    assert (flow.pull_request, flow.head, flow.shown_commit) == (None, None, "3" * 40)


def test_workflow_run_knows_the_head_and_not_the_pull_request() -> None:
    told = {
        "event": "pull_request",
        "head_sha": "1" * 40,
        "head_branch": "feat",
        "head_repository": {"full_name": "stranger/demo", "owner": {"login": "stranger"}},
    }
    flow = known({"GITHUB_EVENT_NAME": "workflow_run"}, {"workflow_run": told})
    assert flow.head == Head("1" * 40, "stranger/demo", "stranger", "feat")
    assert flow.pull_request is None
    assert flow.is_of_pull_request
    of_push = known({"GITHUB_EVENT_NAME": "workflow_run"}, {"workflow_run": {**told, "event": "push"}})
    assert of_push.is_guarded
    assert not of_push.is_of_pull_request


def test_enterprise_servers_have_addresses_of_their_own() -> None:
    flow = known({"GITHUB_API_URL": "https://ghe/api/v3", "GITHUB_GRAPHQL_URL": "https://ghe/api/graphql"}, None)
    assert (flow.api_url, flow.graphql_url) == ("https://ghe/api/v3", "https://ghe/api/graphql")
    assert known({}, None).graphql_url == "https://api.github.com/graphql"


@pytest.mark.parametrize("event", [None, [], "x", {"pull_request": []}, {"pull_request": {"number": "7", "head": 1}}])
def test_strange_events_say_nothing(event: Any) -> None:
    flow = known({"GITHUB_RUN_ID": "five"}, event)
    assert (flow.pull_request, flow.head, flow.run_id) == (None, None, 0)


@pytest.mark.parametrize("environ", [{}, {"GITHUB_ACTIONS": "false", "GITHUB_REPOSITORY": "acme/demo"}])
def test_outside_of_a_workflow_there_is_none(environ: dict[str, str]) -> None:
    assert read_workflow(environ) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff"])
def test_a_workflow_is_known_without_its_event(content: bytes | None, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    if content is not None:
        event.write_bytes(content)
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/demo", "GITHUB_EVENT_PATH": str(event)}
    found = read_workflow(environ)
    assert found is not None
    assert (found.repository, found.pull_request) == ("acme/demo", None)
