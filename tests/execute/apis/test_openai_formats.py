"""Chat completions and Responses: bodies of questions."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage
from agentv_ci.execute.apis.openai_formats import chat_body, responses_body
from agentv_ci.execute.apis.provider import DEFAULT_SYSTEM_PROMPT
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
