"""The double of GitHub's API reports what GitHub would refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.action import github_api
from tests.action.github_api import Answer, FakeGitHub

HEADERS = {"authorization": "Bearer ghs_token", "user-agent": "agentv-ci"}
LIST = "/repos/acme/demo/issues/7/comments"
ONE = "/repos/acme/demo/issues/comments"


def ask(github: FakeGitHub, method: str, target: str, body: Any = None) -> Answer:
    return github.answer(method, target, HEADERS, "" if body is None else json.dumps(body))


@pytest.mark.parametrize(
    ("method", "target", "sent", "said"),
    [
        ("POST", LIST, {"text": "x"}, "'body' is a required property"),
        ("POST", LIST, None, "Missing required request body"),
        ("PATCH", f"{ONE}/101", {"body": None}, "None is not of type 'string'"),
        ("GET", "/repos/acme/demo/pulls?state=merged", None, "merged"),
        ("POST", "/repos/acme/demo/check-runs", {}, ""),
        ("POST", "/graphql", {"query": "{ nodes }"}, "nodes"),
    ],
)
def test_invalid_requests_are_reported(method: str, target: str, sent: Any, said: str) -> None:
    github = FakeGitHub()
    assert ask(github, method, target, sent).status in (400, 404, 422)
    (violation,) = github.violations
    assert said in violation


def test_invalid_answers_of_the_double_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github_api, "_as_comment", lambda comment: {"id": comment.number})
    github = FakeGitHub()
    ask(github, "POST", LIST, {"body": "one"})
    assert github.violations[0].startswith(f"answer POST {LIST}: ")
