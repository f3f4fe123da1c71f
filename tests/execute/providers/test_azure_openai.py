"""`provider: azure-openai`: where its questions go."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.api_targets import AzureOpenAITarget
from agentv_ci.execute.apis.provider import Api
from agentv_ci.execute.providers.azure_openai import azure_openai_api
from tests.execute.builders import question

HERE = "https://here.openai.azure.com"
DATED = "/openai/deployments/gpt/chat/completions?api-version=2024-12-01-preview"
V1 = "/openai/v1/chat/completions"


def api(**given: Any) -> Api:
    settings = {"name": "a", "provider": "azure-openai", "deployment": "gpt"}
    where = {} if "base_url" in given else {"endpoint": "here"}
    return azure_openai_api(AzureOpenAITarget.model_validate({**settings, **where, **given}))


@pytest.mark.parametrize(
    ("endpoint", "base_url", "path"),
    [
        ("here", HERE, DATED),
        ("here.openai.azure.com", HERE, DATED),
        (f"{HERE}/", HERE, DATED),
        ("HTTPS://here.openai.azure.com/", HERE, DATED),
        (f"{HERE}/openai", HERE, DATED),
        (f"{HERE}/openai//", HERE, DATED),
        (f"{HERE}/openai/deployments/x/chat/completions?api-version=1", HERE, DATED),
        (f"{HERE}/openai/v1", HERE, V1),
        (f"{HERE}/openai/v1/", HERE, V1),
        ("https://here.services.ai.azure.com:8443/openai/", "https://here.services.ai.azure.com:8443", DATED),
        ("http://127.0.0.1:8080/gateway", "http://127.0.0.1:8080/gateway", DATED),
    ],
)
def test_an_endpoint_may_be_written_in_many_ways(endpoint: str, base_url: str, path: str) -> None:
    for found in (api(endpoint=endpoint), api(base_url=endpoint)):
        assert (found.base_url, found.path) == (base_url, path)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"version": "2024-10-21"}, DATED.replace("12-01-preview", "10-21")),
        ({"version": "api-version=2024-10-21"}, DATED.replace("12-01-preview", "10-21")),
        ({"version": "v1"}, V1),
        ({"version": "v1", "api_format": "responses"}, "/openai/v1/responses"),
        ({"api_format": "responses"}, "/openai/responses?api-version=2024-12-01-preview"),
        ({"deployment": "my gpt/ö:5"}, DATED.replace("gpt", "my%20gpt%2F%C3%B6%3A5")),
        ({"endpoint": f"{HERE}/openai/v1", "version": "2024-10-21"}, DATED.replace("12-01-preview", "10-21")),
    ],
)
def test_version_and_format_choose_the_path(given: dict[str, Any], path: str) -> None:
    assert api(**given).path == path


def test_bodies_name_the_deployment_and_the_limit_of_newer_models() -> None:
    asked = question(max_output_tokens=9)
    body = api().body(asked)
    assert (body["model"], body["max_completion_tokens"]) == ("gpt", 9)
    assert api(max_tokens_param="max_tokens").body(asked)["max_tokens"] == 9
    assert api(api_format="responses").body(asked)["max_output_tokens"] == 9
    assert (api().headers, api(api_key="k").headers) == ({}, {"api-key": "k"})
