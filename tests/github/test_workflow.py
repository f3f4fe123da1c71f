"""The workflow, as variables and the event's payload describe it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.github.workflow import Head, Workflow, read_workflow, workflow_of
from tests.action import events

HEAD, MERGE = "1" * 40, "3" * 40
ENVIRON = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/demo",
    "GITHUB_SHA": MERGE,
    "GITHUB_RUN_ID": "5",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_ACTOR": "ada",
}


def known(event: str, payload: Any, **environ: str) -> Workflow:
    return workflow_of({**ENVIRON, "GITHUB_EVENT_NAME": event, **environ}, payload)


def test_pull_request() -> None:
    flow = known("pull_request", events.pull_request(HEAD))
    assert (flow.pull_request, flow.shown_commit, flow.base_commit) == (7, HEAD, "2" * 40)
    assert flow.base_branches == ("main", "main")
    assert flow.run_url == "https://github.com/acme/demo/actions/runs/5"
    assert (flow.run_attempt, flow.actor, flow.graphql_url) == (2, "ada", "https://api.github.com/graphql")


@pytest.mark.parametrize(
    ("ref", "file"),
    [
        ("acme/demo/.github/workflows/evals.yml@refs/heads/main", "evals.yml"),
        ("acme/demo/.github/workflows/a-b.c_1.yaml", "a-b.c_1.yaml"),
        ("acme/demo/.github/workflows/../x.yml@main", ""),
        ("acme/demo/.github/workflows/a%2Fb.yml@main", ""),
        ("", ""),
    ],
)
def test_file_of_the_workflow(ref: str, file: str) -> None:
    assert known("push", events.push(MERGE), GITHUB_WORKFLOW_REF=ref).file == file
    payload = events.workflow_run(HEAD)
    payload["workflow_run"]["path"] = ref.removeprefix("acme/demo/")
    # After another run, its file counts.
    assert known("workflow_run", payload, GITHUB_WORKFLOW_REF=ref and "x/.github/workflows/b.yml").file == file


def test_push_shows_its_commit() -> None:
    flow = known("push", events.push(MERGE))
    assert (flow.pull_request, flow.head, flow.shown_commit) == (None, None, MERGE)
    assert not flow.is_of_pull_request


@pytest.mark.parametrize(
    ("event", "is_of_pull_request"), [("pull_request", True), ("pull_request_target", True), ("push", False)]
)
def test_workflow_run_knows_the_head_but_not_the_pull_request(event: str, is_of_pull_request: bool) -> None:
    payload = events.workflow_run(HEAD)
    payload["workflow_run"]["event"] = event
    flow = known("workflow_run", payload)
    assert flow.head == Head(HEAD, "stranger/demo", "stranger", "feat")
    assert flow.pull_request is None
    assert flow.is_guarded
    assert flow.is_of_pull_request == is_of_pull_request


@pytest.mark.parametrize(
    ("event", "payload", "is_from_fork", "lacks_secrets"),
    [
        ("pull_request", events.pull_request(HEAD), False, False),
        ("pull_request", events.pull_request(HEAD, fork=True), True, True),
        ("pull_request_target", events.pull_request(HEAD, fork=True), True, False),
        ("pull_request", events.pull_request(HEAD, author="dependabot[bot]"), False, True),
        ("push", events.push(HEAD), False, False),
        ("push", {"sender": {"login": "dependabot[bot]"}}, False, True),
        ("schedule", {"sender": {"login": "dependabot[bot]"}}, False, False),
    ],
)
def test_forks_and_dependabot_get_no_secrets(event: str, payload: Any, is_from_fork: bool, lacks_secrets: bool) -> None:
    flow = known(event, payload)
    assert (flow.is_from_fork, flow.lacks_secrets) == (is_from_fork, lacks_secrets)


@pytest.mark.parametrize(
    ("event", "payload", "environ", "is_of_change", "base"),
    [
        ("pull_request", events.pull_request(HEAD), {}, True, "main"),
        ("pull_request", events.pull_request(HEAD), {"GITHUB_BASE_REF": "release"}, True, "release"),
        ("pull_request", None, {}, True, None),
        ("pull_request_target", events.pull_request(HEAD), {}, True, "main"),
        ("merge_group", {"merge_group": {"base_ref": "refs/heads/main"}}, {}, True, "main"),
        ("merge_group", None, {}, True, None),
        ("push", events.push(HEAD), {"GITHUB_BASE_REF": ""}, False, None),
    ],
)
def test_base_branch_of_a_change(
    event: str, payload: Any, environ: dict[str, str], is_of_change: bool, base: str | None
) -> None:
    flow = known(event, payload, **environ)
    assert (flow.is_of_change, flow.base_branch) == (is_of_change, base)


@pytest.mark.parametrize(
    ("event", "ref", "is_of_default_branch"),
    [
        ("push", "refs/heads/main", True),
        ("workflow_dispatch", "refs/heads/main", True),
        ("workflow_dispatch", "refs/heads/feat", False),
        ("push", "refs/tags/main", False),
        ("push", "", False),
        ("pull_request_target", "refs/heads/main", False),
        ("workflow_run", "refs/heads/main", False),
    ],
)
def test_run_of_the_default_branch(event: str, ref: str, is_of_default_branch: bool) -> None:
    assert known(event, events.push(HEAD), GITHUB_REF=ref).is_of_default_branch == is_of_default_branch
    assert not known(event, None, GITHUB_REF=ref).is_of_default_branch


@pytest.mark.parametrize(("ref", "is_of_default_branch"), [("refs/heads/main", True), ("", False)])
def test_schedule_is_of_the_default_branch(ref: str, is_of_default_branch: bool) -> None:
    payload = {"schedule": "41 2 * * *"}
    assert known("schedule", payload, GITHUB_REF=ref).is_of_default_branch == is_of_default_branch


def test_deleted_fork_is_a_fork() -> None:
    payload = events.pull_request(HEAD)
    payload["pull_request"]["head"]["repo"] = None
    assert known("pull_request", payload).lacks_secrets


def test_addresses_of_an_enterprise_server() -> None:
    flow = known("push", None, GITHUB_API_URL="https://ghe/api/v3", GITHUB_GRAPHQL_URL="https://ghe/api/graphql")
    assert (flow.api_url, flow.graphql_url) == ("https://ghe/api/v3", "https://ghe/api/graphql")


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "x",
        {"pull_request": []},
        {"pull_request": {"number": "7", "head": 1}},
        {"pull_request": {"number": True, "head": {"sha": HEAD, "repo": []}, "user": "x"}},
        {"pull_request": {"number": 10**30, "head": {"sha": HEAD, "ref": 5}}},
        {"pull_request": {"number": -1, "head": {"sha": f"{HEAD}\n::add-mask::e"}}},
        {"workflow_run": {"event": "pull_request", "head_sha": HEAD, "head_repository": {"full_name": []}}},
    ],
)
@pytest.mark.parametrize("event", ["pull_request", "workflow_run", ""])
def test_unexpected_payloads_are_ignored(event: str, payload: Any) -> None:
    flow = known(event, payload, GITHUB_SHA="not a commit", GITHUB_RUN_ID="five")
    assert flow.pull_request is None or flow.pull_request >= 0
    assert re.fullmatch(r"[0-9a-f]*", flow.shown_commit)
    assert flow.run_id == 0


@pytest.mark.parametrize("environ", [{}, {"GITHUB_ACTIONS": "false", "GITHUB_REPOSITORY": "acme/demo"}])
def test_no_workflow_outside_github_actions(environ: dict[str, str]) -> None:
    assert read_workflow(environ) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff"])
def test_workflow_is_read_without_its_event(content: bytes | None, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    if content is not None:
        event.write_bytes(content)
    found = read_workflow({**ENVIRON, "GITHUB_EVENT_PATH": str(event)})
    assert found is not None
    assert (found.repository, found.pull_request) == ("acme/demo", None)
