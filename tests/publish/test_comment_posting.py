"""Comments against a double of GitHub's API that checks every request against GitHub's own description."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from agentv_ci.app.environment import system_environment
from agentv_ci.publish.comment import Comment, NotCommented
from agentv_ci.publish.comment_posting import comment_on
from agentv_ci.publish.workflow import Head, Workflow
from tests.action.github_api import BOT, Failure, FakeGitHub, Pull
from tests.publish.workflows import HEAD, PULL_REQUEST, past
from tests.support import NOW

TOKEN = "ghs_testtoken0123456789"


@dataclass(slots=True)
class Site:
    """GitHub, and a workflow that runs there."""

    github: FakeGitHub
    workflow: Workflow
    slept: list[float] = field(default_factory=list)

    def comment(self, body: str = "## Passed", run_id: int = 5, key: str = "Evals/evals", token: str = TOKEN) -> str:
        comment = Comment(key, lambda limit: body[:limit], past(run_id), self.workflow)
        environment = replace(
            system_environment({}), now=lambda: NOW, sleep=self._sleep, uniform=lambda _low, _high: 1.0
        )
        return asyncio.run(comment_on(comment, self.workflow, token, environment))

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def methods(self) -> list[str]:
        """What was written, and how."""
        return [call.method for call in self.github.writes()]


@pytest.fixture
def site() -> Iterator[Site]:
    github = FakeGitHub()
    with github.running() as url:
        yield Site(github, replace(PULL_REQUEST, api_url=url, graphql_url=f"{url}/graphql"))
    assert github.violations == []


def test_first_run_writes_a_comment(site: Site) -> None:
    assert site.comment().startswith("https://")
    (comment,) = site.github.comments
    assert comment.body.startswith("<!-- agentv-ci:Evals/evals -->\n## Passed")
    assert {call.token for call in site.github.calls} == {TOKEN}


def test_next_run_updates_it(site: Site) -> None:
    site.comment(run_id=1)
    site.comment("## Not passed", run_id=2)
    (comment,) = site.github.comments
    assert "## Not passed" in comment.body
    assert "The last 2 runs" in comment.body
    assert site.methods == ["POST", "PATCH"]


def test_keys_have_comments_of_their_own(site: Site) -> None:
    site.comment(key="gpt")
    site.comment(key="claude")
    site.comment(key="gpt", run_id=6)
    assert len(site.github.comments) == 2


def test_comment_of_somebody_else_is_left_alone(site: Site) -> None:
    planted = site.github.plant("<!-- agentv-ci:Evals/evals -->\nmine", author="mallory")
    site.comment()
    assert planted.body == "<!-- agentv-ci:Evals/evals -->\nmine"
    assert site.methods == ["POST"]


def test_own_comment_that_only_quotes_the_marker_is_another_one(site: Site) -> None:
    site.github.plant("> <!-- agentv-ci:Evals/evals -->", author=BOT)
    site.comment()
    assert site.methods == ["POST"]


def test_is_found_behind_many_others(site: Site) -> None:
    for number in range(250):
        site.github.plant(f"comment {number}")
    site.comment(run_id=1)
    site.comment(run_id=2)
    assert site.methods == ["POST", "PATCH"]


def test_app_with_a_token_of_its_own_finds_its_comment(site: Site) -> None:
    site.github.viewer, site.github.login = "acme-evals", "acme-evals[bot]"
    site.comment(run_id=1)
    site.comment(run_id=2)
    assert site.methods == ["POST", "PATCH"]


def test_server_that_does_not_say_whose_token_it_is(site: Site) -> None:
    site.github.viewer = None
    site.comment(run_id=1)
    site.comment(run_id=2)
    assert site.methods == ["POST", "PATCH"]


def test_later_run_has_the_last_word(site: Site) -> None:
    site.comment("later", run_id=9)
    with pytest.raises(NotCommented, match="a later run has already commented"):
        site.comment("earlier", run_id=8)
    assert "later" in site.github.comments[0].body


def test_token_that_may_only_read(site: Site) -> None:
    site.github.permissions = {}
    with pytest.raises(NotCommented, match="403: Resource not accessible by integration"):
        site.comment()
    assert len(site.methods) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_failure_that_passes_is_tried_again(site: Site, status: int) -> None:
    site.github.failures = [Failure(status, method="GET"), Failure(status, method="POST")]
    site.comment()
    assert len(site.github.comments) == 1


def test_lost_answer_does_not_make_a_second_comment(site: Site) -> None:
    site.github.viewer = None
    site.github.failures = [Failure(502, method="PATCH"), Failure(502, method="GET", done=True)]
    site.comment(run_id=1)
    site.comment(run_id=2)
    assert len(site.github.comments) == 1


def test_posted_comment_whose_answer_was_lost_is_found_again(site: Site) -> None:
    # The first POST of an attempt is the question whose token it is.
    site.github.failures = [Failure(403, method="POST"), Failure(502, method="POST", done=True)]
    site.comment()
    assert len(site.github.comments) == 1
    assert site.methods == ["POST", "PATCH"]


def test_wait_that_is_asked_for_is_kept(site: Site) -> None:
    site.github.failures = [Failure(403, "You have exceeded a secondary rate limit", "GET", {"Retry-After": "7"})]
    site.comment()
    assert site.slept == [7.0]


def test_failure_that_stays_is_said(site: Site) -> None:
    site.github.failures = [Failure(500, "Server Error", "GET")] * 9
    with pytest.raises(NotCommented, match="GitHub returned 500: Server Error"):
        site.comment()


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(NotCommented, match="cannot reach GitHub: ConnectError"):
            Site(FakeGitHub(), replace(PULL_REQUEST, api_url=url, graphql_url=url)).comment()


@pytest.mark.parametrize("url", ["nonsense", "http://[", "ftp://x"])
def test_address_that_is_none(url: str) -> None:
    with pytest.raises(NotCommented, match="cannot reach GitHub"):
        Site(FakeGitHub(), replace(PULL_REQUEST, api_url=url, graphql_url=url)).comment()


@pytest.mark.parametrize("token", ["a\nb", "ä", "a b"])
def test_token_is_never_repeated(site: Site, token: str) -> None:
    with pytest.raises(NotCommented) as refused:
        site.comment(token=token)
    assert token not in str(refused.value)


class TestWorkflowRun:
    """A job of the base that comments for a fork's run."""

    @pytest.fixture
    def site(self, site: Site) -> Site:
        head = Head(HEAD, "stranger/demo", "stranger", "feat")
        site.workflow = replace(site.workflow, event="workflow_run", pull_request=None, head=head)
        return site

    def test_pull_request_is_found_by_its_head(self, site: Site) -> None:
        site.github.pulls = [Pull(6, "stranger", "feat", "9" * 40), Pull(7, "stranger", "feat", HEAD)]
        site.comment()
        assert len(site.github.comments) == 1
        (asked,) = [call for call in site.github.calls if call.path.endswith("/pulls")]
        assert (asked.query["head"], asked.query["state"]) == ("stranger:feat", "open")

    def test_head_that_has_moved_on(self, site: Site) -> None:
        site.github.pulls = [Pull(7, "stranger", "feat", "9" * 40)]
        with pytest.raises(NotCommented, match="no open pull request has commit 1111111 as its head"):
            site.comment()

    def test_fork_that_is_gone(self, site: Site) -> None:
        site.workflow = replace(site.workflow, head=Head(HEAD, None, None, "feat"))
        with pytest.raises(NotCommented, match="no open pull request"):
            site.comment()


def test_markers_survive_what_github_does_to_texts(site: Site) -> None:
    """GitHub answers with the line breaks it was given, and counts characters as we do."""
    site.comment("ä€😀" * 30_000, run_id=1)
    site.comment(run_id=2)
    assert site.methods == ["POST", "PATCH"]
    assert json.loads(site.github.calls[-1].text)["body"].startswith("<!-- agentv-ci:")
