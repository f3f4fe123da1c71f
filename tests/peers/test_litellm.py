"""The LiteLLM proxy in mock mode, asked by our providers in five protocols: a server that we did not write."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Response
from tests.execute.builders import ask_all, context, question, target
from tests.peers.conftest import PEERS
from tests.support import clean_environment

PROXY = Path(os.environ[PEERS], "litellm", "bin", "litellm").resolve()
KEY = "sk-mock-0123456789abcdef0123456789abcdef"
CHAT = (ChatMessage("system", "S"), ChatMessage("user", "hi"))
QUESTION = question(chat=CHAT, timeout_s=60)
ANSWER = "MOCK-LITELLM 42"

CONFIG = f"""
model_list:
  - model_name: gpt-mock
    litellm_params: {{model: openai/gpt-4o, api_key: sk-none, mock_response: {ANSWER}}}
  - model_name: claude-mock
    litellm_params: {{model: anthropic/claude-sonnet-4-5, api_key: sk-none, mock_response: {ANSWER}}}
  - model_name: gemini-mock
    litellm_params: {{model: gemini/gemini-2.5-flash, api_key: sk-none, mock_response: {ANSWER}}}
  - model_name: azure-mock
    litellm_params: {{model: azure/gpt-4o, api_base: "http://127.0.0.1:9", api_key: sk-none,
      api_version: 2024-12-01-preview, mock_response: {ANSWER}}}
  - model_name: busy-mock
    litellm_params: {{model: openai/gpt-4o, api_key: sk-none, mock_response: litellm.RateLimitError}}
  - model_name: broken-mock
    litellm_params: {{model: openai/gpt-4o, api_key: sk-none, mock_response: litellm.InternalServerError}}
  - model_name: long-mock
    litellm_params: {{model: openai/gpt-4o, api_key: sk-none, mock_response: litellm.ContextWindowExceededError}}
general_settings: {{master_key: {KEY}}}
litellm_settings: {{telemetry: false, num_retries: 0}}
router_settings: {{num_retries: 0}}
"""
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "DISABLE_ADMIN_UI": "True"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the proxy and wait until it is ready."""
    folder = tmp_path_factory.mktemp("litellm")
    config = folder / "config.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [str(PROXY), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    with (folder / "log").open("w") as log:
        proxy = subprocess.Popen(command, cwd=folder, env=clean_environment(QUIET), stdout=log, stderr=log)
    try:
        wait_for(f"{address}/health/liveliness", proxy)
        yield address
    finally:
        proxy.terminate()
        proxy.wait(timeout=20)


def wait_for(address: str, proxy: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert proxy.poll() is None, "the proxy ended"
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise AssertionError("the proxy is not ready after two minutes")


def ask(url: str, **settings: Any) -> Response | ProviderError:
    (found,) = ask_all(target(api_key=KEY, max_retries=1, **settings), [QUESTION], context())
    return found


@pytest.mark.parametrize(
    ("settings", "below"),
    [
        ({"provider": "openai", "model": "gpt-mock"}, "/v1"),
        ({"provider": "openai", "model": "gpt-mock", "api_format": "responses"}, "/v1"),
        ({"provider": "anthropic", "model": "claude-mock"}, ""),
        ({"provider": "gemini", "model": "gemini-mock"}, ""),
        ({"provider": "azure-openai", "deployment": "azure-mock"}, ""),
    ],
    ids=["chat", "responses", "anthropic", "gemini", "azure-deployments"],
)
def test_a_protocol_is_understood(url: str, settings: dict[str, Any], below: str) -> None:
    found = ask(url, base_url=url + below, **settings)
    assert isinstance(found, Response), repr(found)
    assert found.answer == ANSWER
    assert found.usage is not None
    assert found.usage.total_tokens


@pytest.mark.parametrize(
    ("model", "kind", "requests"),
    [
        ("busy-mock", "rate_limit", 2),
        ("broken-mock", "server", 2),
        ("long-mock", "request", 1),
        ("no-such-model", "request", 1),
    ],
)
def test_an_error_has_its_kind(url: str, model: str, kind: str, requests: int) -> None:
    found = ask(url, provider="openai", model=model, base_url=f"{url}/v1")
    assert isinstance(found, ProviderError), repr(found)
    assert (found.kind, found.requests) == (kind, requests), found.detail
