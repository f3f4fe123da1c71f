"""The real agents, each with the settings that lead it to a model API of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.conftest import PEERS

KEY = "sk-mock-0123456789"
BIN = Path(os.environ[PEERS], "node_modules", ".bin").resolve()


GEMINI_SETTINGS = json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})


def codex(url: str) -> dict[str, Any]:
    provider = f'{{name="Mock",base_url="{url}/v1",env_key="MOCK_KEY",wire_api="responses"'
    provider += ",request_max_retries=0,stream_max_retries=0}"
    overrides = ("model_provider=mock", f"model_providers.mock={provider}")
    return {
        "provider": "codex",
        "model": "mock-model",
        "sandbox": "danger-full-access",
        "args": [word for each in overrides for word in ("-c", each)],
        "env": {"MOCK_KEY": KEY},
    }


def claude(url: str) -> dict[str, Any]:
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "CLAUDE_CODE_MAX_RETRIES": "0"}
    return {"provider": "claude-code", "env": env}


def copilot(url: str) -> dict[str, Any]:
    own = {"BASE_URL": f"{url}/v1", "TYPE": "openai", "API_KEY": KEY}
    env = {f"COPILOT_PROVIDER_{name}": value for name, value in own.items()}
    return {"provider": "copilot-cli", "env": {**env, "COPILOT_OFFLINE": "true", "COPILOT_MODEL": "mock-model"}}


def gemini(url: str) -> dict[str, Any]:
    env = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {"provider": "gemini-cli", "model": "gemini-2.5-flash", "env": env, "args": ["-y"]}


@dataclass(frozen=True, slots=True)
class Peer:
    program: str
    settings: Callable[[str], dict[str, Any]]
    """Returns those of its target, for the URL of a model API."""
    tool: str
    """What it calls its shell."""
    kinds: tuple[str, ...]
    """Kinds of failure for status 400 and 429, and for a stream that is cut; `timeout`: it retries for longer."""


PEERS_BY_NAME = {
    "codex": Peer("codex", codex, "command_execution", ("request", "rate_limit", "network")),
    "claude": Peer("claude", claude, "Bash", ("request", "rate_limit", "process")),
    "copilot": Peer("copilot", copilot, "bash", ("request", "rate_limit", "process")),
    "gemini": Peer("gemini", gemini, "run_shell_command", ("request", "timeout", "process")),
}
each_peer = pytest.mark.parametrize("peer", PEERS_BY_NAME.values(), ids=PEERS_BY_NAME)
