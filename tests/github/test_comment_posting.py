"""Commenting through a double of GitHub's API, and through servers that answer anything."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from agentv_ci.base.proxies import ThroughProxies
from agentv_ci.github import api
from agentv_ci.github.comment import Comment
from agentv_ci.github.comment_posting import comment_on
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Head, Workflow
from tests.action.github_api import BOT, Failure, FakeGitHub, Pull
from tests.github.workflows import HEAD, PULL_REQUEST, past
from tests.support import FakeClock

pytestmark = pytest.mark.slow

TOKEN = "ghs_testtoken0123456789"
MARKER = "<!-- agentv-ci:k -->"


def commented(workflow: Workflow, clock: FakeClock | None = None, *, token: str = TOKEN, **given: Any) -> str:
    """Comment, and return the address."""
    body = given.get("body", "## Passed")
    comment = Comment(given.get("key", "k"), lambda limit, _: body[:limit], past(given.get("run_id", 5)), workflow)
    return asyncio.run(comment_on(comment, workflow, token, (clock or FakeClock()).environment()))


def refused(workflow: Workflow, *, token: str = TOKEN) -> str:
    with pytest.raises(NotPublished) as error:
        commented(workflow, token=token)
    assert token not in str(error.value)
    assert 0 < len(str(error.value)) < 500
    return str(error.value)


@dataclass(slots=True)
class Site:
    """GitHub, and a workflow that runs there."""

    github: FakeGitHub
    workflow: Workflow
    clock: FakeClock = field(default_factory=FakeClock)

    def comment(self, *run_ids: int, **given: Any) -> str:
        return [commented(self.workflow, self.clock, run_id=each, **given) for each in run_ids or (5,)][-1]

    @property
    def methods(self) -> list[str]:
        return [call.method for call in self.github.writes()]


@pytest.fixture
def site() -> Iterator[Site]:
    github = FakeGitHub()
    with github.running() as url:
        yield Site(github, replace(PULL_REQUEST, api_url=url, graphql_url=f"{url}/graphql"))
    assert github.violations == []


def test_first_run_writes_a_comment(site: Site) -> None:
    assert site.comment().startswith("https://")
    assert site.github.comments[0].body.startswith(f"{MARKER}\n## Passed")
    assert {call.token for call in site.github.calls} == {TOKEN}


def test_next_run_updates_it(site: Site) -> None:
    site.comment(1)
    site.comment(2, body="## Not passed")
    (comment,) = site.github.comments
    assert "## Not passed" in comment.body
    assert "The last 2 runs" in comment.body
    assert site.methods == ["POST", "PATCH"]


def test_every_key_has_its_own_comment(site: Site) -> None:
    for key in ("gpt", "claude", "gpt"):
        site.comment(key=key)
    assert site.methods == ["POST", "POST", "PATCH"]


@pytest.mark.parametrize(
    ("body", "author"),
    [(f"{MARKER}\nmine", "mallory"), (f"{MARKER}\nmine", "github-actions"), (f"> {MARKER}", BOT)],
)
def test_other_comments_are_not_touched(site: Site, body: str, author: str) -> None:
    planted = site.github.plant(body, author=author)
    site.comment()
    assert planted.body == body
    assert site.methods == ["POST"]


def test_run_that_comments_at_the_same_time(site: Site) -> None:
    site.github.raced = f"{MARKER}\nof another run"
    site.comment(body="ours")
    (comment,) = site.github.comments
    assert "ours" in comment.body
    assert site.methods == ["POST", "DELETE", "PATCH"]


def test_second_comment_of_earlier_runs_is_deleted(site: Site) -> None:
    first = site.github.plant(f"{MARKER}\nstale", author=BOT)
    site.github.plant(f"{MARKER}\nstale, too", author=BOT)
    site.comment(body="ours")
    assert site.github.comments == [first]
    assert "ours" in first.body


def test_comment_is_found_on_the_last_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_PAGES", 3)
    for number in range(250):
        site.github.plant(f"comment {number}")
    site.comment(1, 2)
    assert site.methods == ["POST", "PATCH"]


@pytest.mark.parametrize(
    ("viewer", "login", "token"),
    [
        ("acme-evals", "acme-evals[bot]", TOKEN),
        ("acme-evals[bot]", "acme-evals[bot]", TOKEN),
        (None, BOT, TOKEN),
        ("github-actions", BOT, "ghp_personal0123456789"),
        ("ada", "ada", "ghp_personal0123456789"),
    ],
)
def test_own_comment_is_found_by_its_author(site: Site, viewer: str | None, login: str, token: str) -> None:
    site.github.viewer, site.github.login = viewer, login
    site.comment(1, 2, token=token)
    assert site.methods == ["POST", "PATCH"]


@pytest.mark.parametrize(("login", "token"), [(BOT, TOKEN), ("ada", "ghp_personal0123456789")])
def test_comment_is_written_if_graphql_fails(site: Site, login: str, token: str) -> None:
    site.github.login = login
    site.github.failures = [Failure(502, method="POST", path="/graphql")] * 9
    site.comment(1, 2, token=token)
    assert site.methods == ["POST", "PATCH"]


def test_app_whose_name_is_unknown_heals_its_comments(site: Site) -> None:
    site.github.viewer = None
    site.github.login = "acme-evals[bot]"
    site.comment(1, body="first")
    site.comment(2, body="second")
    (comment,) = site.github.comments
    assert "second" in comment.body


def test_comment_of_a_later_run_is_kept(site: Site) -> None:
    site.comment(9, body="later")
    with pytest.raises(NotPublished, match="a later run has already commented"):
        site.comment(8, body="earlier")
    assert "later" in site.github.comments[0].body


def test_token_without_write_access(site: Site) -> None:
    site.github.permissions = {}
    said = refused(site.workflow)
    assert said.startswith("GitHub returned 403: Resource not accessible by integration (the job needs")
    assert len(site.methods) == 1


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_temporary_failures_are_retried(site: Site, status: int) -> None:
    site.github.failures = [Failure(status, method="GET"), Failure(status, method="POST")]
    site.comment()
    assert len(site.github.comments) == 1


def test_lost_response_to_an_update_adds_no_comment(site: Site) -> None:
    site.github.viewer = None
    site.github.failures = [Failure(502, method="PATCH"), Failure(502, method="GET", done=True)]
    site.comment(1, 2)
    assert len(site.github.comments) == 1


def test_lost_response_to_a_post_adds_no_comment(site: Site) -> None:
    # The first POST is the query for the author.
    site.github.failures = [Failure(403, method="POST"), Failure(502, method="POST", done=True)]
    site.comment()
    assert len(site.github.comments) == 1
    assert site.methods == ["POST", "PATCH"]


@pytest.mark.parametrize("seconds", [7, 60])
def test_requested_wait_is_kept(site: Site, seconds: int) -> None:
    limit = Failure(403, "You have exceeded a secondary rate limit", "GET", {"Retry-After": str(seconds)})
    site.github.failures = [limit]
    site.comment()
    assert site.clock.slept == [seconds]


def test_lasting_failure(site: Site) -> None:
    site.github.failures = [Failure(500, "Server Error", "GET")] * 9
    assert refused(site.workflow) == "GitHub returned 500: Server Error"


def test_no_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert refused(replace(PULL_REQUEST, api_url=url, graphql_url=url)) == "cannot reach GitHub: ConnectError"


@pytest.mark.parametrize("url", ["nonsense", "http://[", "ftp://x"])
def test_invalid_address(url: str) -> None:
    assert refused(replace(PULL_REQUEST, api_url=url, graphql_url=url)).startswith("cannot reach GitHub: ")


@pytest.mark.parametrize("token", ["a\nb", "ä", "a b"])
def test_invalid_token_is_not_shown(site: Site, token: str) -> None:
    assert refused(site.workflow, token=token)


@pytest.mark.parametrize(("name", "value"), [("NO_PROXY", "http://[::1"), ("HTTP_PROXY", "http://x:y")])
def test_invalid_proxy(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    assert refused(replace(PULL_REQUEST, api_url="http://github.invalid", graphql_url="http://github.invalid"))


def test_longest_text_is_accepted(site: Site) -> None:
    site.comment(1, body="ä€😀" * 30_000)
    site.comment(2)
    assert site.methods == ["POST", "PATCH"]
    assert json.loads(site.github.calls[-1].text)["body"].startswith(MARKER)


@pytest.fixture
def after_a_fork(site: Site) -> Site:
    """A `workflow_run` of the base that comments for a fork's run."""
    head = Head(HEAD, "stranger/demo", "stranger", "feat")
    site.workflow = replace(site.workflow, event="workflow_run", pull_request=None, head=head)
    return site


