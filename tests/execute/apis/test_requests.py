"""Requests of every API: bodies, headers and addresses, and what is special about a vendor's."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from agentv_ci.contracts.api_targets import AnthropicTarget, AzureOpenAITarget, GeminiTarget, OpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage
from agentv_ci.execute.apis.openai_formats import openai_api
from agentv_ci.execute.apis.provider import DEFAULT_SYSTEM_PROMPT, Api
from agentv_ci.execute.providers.anthropic import anthropic_api
from agentv_ci.execute.providers.azure_openai import azure_openai_api
from agentv_ci.execute.providers.gemini import gemini_api
from tests.execute.builders import question

LOCAL = "http://127.0.0.1:1"


def openai(**given: Any) -> Api:
    settings = {"name": "gpt", "provider": "openai", "model": "gpt-mock", "base_url": LOCAL, **given}
    return openai_api(OpenAITarget.model_validate(settings), settings["base_url"], {})


def azure(**given: Any) -> Api:
    settings = {"name": "a", "provider": "azure-openai", "deployment": "gpt"}
    where = {} if "base_url" in given else {"endpoint": "here"}
    return azure_openai_api(AzureOpenAITarget.model_validate({**settings, **where, **given}))


def claude(model: str = "claude-haiku-4-5", warned: list[str] | None = None, **given: Any) -> Api:
    settings = {"name": "c", "provider": "anthropic", "base_url": LOCAL, "model": model, **given}
    return anthropic_api(AnthropicTarget.model_validate(settings), ([] if warned is None else warned).append)


def gemini(model: str = "gemini-mock", **given: Any) -> Api:
    settings = {"name": "g", "provider": "gemini", "base_url": LOCAL, "model": model, **given}
    return gemini_api(GeminiTarget.model_validate(settings))


CHAT = (ChatMessage("system", "S"), ChatMessage("user", "Grüße \u2028 🎉"), ChatMessage("assistant", ""))


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
    body = openai(**given).body(question(chat=CHAT, **asked))
    messages = [{"role": each.role, "content": each.content} for each in CHAT]
    assert body == {"model": "gpt-mock", "messages": messages, **sent}


def test_a_chat_without_a_system_message_gets_a_default_one() -> None:
    blank = question(chat=(ChatMessage("system", " \n"), ChatMessage("user", "Hello")))
    messages = [{"role": "system", "content": DEFAULT_SYSTEM_PROMPT}, {"role": "user", "content": "Hello"}]
    assert openai().body(blank)["messages"] == messages


@pytest.mark.parametrize(
    ("own", "of_case", "sent"),
    [
        ({}, None, DEFAULT_SYSTEM_PROMPT),
        ({"system_prompt": "none"}, None, None),
        ({"system_prompt": "Be brief."}, None, "Be brief."),
        ({"system_prompt": "Be brief."}, "Be long.", "Be long."),
        ({"system_prompt": "Be brief."}, "none", None),
        ({}, "none", None),
    ],
)
def test_system_prompt_of_a_case_or_target_replaces_the_built_in_one(
    own: dict[str, Any], of_case: str | None, sent: str | None
) -> None:
    asked = question(chat=(ChatMessage("user", "Hello"),), system_prompt=of_case)
    system = [] if sent is None else [{"role": "system", "content": sent}]
    assert openai(**own).body(asked)["messages"] == [*system, {"role": "user", "content": "Hello"}]
    assert openai(**own, api_format="responses").body(asked).get("instructions") == sent
    assert claude(**own).body(asked).get("system") == sent
    gemini_sent = gemini(**own).body(asked).get("systemInstruction")
    assert gemini_sent == (None if sent is None else {"parts": [{"text": sent}]})
    with_own = question(chat=(ChatMessage("system", "Rules."), ChatMessage("user", "Hello")), system_prompt=of_case)
    both = "Rules." if sent in (None, DEFAULT_SYSTEM_PROMPT) else f"{sent}\n\nRules."
    assert claude(**own).body(with_own)["system"] == both


def test_responses_body() -> None:
    api = openai(api_format="responses", temperature=0.2, max_output_tokens=9, thinking_budget=100)
    assert api.body(question(chat=CHAT[:2], seed=7)) == {
        "model": "gpt-mock",
        "instructions": "S",
        "input": [{"role": "user", "content": "Grüße \u2028 🎉"}],
        "store": False,
        "temperature": 0.2,
        "max_output_tokens": 109,
        "reasoning": {"effort": "low"},
    }
    assert api.body(question(chat=CHAT[:1]))["input"] == [{"role": "user", "content": "Begin."}]


HERE = "https://here.openai.azure.com"
DATED = "/openai/deployments/gpt/chat/completions?api-version=2024-12-01-preview"
V1 = "/openai/v1/chat/completions"


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


ROLES: dict[str, Literal["system", "user", "assistant"]] = {"s": "system", "u": "user", "a": "assistant"}


def chat(turns: str) -> tuple[ChatMessage, ...]:
    """Return a chat from the initials of its roles; a space is an empty turn of the assistant."""
    return tuple(
        ChatMessage(ROLES.get(role, "assistant"), f"{role}{number}" if role != " " else " ")
        for number, role in enumerate(turns)
    )


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        ("su", [("user", "u1")]),
        ("uau", [("user", "u0"), ("assistant", "a1"), ("user", "u2")]),
        ("uu", [("user", "u0\n\nu1")]),
        ("u u", [("user", "u0\n\nu2")]),
        ("ua", [("user", "u0"), ("assistant", "a1"), ("user", "Continue.")]),
        ("au", [("user", "Begin."), ("assistant", "a0"), ("user", "u1")]),
        ("s", [("user", "Begin.")]),
    ],
)
def test_turns_for_anthropic_alternate_and_the_user_is_first_and_last(turns: str, sent: list[tuple[str, str]]) -> None:
    body = claude().body(question(chat=chat(turns)))
    assert body["messages"] == [{"role": role, "content": content} for role, content in sent]
    assert body["system"] == ("s0" if turns[0] == "s" else DEFAULT_SYSTEM_PROMPT)


ENABLED, ADAPTIVE = "enabled", "adaptive"


@pytest.mark.parametrize(
    ("model", "budget", "kind", "sent"),
    [
        ("claude-haiku-4-5", 2000, ENABLED, {"budget_tokens": 2000, "max_tokens": 2100}),
        ("claude-haiku-4-5", 5, ENABLED, {"budget_tokens": 1024, "max_tokens": 1124}),
        ("claude-3-7-sonnet-20250219", 2000, ENABLED, {}),
        ("claude-sonnet-4-20250514", 2000, ENABLED, {}),
        ("claude-sonnet-4@20250514", 2000, ENABLED, {}),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 2000, ENABLED, {}),
        ("my-own-model", 2000, ENABLED, {}),
        ("anthropic.claude-opus-4-6-v1:0", 2000, ADAPTIVE, {"effort": "low"}),
        ("claude-sonnet-4.6", 2000, ADAPTIVE, {"effort": "low"}),
        ("anthropic/claude-opus-4.7", 9000, ADAPTIVE, {"effort": "high"}),
        ("claude-opus-5", 9000, ADAPTIVE, {"effort": "high", "max_tokens": 9100}),
        ("claude-haiku-5-5", 30_000, ADAPTIVE, {"effort": "xhigh"}),
        ("claude-opus-10", 30_000, ADAPTIVE, {}),
        ("claude-opus-5", 0, None, {"max_tokens": 100}),
    ],
)
def test_a_thinking_budget_is_sent_as_the_model_of_anthropic_supports_it(
    model: str, budget: int, kind: str | None, sent: dict[str, Any]
) -> None:
    body: Any = claude(model, thinking_budget=budget, max_output_tokens=100).body(question())
    thinking, effort = body.get("thinking", {}), body.get("output_config", {})
    assert (thinking.get("type"), bool(effort)) == (kind, kind == ADAPTIVE)
    found = {**thinking, **effort, "max_tokens": body["max_tokens"]}
    assert found | sent == found


def test_the_limit_is_always_sent_to_anthropic() -> None:
    assert claude().body(question())["max_tokens"] == 8192
    assert claude(max_output_tokens=50).body(question())["max_tokens"] == 50
    assert claude(max_output_tokens=50).body(question(max_output_tokens=60))["max_tokens"] == 60


UNSUPPORTED = "c: temperature is ignored: the model does not support it"
THINKS = "c: temperature is ignored: it cannot be combined with thinking"


@pytest.mark.parametrize(
    ("model", "given", "warned"),
    [
        *((model, {}, []) for model in ("claude-haiku-4-5", "claude-opus-4-6", "my-own-model")),
        *((model, {}, [UNSUPPORTED]) for model in ("claude-opus-4-7", "claude-haiku-5-5")),
        ("claude-haiku-4-5", {"thinking_budget": 5}, [THINKS]),
    ],
)
def test_a_temperature_is_sent_to_models_of_anthropic_that_support_it(
    model: str, given: dict[str, Any], warned: list[str]
) -> None:
    said: list[str] = []
    body = claude(model, said, temperature=0.3, **given).body(question())
    assert (body.get("temperature"), said) == (None if warned else 0.3, warned)
    judged = claude(model, **given).body(question(temperature=0.0))
    assert judged.get("temperature") == (None if warned else 0.0)


def test_headers_for_anthropic_have_the_version_and_the_key() -> None:
    assert claude().headers == {"anthropic-version": "2023-06-01"}
    found = claude(version="2026-10-21", api_key="k").headers
    assert found == {"anthropic-version": "2026-10-21", "x-api-key": "k"}


@pytest.mark.parametrize(
    ("model", "version", "path"),
    [
        ("gemini-x", {}, "/v1beta/models/gemini-x:generateContent"),
        ("models/gemini-x", {"api_version": "v1"}, "/v1/models/gemini-x:generateContent"),
        ("tunedModels/mine", {}, "/v1beta/tunedModels/mine:generateContent"),
        ("odd name", {}, "/v1beta/models/odd%20name:generateContent"),
    ],
)
def test_the_model_of_gemini_is_in_the_path(model: str, version: dict[str, str], path: str) -> None:
    assert gemini(model, **version).path == path


def test_a_body_for_gemini_has_the_roles_of_the_api_and_its_settings_in_one_place() -> None:
    chat = (ChatMessage("system", "S"), ChatMessage("user", "u"), ChatMessage("assistant", "a"))
    body: JsonObject = {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "u"}]},
            {"role": "model", "parts": [{"text": "a"}]},
            {"role": "user", "parts": [{"text": "Continue."}]},
        ],
    }
    assert gemini().body(question(chat=chat)) == body
    settings: JsonObject = {"temperature": 0.5, "maxOutputTokens": 9, "seed": 7}
    given = gemini(temperature=0.5, max_output_tokens=9)
    assert given.body(question(chat=chat, seed=7)) == {**body, "generationConfig": settings}
    assert (gemini().headers, gemini(api_key="k").headers) == ({}, {"x-goog-api-key": "k"})


@pytest.mark.parametrize(
    ("model", "budget", "sent"),
    [
        ("gemini-2.5-pro", 0, {"thinkingBudget": 0}),
        ("gemini-2.5-pro", 5000, {"thinkingBudget": 5000}),
        ("tunedModels/mine", 5000, {"thinkingBudget": 5000}),
        ("gemini-3.5-flash-lite", 512, {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-pro", 513, {"thinkingLevel": "LOW"}),
        ("gemini-3-pro", 16_384, {"thinkingLevel": "MEDIUM"}),
        ("gemini-4-pro", 16_385, {"thinkingLevel": "HIGH"}),
    ],
)
def test_a_thinking_budget_is_sent_as_the_model_of_gemini_supports_it(
    model: str, budget: int, sent: JsonObject
) -> None:
    assert gemini(model, thinking_budget=budget).body(question())["generationConfig"] == {"thinkingConfig": sent}
