"""The official SDKs in front of the double of model APIs, and their requests for one simple question."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from tests.servers.model_api import model_api

MODEL = "mock-model"
KEY = "mock-key"
SYSTEM = "S"
QUESTION = "hi"
MAX_TOKENS = 100
AZURE_VERSION = "2024-10-21"

_HIDDEN = ("OPENAI_", "AZURE_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Settings of the SDKs, and proxies, that this machine may have in its environment."""
_RELEVANT = frozenset(
    {"authorization", "api-key", "x-api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta", "content-type"}
)


@dataclass(frozen=True, slots=True)
class SdkRequest:
    """A request as an SDK sends it."""

    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Those that the API reads, names in lower case."""
    body: Any


def sdk(module: str) -> Any:
    """Import an SDK, or skip the test that needs it."""
    package = "google-genai" if module.startswith("google.") else module.partition(".")[0]
    return pytest.importorskip(module, reason=f"{package} is missing; install it: python -m pip install {package}")


def _openai(url: str, below: str = "/v1") -> Any:
    return sdk("openai").OpenAI(base_url=url + below, api_key=KEY, max_retries=0)


def _azure_deployments(url: str) -> Any:
    given = {"azure_endpoint": url, "api_version": AZURE_VERSION}
    return sdk("openai").AzureOpenAI(**given, api_key=KEY, max_retries=0)


def _anthropic(url: str) -> Any:
    return sdk("anthropic").Anthropic(base_url=url, api_key=KEY, max_retries=0)


def _gemini(url: str) -> Any:
    return sdk("google.genai").Client(api_key=KEY, http_options={"base_url": url})


def _ask_chat(client: Any, **more: Any) -> Any:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    asked = {"model": MODEL, "messages": messages, "max_completion_tokens": MAX_TOKENS}
    return client.chat.completions.create(**asked, **more)


def _ask_responses(client: Any, **more: Any) -> Any:
    asked = [{"role": "user", "content": QUESTION}]
    given = {"model": MODEL, "instructions": SYSTEM, "input": asked, "max_output_tokens": MAX_TOKENS}
    return client.responses.create(**given, **more)


def _ask_anthropic(client: Any, **more: Any) -> Any:
    messages = [{"role": "user", "content": QUESTION}]
    return client.messages.create(model=MODEL, max_tokens=MAX_TOKENS, system=SYSTEM, messages=messages, **more)


def _ask_gemini(client: Any, **more: Any) -> Any:
    contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
    config = {"system_instruction": SYSTEM, "temperature": 0.2, "max_output_tokens": MAX_TOKENS, **more}
    return client.models.generate_content(model=MODEL, contents=contents, config=config)


_azure_v1 = partial(_openai, below="/openai/v1/")
SDKS: Mapping[str, tuple[Callable[[str], Any], Callable[..., Any]]] = {
    "openai-chat": (_openai, _ask_chat),
    "openai-responses": (_openai, _ask_responses),
    "azure-deployments": (_azure_deployments, _ask_chat),
    "azure-v1": (_azure_v1, _ask_chat),
    "azure-v1-responses": (_azure_v1, _ask_responses),
    "anthropic": (_anthropic, _ask_anthropic),
    "gemini": (_gemini, _ask_gemini),
}
"""API → the client of its vendor, and a question in it."""


@contextmanager
def client(name: str, url: str) -> Iterator[Any]:
    """Open the client of an API."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(_HIDDEN)}
    with patch.dict(os.environ, kept, clear=True), SDKS[name][0](url) as made:
        yield made


def request(name: str) -> SdkRequest:
    """Return the request of the client of an API."""
    with model_api(requires_key=KEY) as api, client(name, api.url) as asking:
        SDKS[name][1](asking)
        (asked,) = api.questions
    headers = {name: value for name, value in asked.headers.items() if name in _RELEVANT}
    return SdkRequest(asked.method, asked.path, headers, asked.body)