def test_pull_request_of_a_workflow_run_is_found_by_its_head(after_a_fork: Site) -> None:
    github = after_a_fork.github
    github.pulls = [Pull(6, "stranger", "feat", "9" * 40), Pull(7, "stranger", "feat", HEAD)]
    after_a_fork.comment()
    assert len(github.comments) == 1
    (asked,) = [call for call in github.calls if call.path.endswith("/pulls")]
    assert (asked.query["head"], asked.query["state"]) == ("stranger:feat", "open")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (Head(HEAD, "stranger/demo", "stranger", "feat"), "no open pull request has commit 1111111 as its head"),
        (Head(HEAD, None, None, "feat"), "no open pull request has commit 1111111 as its head"),
        (None, "this run does not belong to a pull request"),
    ],
    ids=["moved on", "deleted", "unknown"],
)
def test_workflow_run_without_an_open_pull_request(after_a_fork: Site, head: Head | None, said: str) -> None:
    after_a_fork.github.pulls = [Pull(7, "stranger", "feat", "9" * 40)]
    assert refused(replace(after_a_fork.workflow, head=head)) == said


Answer = Callable[[httpx.Request], httpx.Response]
LOGIN = httpx.Response(200, json={"data": {"viewer": {"login": "github-actions[bot]"}}})
POSTED = httpx.Response(201, json={"id": 1, "html_url": "https://github.com/acme/demo/pull/7#issuecomment-1"})


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[httpx.Request]]:
    """Let a function answer all requests; returns the requests so far."""

    def install(answer: Answer) -> list[httpx.Request]:
        requests: list[httpx.Request] = []

        def respond(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return answer(request)

        mocked = httpx.MockTransport(respond)
        monkeypatch.setattr(
            ThroughProxies, "handle_async_request", lambda _, request: mocked.handle_async_request(request)
        )
        return requests

    return install


def hub(request: httpx.Request, *, planted: Mapping[str, Any] | None = None) -> httpx.Response:
    """GitHub with at most one comment, which was deleted before it is updated."""
    if request.url.path == "/graphql":
        return LOGIN
    if request.method == "GET":
        return httpx.Response(200, json=[planted] if planted else [])
    return httpx.Response(404) if request.method == "PATCH" else POSTED


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(401, json={"message": "Bad credentials"}),
        httpx.Response(404, json={"message": ["not", "text"]}),
        httpx.Response(422, content=b"<html>"),
        *(httpx.Response(429, headers={"Retry-After": each}) for each in ("9" * 400, "soon", "86400")),
        *(httpx.Response(307, headers={"Location": each}) for each in ("ftp://x/", "http://127.0.0.1:99999999/", "/")),
        httpx.Response(200, headers={"Content-Type": "application/json; charset=base64"}),
        httpx.Response(200, headers=[(b"Set-Cookie", b"a=\xff")]),
        httpx.Response(200, content=b"<html>Please log in</html>"),
        httpx.Response(204),
    ],
    ids=str,
)
def test_any_response_is_explained(answering: Any, response: httpx.Response) -> None:
    answering(lambda _: response)
    refused(PULL_REQUEST)


