"""Workflows, and the runs that their comments store."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agentv_ci.contracts.action import PastRun
from agentv_ci.github.workflow import Head, Workflow

BASE, HEAD, MERGE = "2" * 40, "1" * 40, "3" * 40

PULL_REQUEST = Workflow(
    event="pull_request",
    repository="acme/demo",
    server_url="https://github.com",
    api_url="https://api.github.com",
    graphql_url="https://api.github.com/graphql",
    commit=MERGE,
    name="Evals",
    file="evals.yml",
    job="evals",
    run_id=5,
    run_attempt=1,
    actor="ada",
    pull_request=7,
    head=Head(HEAD, "acme/demo", "acme", "feat"),
    base_commit=BASE,
    base_branches=("main",),
    is_of_pull_request=True,
)
PUSH = replace(PULL_REQUEST, event="push", pull_request=None, head=None, is_of_pull_request=False)
FORK = replace(PULL_REQUEST, head=Head(HEAD, "stranger/demo", "stranger", "feat"))


def past(run_id: int = 5, **given: Any) -> PastRun:
    plain = PastRun(run_id=run_id, attempt=1, sha=HEAD, at="2030-01-02 03:04", verdict="fail", passed=1, total=2)
    return plain.model_copy(update=given)
