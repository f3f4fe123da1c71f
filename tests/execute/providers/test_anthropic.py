"""`provider: anthropic`: what is special about its requests."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from agentv_ci.contracts.api_targets import AnthropicTarget
from agentv_ci.contracts.exchange import ChatMessage
from agentv_ci.execute.apis.provider import DEFAULT_SYSTEM_PROMPT, Api
from agentv_ci.execute.providers.anthropic import anthropic_api
from tests.execute.builders import question

ROLES: dict[str, Literal["system", "user", "assistant"]] = {"s": "system", "u": "user", "a": "assistant"}


def api(model: str = "claude-haiku-4-5", warned: list[str] | None = None, **given: Any) -> Api:
    settings = {"name": "c", "provider": "anthropic", "base_url": "http://127.0.0.1:1", "model": model}
    target = AnthropicTarget.model_validate({**settings, **given})
    return anthropic_api(target, ([] if warned is None else warned).append)


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
def test_turns_alternate_and_the_user_is_first_and_last(turns: str, sent: list[tuple[str, str]]) -> None:
    body = api().body(question(chat=chat(turns)))
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
def test_a_thinking_budget_is_sent_as_the_model_supports_it(
    model: str, budget: int, kind: str | None, sent: dict[str, Any]
) -> None:
    body: Any = api(model, thinking_budget=budget, max_output_tokens=100).body(question())
    thinking, effort = body.get("thinking", {}), body.get("output_config", {})
    assert (thinking.get("type"), bool(effort)) == (kind, kind == ADAPTIVE)
    found = {**thinking, **effort, "max_tokens": body["max_tokens"]}
    assert found | sent == found


def test_the_limit_is_always_sent() -> None:
    assert api().body(question())["max_tokens"] == 8192
    assert api(max_output_tokens=50).body(question())["max_tokens"] == 50
    assert api(max_output_tokens=50).body(question(max_output_tokens=60))["max_tokens"] == 60


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
def test_a_temperature_is_sent_to_models_that_support_it(model: str, given: dict[str, Any], warned: list[str]) -> None:
    said: list[str] = []
    body = api(model, said, temperature=0.3, **given).body(question())
    assert (body.get("temperature"), said) == (None if warned else 0.3, warned)
    judged = api(model, **given).body(question(temperature=0.0))
    assert judged.get("temperature") == (None if warned else 0.0)


def test_headers_have_the_version_and_the_key() -> None:
    assert api().headers == {"anthropic-version": "2023-06-01"}
    found = api(version="2026-10-21", api_key="k").headers
    assert found == {"anthropic-version": "2026-10-21", "x-api-key": "k"}