def test_malformed_list_is_retried(answering: Any) -> None:
    malformed = [httpx.Response(200, json={})]
    answering(lambda request: malformed.pop() if malformed and request.method == "GET" else hub(request))
    assert commented(PULL_REQUEST) == "https://github.com/acme/demo/pull/7#issuecomment-1"


def test_response_with_a_broken_encoding(answering: Any) -> None:
    answering(lambda _: httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")))
    assert refused(PULL_REQUEST) == "cannot reach GitHub: DecodingError"


def test_large_response_is_not_read(answering: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_BYTES", 1_000)
    answering(lambda request: httpx.Response(200, content=b" " * 999 + b"[]") if request.method == "GET" else POSTED)
    assert refused(PULL_REQUEST) == "the response is not from GitHub's API"


def test_response_that_never_ends(answering: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "TIMEOUT_S", 0.05)
    answering(lambda _: asyncio.sleep(9))
    assert "no answer within 0.05 s" in refused(PULL_REQUEST)


def test_token_is_not_sent_to_another_server(answering: Any) -> None:
    def moved(request: httpx.Request) -> httpx.Response:
        elsewhere = httpx.Response(307, headers={"Location": f"https://other.example{request.url.path}"})
        return elsewhere if request.url.host == "api.github.com" else hub(request)

    requests = answering(moved)
    commented(PULL_REQUEST)
    assert {each.headers.get("Authorization") for each in requests if each.url.host == "other.example"} == {None}


@pytest.mark.parametrize(
    ("planted", "written"),
    [
        ({}, ["PATCH", "POST"]),
        ({"user": {"login": "github-actions", "type": "User"}}, ["POST"]),
        *(({each: None}, ["POST"]) for each in ("body", "user")),
        ({"user": [BOT]}, ["POST"]),
    ],
    ids=str,
)
def test_comment_that_is_deleted_or_malformed(answering: Any, planted: Mapping[str, Any], written: list[str]) -> None:
    ours = {"id": 66, "body": f"{MARKER}\nbefore", "user": {"login": BOT, "type": "Bot"}, **planted}
    requests = answering(lambda request: hub(request, planted=ours))
    commented(PULL_REQUEST)
    assert [each.method for each in requests if each.method != "GET" and each.url.path != "/graphql"] == written
