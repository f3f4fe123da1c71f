"""`provider: azure-openai`: where its questions go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import AzureOpenAITarget
from agentv_ci.contracts.exchange import ChatMessage, Request
from agentv_ci.execute.apis.provider import Api
from agentv_ci.execute.providers.azure_openai import azure_openai_api

QUESTION = Request("one", "", "", (ChatMessage("user", "hi"),), timeout_s=30, cwd=Path("/"), max_output_tokens=9)
HERE = "https://here.openai.azure.com"
DATED = "/openai/deployments/gpt/chat/completions?api-version=2024-12-01-preview"
V1 = "/openai/v1/chat/completions"


def api(**given: Any) -> Api:
    settings = {"name": "a", "provider": "azure-openai", "deployment": "gpt", "api_key": "k", "endpoint": "here"}
    return azure_openai_api(AzureOpenAITarget.model_validate({**settings, **given}))


@pytest.mark.parametrize(
    ("endpoint", "base", "path"),
    [
        ("here", HERE, DATED),
        (f"{HERE}", HERE, DATED),
        (f"{HERE}/", HERE, DATED),
        (f"{HERE}/openai", HERE, DATED),
        (f"{HERE}/openai/", HERE, DATED),
        (f"{HERE}/openai/v1", HERE, V1),
        (f"{HERE}/openai/v1/", HERE, V1),
        ("https://here.services.ai.azure.com", "https://here.services.ai.azure.com", DATED),
        ("http://127.0.0.1:8080/gateway", "http://127.0.0.1:8080/gateway", DATED),
    ],
)
def test_endpoint_may_be_written_in_many_ways(endpoint: str, base: str, path: str) -> None:
    found = api(endpoint=endpoint)
    assert (found.base_url, found.path) == (base, path)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"version": "2024-10-21"}, "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"),
        ({"version": "api-version=2024-10-21"}, "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"),
        ({"version": "v1"}, V1),
        ({"version": "v1", "api_format": "responses"}, "/openai/v1/responses"),
        ({"api_format": "responses"}, "/openai/responses?api-version=2024-12-01-preview"),
        ({"deployment": "my gpt/5"}, DATED.replace("gpt", "my%20gpt%2F5")),
        ({"endpoint": f"{HERE}/openai/v1", "version": "2024-10-21"}, DATED.replace("12-01-preview", "10-21")),
    ],
)
def test_version_and_format_choose_the_path(given: dict[str, Any], path: str) -> None:
    assert api(**given).path == path


def test_base_url_stands_in_for_an_endpoint() -> None:
    settings = {"name": "a", "provider": "azure-openai", "deployment": "gpt", "base_url": f"{HERE}/openai/v1"}
    found = azure_openai_api(AzureOpenAITarget.model_validate(settings))
    assert (found.base_url, found.path, found.headers) == (HERE, V1, {})


def test_limit_is_called_as_newer_models_call_it() -> None:
    assert api().body(QUESTION)["max_completion_tokens"] == 9
    assert api(max_tokens_param="max_tokens").body(QUESTION)["max_tokens"] == 9
    assert api(api_format="responses").body(QUESTION)["max_output_tokens"] == 9


def test_key_is_sent_in_its_own_header() -> None:
    assert api().headers == {"api-key": "k"}
