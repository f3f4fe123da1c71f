"""Finding the results of the base branch through a double of GitHub's API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.github.base_results import MAX_BYTES, BaseResults, fetch_base_results
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow
from tests.action.github_api import FakeGitHub, Run
from tests.github.workflows import PULL_REQUEST
from tests.support import FakeClock

FILES = {"agentv-results": b"zip"}


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    found = FakeGitHub(permissions={"actions": "read"})
    yield found
    assert found.violations == []


def fetched(github: FakeGitHub, **given: Any) -> BaseResults:
    workflow: Workflow = replace(PULL_REQUEST, **given)
    with github.running() as url:
        found = fetch_base_results(
            "agentv-results", replace(workflow, api_url=url), "ghs_token0123456789", FakeClock().environment()
        )
        return asyncio.run(found)


def test_newest_run_that_has_the_artifact(github: FakeGitHub) -> None:
    others = [Run(9), Run(8, {"other": b"no"}), Run(7, {"agentv-results": b""}), Run(6, FILES, size=MAX_BYTES + 1)]
    github.runs = [*others, Run(5, {"other": b"no", **FILES})]
    assert fetched(github) == BaseResults("main (0000000)", b"zip")
    (asked, *_) = github.calls
    assert (asked.path, asked.query["branch"]) == ("/repos/acme/demo/actions/workflows/evals.yml/runs", "main")


@pytest.mark.parametrize(
    ("runs", "given", "reason"),
    [
        ([], {}, "no run of main has an artifact 'agentv-results'"),
        ([Run(n, FILES if n == 6 else {}) for n in range(1, 7)], {}, "no run of main has an artifact"),
        # A branch of a fork may have the name of the base branch.
        ([Run(1, FILES, event="pull_request")], {}, "no run of main has an artifact"),
        *(([Run(1, FILES, event=each)], {}, "no run of main") for each in ("issue_comment", "workflow_run")),
        ([Run(1, FILES, repository="stranger/demo")], {}, "no run of main has an artifact"),
        ([Run(1, FILES)], {"base_branches": ("release", "main")}, "no run of release has an artifact"),
        ([Run(1, FILES)], {"base_branches": ()}, "the base branch or the file of the workflow is unknown"),
        ([Run(1, FILES)], {"file": ""}, "the base branch or the file of the workflow is unknown"),
    ],
)
def test_no_results(github: FakeGitHub, runs: list[Run], given: dict[str, Any], reason: str) -> None:
    github.runs = runs
    with pytest.raises(NotPublished, match=reason):
        fetched(github, **given)


def test_token_that_may_not_read_artifacts(github: FakeGitHub) -> None:
    github.permissions = {}
    with pytest.raises(NotPublished, match="the job needs `actions: read`"):
        fetched(github)
