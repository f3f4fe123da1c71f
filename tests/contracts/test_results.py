"""Who is to blame for an error."""

from __future__ import annotations

from typing import get_args

import pytest

from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import ErrorKind, members_of
from agentv_ci.contracts.results import MODEL_APIS, blame_of
from agentv_ci.contracts.targets import Target

AGENTS = ("cli", "claude-code", "codex", "vscode-copilot", "acme/bot", "mock")


def test_model_apis_are_the_targets_that_speak_http() -> None:
    members = members_of(Target, "provider").items()
    assert {kind for kind, contract in members if issubclass(contract, HttpTarget)} == MODEL_APIS


@pytest.mark.parametrize("provider", [*AGENTS, *sorted(MODEL_APIS)])
def test_agent_is_to_blame_for_a_crash_a_hang_and_a_broken_protocol(provider: str) -> None:
    blamed = {kind for kind in get_args(ErrorKind) if blame_of(kind, provider) == "agent"}
    assert blamed == ({"process"} if provider in MODEL_APIS else {"process", "timeout", "malformed"})


def test_error_of_an_unknown_kind_is_not_the_agents() -> None:
    assert blame_of(None, "cli") == "infrastructure"
