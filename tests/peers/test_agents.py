"""The real agents, asked by our providers, against a model API that speaks their protocols."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.exchange import InputFile, ProviderError, Response
from agentv_ci.contracts.results import ToolCall
from tests.execute.builders import ask_all, context, question, target
from tests.peers.conftest import PEERS
from tests.servers import model_api as served
from tests.servers.model_api import ModelApi, Step, model_api
from tests.support import FakeClock, clean_environment

KEY = "sk-mock-0123456789"
BIN = Path(os.environ[PEERS], "node_modules", ".bin").resolve()
PROMPT = "say hi"


def codex(home: Path, url: str) -> dict[str, Any]:
    provider = f'{{name="Mock",base_url="{url}/v1",env_key="MOCK_KEY",wire_api="responses"'
    provider += ",request_max_retries=0,stream_max_retries=0}"
    overrides = ("model_provider=mock", f"model_providers.mock={provider}")
    return {
        "provider": "codex",
        "model": "mock-model",
        "args": [word for each in overrides for word in ("-c", each)],
        "env": {"CODEX_HOME": str(home), "HOME": str(home), "MOCK_KEY": KEY},
    }


def claude(home: Path, url: str) -> dict[str, Any]:
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "HOME": str(home), "CLAUDE_CODE_MAX_RETRIES": "0"}
    return {"provider": "claude-code", "env": env}


def copilot(home: Path, url: str) -> dict[str, Any]:
    own = {"BASE_URL": f"{url}/v1", "TYPE": "openai", "API_KEY": KEY}
    env = {f"COPILOT_PROVIDER_{name}": value for name, value in own.items()}
    return {
        "provider": "copilot-cli",
        "env": {**env, "COPILOT_OFFLINE": "true", "COPILOT_MODEL": "mock-model", "HOME": str(home)},
    }


def gemini(home: Path, url: str) -> dict[str, Any]:
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}), encoding="utf-8")
    env = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "HOME": str(home)}
    return {"provider": "gemini-cli", "model": "gemini-2.5-flash", "env": env, "args": ["-y"]}


@dataclass(frozen=True, slots=True)
class Peer:
    program: str
    settings: Callable[[Path, str], dict[str, Any]]
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


def ask(
    peer: Peer, home: Path, *steps: Step, files: Sequence[InputFile] = (), prompt: str = PROMPT, timeout_s: float = 60
) -> tuple[Response | ProviderError, ModelApi]:
    with model_api(*steps) as api:
        asked = target(executable=str(BIN / peer.program), **peer.settings(home, api.url))
        request = question(prompt=prompt, timeout_s=timeout_s, cwd=home, files=tuple(files))
        world = FakeClock(clean_environment()).environment()
        (answer,) = ask_all(asked, [request], context(home, environment=world))
        return answer, api


@each_peer
def test_agent_answers(peer: Peer, tmp_path: Path) -> None:
    found, api = ask(peer, tmp_path, served.says("MOCK-ANSWER 42"))
    assert isinstance(found, Response), repr(found)
    assert found.answer == "MOCK-ANSWER 42"
    assert found.has_trace
    assert PROMPT in json.dumps([each.body for each in api.questions])


@each_peer
def test_tool_call_is_in_the_trace(peer: Peer, tmp_path: Path) -> None:
    found, _ = ask(peer, tmp_path, served.calls_tool("echo hello-from-tool"))
    assert isinstance(found, Response), repr(found)
    (call,) = found.calls
    assert isinstance(call, ToolCall)
    assert (call.tool, "echo hello-from-tool" in json.dumps(call.input)) == (peer.tool, True)
    assert "hello-from-tool" in json.dumps(call.output)


@each_peer
def test_prompt_longer_than_a_command_line_arrives_whole_with_its_files(peer: Peer, tmp_path: Path) -> None:
    guideline = tmp_path / "rules (1).instructions.md"
    guideline.write_text("be brief", encoding="utf-8")
    files = [InputFile(guideline, is_guideline=True, sha256="")]
    found, api = ask(peer, tmp_path, served.says("42"), files=files, prompt="x" * 200_000 + " the-end")
    assert isinstance(found, Response), repr(found)
    asked = json.dumps([each.body for each in api.questions])
    assert "rules%20%281%29.instructions.md" in asked
    assert "the-end" in asked


@each_peer
@pytest.mark.parametrize(
    ("step", "which"),
    [
        (served.fails(400, "mock says no", retry_after_s=0), 0),
        (served.fails(429, "mock says no", retry_after_s=0), 1),
        (served.cuts("MOCK-ANSWER 42"), 2),
    ],
    ids=["400", "429", "cut"],
)
def test_error_of_the_api_is_an_error_of_the_target(peer: Peer, step: Step, which: int, tmp_path: Path) -> None:
    found, _ = ask(peer, tmp_path, step, timeout_s=20)
    assert isinstance(found, ProviderError), repr(found)
    assert found.kind == peer.kinds[which], found.detail
    assert which == 2 or found.printed is not None
