"""`provider: openai` and `azure-openai`: bodies of chat completions and Responses, and where questions go."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.api_targets import AzureOpenAITarget, OpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage
from agentv_ci.execute.apis.openai_formats import chat_body, responses_body
from agentv_ci.execute.apis.provider import DEFAULT_SYSTEM_PROMPT, Api
from agentv_ci.execute.providers.azure_openai import azure_openai_api
from tests.execute.builders import question

CHAT = (ChatMessage("system", "S"), ChatMessage("user", "Grüße \u2028 🎉"), ChatMessage("assistant", ""))


def target(**given: Any) -> OpenAITarget:
    settings = {"name": "gpt", "provider": "openai", "model": "gpt-mock", "base_url": "http://127.0.0.1:1/v1"}
    return OpenAITarget.model_validate({**settings, **given})


@pytest.mark.parametrize(
    ("given", "asked", "sent"),
    [
        ({}, {}, {}),
        ({"temperature": 0.2}, {}, {"temperature": 0.2}),
        ({"temperature": 0.2}, {"temperature": 0.0}, {"temperature": 0.0}),
        ({}, {"seed": 0}, {"seed": 0}),
        ({"max_output_tokens": 100}, {}, {"max_tokens": 100}),
        ({"max_output_tokens": 100}, {"max_output_tokens": 50}, {"max_tokens": 50}),
        ({"max_output_tokens": 9, "max_tokens_param": "max_completion_tokens"}, {}, {"max_completion_tokens": 9}),
        ({"max_output_tokens": 9, "base_url": "https://api.openai.com/v1"}, {}, {"max_completion_tokens": 9}),
        ({"max_output_tokens": 9, "thinking_budget": 0}, {}, {"max_tokens": 9, "reasoning_effort": "none"}),
        ({"max_output_tokens": 9, "thinking_budget": 2048}, {}, {"max_tokens": 2057, "reasoning_effort": "low"}),
        ({"thinking_budget": 2049}, {}, {"reasoning_effort": "medium"}),
        ({"thinking_budget": 24_576}, {}, {"reasoning_effort": "high"}),
        ({"thinking_budget": 24_577}, {}, {"reasoning_effort": "xhigh"}),
    ],
)
def test_chat_body(given: dict[str, Any], asked: dict[str, Any], sent: JsonObject) -> None:
    body = chat_body(target(**given), question(chat=CHAT, **asked))
    messages = [{"role": each.role, "content": each.content} for each in CHAT]
    assert body == {"model": "gpt-mock", "messages": messages, **sent}


def test_a_chat_without_a_system_message_gets_a_default_one() -> None:
    blank = question(chat=(ChatMessage("system", " \n"), ChatMessage("user", "Hello")))
    messages = [{"role": "system", "content": DEFAULT_SYSTEM_PROMPT}, {"role": "user", "content": "Hello"}]
    assert chat_body(target(), blank)["messages"] == messages


def test_responses_body() -> None:
    given = {"temperature": 0.2, "max_output_tokens": 9, "thinking_budget": 100}
    assert responses_body(target(**given), question(chat=CHAT[:2], seed=7)) == {
        "model": "gpt-mock",
        "instructions": "S",
        "input": [{"role": "user", "content": "Grüße \u2028 🎉"}],
        "store": False,
        "temperature": 0.2,
        "max_output_tokens": 109,
        "reasoning": {"effort": "low"},
    }
    assert responses_body(target(), question(chat=CHAT[:1]))["input"] == [{"role": "user", "content": "Begin."}]


HERE = "https://here.openai.azure.com"
DATED = "/openai/deployments/gpt/chat/completions?api-version=2024-12-01-preview"
V1 = "/openai/v1/chat/completions"


def azure(**given: Any) -> Api:
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
    for found in (azure(endpoint=endpoint), azure(base_url=endpoint)):
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
def test_version_and_format_of_azure_choose_the_path(given: dict[str, Any], path: str) -> None:
    assert azure(**given).path == path


def test_bodies_for_azure_name_the_deployment_and_the_limit_of_newer_models() -> None:
    asked = question(max_output_tokens=9)
    body = azure().body(asked)
    assert (body["model"], body["max_completion_tokens"]) == ("gpt", 9)
    assert azure(max_tokens_param="max_tokens").body(asked)["max_tokens"] == 9
    assert azure(api_format="responses").body(asked)["max_output_tokens"] == 9
    assert (azure().headers, azure(api_key="k").headers) == ({}, {"api-key": "k"})
