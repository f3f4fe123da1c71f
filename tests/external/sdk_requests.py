"""The requests of the official SDKs for one simple question, to compare ours with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from tests.servers.model_api import Asked, model_api

MODEL = "mock-model"
KEY = "mock-key"
SYSTEM = "S"
QUESTION = "hi"
MAX_TOKENS = 100
AZURE_VERSION = "2024-10-21"

_SETTINGS = ("OPENAI_", "AZURE_", "ANTHROPIC_", "GOOGLE_", "GEMINI_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
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


def sdk(name: str, package: str) -> Any:
    """Import an SDK, or skip the test that needs it."""
    return pytest.importorskip(name, reason=f"{package} is missing; install it: python -m pip install {package}")


@contextmanager
def unconfigured() -> Iterator[None]:
    """Hide settings of the SDKs, and proxies, that this machine may have in its environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_SETTINGS) and name.upper() not in _PROXIES
    }
    with patch.dict(os.environ, kept, clear=True):
        yield


@contextmanager
def openai_client(url: str) -> Iterator[Any]:
    with unconfigured(), sdk("openai", "openai").OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@contextmanager
def azure_client(url: str) -> Iterator[Any]:
    """A client of the deployments style."""
    made = sdk("openai", "openai").AzureOpenAI
    with unconfigured(), made(azure_endpoint=url, api_key=KEY, api_version=AZURE_VERSION, max_retries=0) as client:
        yield client


@contextmanager
def azure_v1_client(url: str) -> Iterator[Any]:
    made = sdk("openai", "openai").OpenAI
    with unconfigured(), made(base_url=f"{url}/openai/v1/", api_key=KEY, max_retries=0) as client:
        yield client


@contextmanager
def anthropic_client(url: str) -> Iterator[Any]:
    made = sdk("anthropic", "anthropic").Anthropic
    with unconfigured(), made(base_url=url, api_key=KEY, max_retries=0) as client:
        yield client


@contextmanager
def gemini_client(url: str) -> Iterator[Any]:
    made = sdk("google.genai", "google-genai").Client
    with unconfigured(), made(api_key=KEY, http_options={"base_url": url}) as client:
        yield client


def openai_chat() -> SdkRequest:
    return _recorded(openai_client, _ask_chat)


def openai_responses() -> SdkRequest:
    return _recorded(openai_client, _ask_responses)


def azure_deployments() -> SdkRequest:
    return _recorded(azure_client, _ask_chat)


def azure_v1_chat() -> SdkRequest:
    return _recorded(azure_v1_client, _ask_chat)


def azure_v1_responses() -> SdkRequest:
    return _recorded(azure_v1_client, _ask_responses)


def anthropic_messages() -> SdkRequest:
    def ask(client: Any) -> None:
        client.messages.create(
            model=MODEL, max_tokens=MAX_TOKENS, system=SYSTEM, messages=[{"role": "user", "content": QUESTION}]
        )

    return _recorded(anthropic_client, ask)


def gemini() -> SdkRequest:
    def ask(client: Any) -> None:
        contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
        config = {"system_instruction": SYSTEM, "temperature": 0.2, "max_output_tokens": MAX_TOKENS}
        client.models.generate_content(model=MODEL, contents=contents, config=config)

    return _recorded(gemini_client, ask)


def _ask_chat(client: Any) -> None:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    client.chat.completions.create(model=MODEL, messages=messages, max_completion_tokens=MAX_TOKENS)


def _ask_responses(client: Any) -> None:
    client.responses.create(
        model=MODEL,
        instructions=SYSTEM,
        input=[{"role": "user", "content": QUESTION}],
        max_output_tokens=MAX_TOKENS,
    )


def _recorded(client: Callable[[str], Any], ask: Callable[[Any], None]) -> SdkRequest:
    with model_api(requires_key=KEY) as api, client(api.url) as asking:
        ask(asking)
        (asked,) = api.questions
    return _relevant(asked)


def _relevant(asked: Asked) -> SdkRequest:
    headers = {name: value for name, value in asked.headers.items() if name in _RELEVANT}
    return SdkRequest(asked.method, asked.path, headers, asked.body)
