"""The double of GitHub's API notices what GitHub would notice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.action import github_api
from tests.action.github_api import BOT, COMMENTS, PULLS, Answer, Failure, FakeGitHub, Pull, example

HEADERS: Mapping[str, str] = {"authorization": "Bearer ghs_token", "user-agent": "agentv-ci"}
LIST = "/repos/acme/demo/issues/7/comments"
ONE = "/repos/acme/demo/issues/comments"


def ask(github: FakeGitHub, method: str, target: str, body: Any = None, **headers: str) -> Answer:
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    return github.answer(method, target, {**HEADERS, **headers}, text)


def body(answer: Answer) -> Any:
    return answer.body


def test_comment_is_made_found_and_changed() -> None:
    github = FakeGitHub()
    made = ask(github, "POST", LIST, {"body": "one"})
    number = body(made)["id"]
    changed = ask(github, "PATCH", f"{ONE}/{number}", {"body": "two"})
    listed = ask(github, "GET", f"{LIST}?per_page=100")
    assert [made.status, changed.status, listed.status] == [201, 200, 200]
    assert [(each["id"], each["body"], each["user"]["login"]) for each in body(listed)] == [(number, "two", BOT)]
    assert body(ask(github, "GET", f"{ONE}/{number}")) == body(listed)[0]
    assert github.violations == []
    assert [call.token for call in github.calls] == ["ghs_token"] * 4
    assert [call.body for call in github.writes()] == [{"body": "one"}, {"body": "two"}]


@pytest.mark.parametrize(
    ("method", "target", "sent", "said"),
    [
        ("POST", LIST, {}, "'body' is a required property"),
        ("POST", LIST, {"body": 3}, "3 is not of type 'string'"),
        ("POST", LIST, {"text": "x"}, "'body' is a required property"),
        ("POST", LIST, ["body"], "is not of type 'object'"),
        ("POST", LIST, "{", "Failed to deserialize value"),
        ("POST", LIST, None, "Missing required request body"),
        ("PATCH", f"{ONE}/101", {"body": None}, "None is not of type 'string'"),
        ("GET", f"{LIST}?per_page=many", None, "many"),
        ("GET", "/repos/acme/demo/issues/seven/comments", None, "seven"),
    ],
)
def test_request_that_github_does_not_describe_is_reported(method: str, target: str, sent: Any, said: str) -> None:
    github = FakeGitHub()
    github.plant("here already")
    assert ask(github, method, target, sent).status == 422
    (violation,) = github.violations
    assert violation.startswith(f"request {method} {target.partition('?')[0]}: ")
    assert said in violation
    assert [each.body for each in github.comments] == ["here already"]


@pytest.mark.parametrize(
    ("method", "target"), [("POST", "/repos/acme/demo/check-runs"), ("DELETE", f"{ONE}/101"), ("GET", "/user")]
)
def test_operation_that_is_not_described_is_reported(method: str, target: str) -> None:
    github = FakeGitHub()
    assert ask(github, method, target).status in (404, 422)
    assert len(github.violations) == 1


def test_answer_of_the_double_that_is_not_github_s_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    github = FakeGitHub()
    whole = github_api._as_comment  # noqa: SLF001
    monkeypatch.setattr(
        github_api, "_as_comment", lambda made: {key: value for key, value in whole(made).items() if key != "user"}
    )
    ask(github, "POST", LIST, {"body": "one"})
    assert github.violations == [f"answer POST {LIST}: 'user' is a required property"]


def test_pages() -> None:
    github = FakeGitHub()
    for number in range(250):
        github.plant(str(number))
    pages = [ask(github, "GET", f"{LIST}?per_page=100&page={page}") for page in (1, 2, 3, 4)]
    assert [[each["body"] for each in body(page)] for page in pages] == [
        [str(number) for number in range(start, min(start + 100, 250))] for start in (0, 100, 200, 300)
    ]
    assert [page.headers.get("Link", "").partition(">")[0] for page in pages] == [
        f"<http://api{LIST}?per_page=100&page=2",
        f"<http://api{LIST}?per_page=100&page=3",
        "",
        "",
    ]
    assert len(body(ask(github, "GET", LIST))) == 30
    assert github.violations == []


def test_token_of_a_fork_reads_and_does_not_write() -> None:
    github = FakeGitHub(permissions={})
    refused = ask(github, "POST", LIST, {"body": "one"})
    assert (refused.status, body(refused)["message"]) == (403, "Resource not accessible by integration")
    assert ask(github, "GET", LIST).status == 200
    assert github.comments == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"authorization": ""}, 401), ({"authorization": "ghs_token"}, 401), ({"user-agent": ""}, 403)],
)
def test_request_without_a_token_or_a_name_is_refused(headers: dict[str, str], status: int) -> None:
    assert FakeGitHub().answer("GET", LIST, {**HEADERS, **headers}, "").status == status


def test_comment_has_a_longest_length() -> None:
    github = FakeGitHub()
    assert ask(github, "POST", LIST, {"body": "é" * 65_536}).status == 201
    refused = ask(github, "POST", LIST, {"body": "e" * 65_537})
    assert refused.status == 422
    assert body(refused)["errors"][0]["message"] == "Body is too long (maximum is 65536 characters)"
    assert ask(github, "PATCH", f"{ONE}/{github.comments[0].number}", {"body": "e" * 65_537}).status == 422
    assert [len(each.body) for each in github.comments] == [65_536]


def test_other_issues_and_comments_are_not_there() -> None:
    github = FakeGitHub()
    assert ask(github, "GET", LIST.replace("/7/", "/8/")).status == 404
    assert ask(github, "PATCH", f"{ONE}/1", {"body": "x"}).status == 404
    assert github.violations == []


def test_failures_are_played_once_and_for_their_method() -> None:
    github = FakeGitHub(failures=[Failure(502, method="POST"), Failure(502, method="POST", done=True)])
    assert ask(github, "GET", LIST).status == 200
    assert [ask(github, "POST", LIST, {"body": str(n)}).status for n in range(3)] == [502, 502, 201]
    assert [each.body for each in github.comments] == ["1", "2"]
    github.failures.append(Failure(429, "You have exceeded a secondary rate limit", headers={"Retry-After": "1"}))
    assert ask(github, "GET", LIST).headers == {"Retry-After": "1"}


def test_pull_requests_are_found_by_branch() -> None:
    sha = "a" * 40
    ours, theirs, older = (
        Pull(8, "acme", "feat", sha),
        Pull(7, "stranger", "feat", sha),
        Pull(9, "stranger", "feat", sha, "closed"),
    )
    github = FakeGitHub(pulls=[theirs, ours, older])
    found = body(ask(github, "GET", "/repos/acme/demo/pulls?state=open&head=stranger:feat"))
    assert [(each["number"], each["head"]["sha"]) for each in found] == [(7, sha)]
    assert [each["number"] for each in body(ask(github, "GET", "/repos/acme/demo/pulls?state=all"))] == [7, 8, 9]
    assert ask(github, "GET", "/repos/acme/demo/pulls?state=merged").status == 422
    assert len(github.violations) == 1


def test_graphql_says_whose_token_it_is() -> None:
    query = {"query": "query { viewer { login } }"}
    assert ask(FakeGitHub(), "POST", "/graphql", query).body == {"data": {"viewer": {"login": "github-actions"}}}
    assert ask(FakeGitHub(viewer=None), "POST", "/graphql", query).status == 403
    github = FakeGitHub()
    assert ask(github, "POST", "/graphql", {"query": "{ nodes }"}).status == 400
    assert len(github.violations) == 1


@pytest.mark.parametrize(("path", "method", "status"), [(COMMENTS, "post", "201"), (PULLS, "get", "200")])
def test_examples_are_copies(path: str, method: str, status: str) -> None:
    assert example(path, method, status) == example(path, method, status)
    assert example(path, method, status) is not example(path, method, status)
