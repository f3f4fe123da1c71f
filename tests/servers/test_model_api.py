"""The double of model APIs refuses what the vendors refuse; their own clients read its answers in tests/external."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.servers.model_api import ModelApi, model_api, rejects

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
AZURE = "/openai/deployments/d/chat/completions?api-version=2024-10-21"
MESSAGES = "/v1/messages"
GEMINI = "/v1beta/models/m:generateContent"
USER = {"role": "user", "content": "hi"}
ASKED: Mapping[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [USER]},
    RESPONSES: {"model": "m", "input": [USER]},
    AZURE: {"messages": [USER]},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [USER]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def ask(api: ModelApi, path: str, headers: Mapping[str, str] | None = None, **changed: Any) -> httpx.Response:
    """Ask a valid question with some parameters changed; None removes one."""
    body = {key: value for key, value in {**ASKED[path], **changed}.items() if value is not None}
    named = {"anthropic-version": "2023-06-01", **(headers or {})}
    with httpx.Client(trust_env=False, timeout=20) as client:
        return client.post(f"{api.url}{path}", json=body, headers=named)


@pytest.mark.parametrize(
    ("path", "changed", "complaint"),
    [
        (CHAT, {"model": None}, "you must provide a model parameter"),
        (CHAT, {"messages": []}, "Invalid 'messages': empty array"),
        (CHAT, {"messages": [{"role": "bot", "content": "hi"}]}, "Invalid value: 'bot'."),
        (CHAT, {"messages": [{"role": "tool", "content": "hi"}]}, "must be a response to a preceeding message"),
        (CHAT, {"max_output_tokens": 9}, "Unrecognized request argument supplied: max_output_tokens"),
        (CHAT, {"max_tokens": 9, "max_completion_tokens": 9}, "at the same time"),
        (RESPONSES, {"input": None}, "must be provided"),
        (RESPONSES, {"max_output_tokens": 9}, "Expected a value >= 16"),
        (RESPONSES, {"input": [{"role": "tool", "content": "hi"}]}, "Invalid value: 'tool'."),
        (AZURE, {"messages": None}, "Missing required parameter: 'messages'."),
        (MESSAGES, {"max_tokens": None}, "max_tokens: Field required"),
        (MESSAGES, {"messages": [{"role": "system", "content": "S"}, USER]}, 'Unexpected role "system"'),
        (MESSAGES, {"messages": [{"role": "user", "content": ""}]}, "must have non-empty content"),
        (MESSAGES, {"messages": [USER, {"role": "assistant", "content": "So"}]}, "prefill"),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "must be greater than"),
        (GEMINI, {"contents": [{"role": "assistant", "parts": [{"text": "hi"}]}]}, "valid role: user, model"),
        (GEMINI, {"contents": [{"role": "user", "parts": []}]}, "must not be empty"),
        (GEMINI, {"temperature": 1}, 'Unknown name "temperature"'),
        (GEMINI, {"generationConfig": {"max_tokens": 9}}, "Unknown name \"maxTokens\" at 'generation_config'"),
    ],
)
def test_an_invalid_question_is_refused_and_a_valid_one_answered(
    path: str, changed: dict[str, Any], complaint: str
) -> None:
    with model_api() as api:
        refused, answered = ask(api, path, **changed), ask(api, path)
    assert (refused.status_code, answered.status_code, len(api.questions)) == (400, 200, 2)
    assert complaint in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "missing", "wrong", "header"),
    [
        (CHAT, 401, 401, "authorization"),
        (AZURE, 401, 401, "api-key"),
        (MESSAGES, 401, 401, "x-api-key"),
        (GEMINI, 403, 400, "x-goog-api-key"),
    ],
)
def test_a_key_is_required_in_the_vendors_header(path: str, missing: int, wrong: int, header: str) -> None:
    scheme = "Bearer " if header == "authorization" else ""
    with model_api(requires_key="K") as api:
        found = [ask(api, path, {header: f"{scheme}{key}"} if key else {}).status_code for key in ("", "L", "K")]
    assert found == [missing, wrong, 200]


def test_a_parameter_is_refused_as_long_as_it_is_sent() -> None:
    with model_api(rejects("max_tokens", new_name="max_completion_tokens")) as api:
        refused, accepted = ask(api, CHAT, max_tokens=9), ask(api, CHAT, max_completion_tokens=9)
    assert refused.json()["error"]["message"].endswith("with this model. Use 'max_completion_tokens' instead.")
    assert accepted.status_code == 200
