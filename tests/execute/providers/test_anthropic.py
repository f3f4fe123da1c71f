"""`provider: anthropic`: what is special about its requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from agentv_ci.contracts.api_targets import AnthropicTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, Request, Response
from agentv_ci.contracts.results import ToolCall
from agentv_ci.execute.providers.anthropic import anthropic_api
from tests.execute.builders import ask_all, context
from tests.servers.model_api import model_api, says

ROLES: dict[str, Literal["system", "user", "assistant"]] = {"s": "system", "u": "user", "a": "assistant"}


def target(model: str = "claude-haiku-4-5", **given: Any) -> AnthropicTarget:
    settings = {"name": "c", "provider": "anthropic", "base_url": "http://127.0.0.1:1", "api_key": "k", "model": model}
    return AnthropicTarget.model_validate({**settings, **given})


def question(turns: str = "u", **given: Any) -> Request:
    """A chat; `turns` are the initials of its roles."""
    chat = [ChatMessage(ROLES[role], f"{role}{number}") for number, role in enumerate(turns)]
    return Request("one", "", "", tuple(chat), timeout_s=30, cwd=Path("/"), **given)


def body(turns: str = "u", asked: AnthropicTarget | None = None, **given: Any) -> JsonObject:
    return anthropic_api(asked or target(), print).body(question(turns, **given))


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        ("su", [("user", "u1")]),
        ("uau", [("user", "u0"), ("assistant", "a1"), ("user", "u2")]),
        ("uu", [("user", "u0\n\nu1")]),
        ("ua", [("user", "u0"), ("assistant", "a1"), ("user", "Continue.")]),
        ("au", [("user", "Begin."), ("assistant", "a0"), ("user", "u1")]),
        ("s", [("user", "Begin.")]),
    ],
)
def test_turns_alternate_and_the_user_is_first_and_last(turns: str, sent: list[tuple[str, str]]) -> None:
    assert body(turns)["messages"] == [{"role": role, "content": content} for role, content in sent]


def test_instructions_stand_apart() -> None:
    assert body("su")["system"] == "s0"
    assert "careful assistant" in str(body("u")["system"])


def test_empty_turns_are_left_out() -> None:
    chat = (ChatMessage("user", "hi"), ChatMessage("assistant", " "), ChatMessage("user", "there"))
    sent = anthropic_api(target(), print).body(Request("one", "", "", chat, timeout_s=30, cwd=Path("/")))
    assert sent["messages"] == [{"role": "user", "content": "hi\n\nthere"}]


def test_limit_is_always_sent() -> None:
    assert body()["max_tokens"] == 8192
    assert body(asked=target(max_output_tokens=50))["max_tokens"] == 50
    assert body(asked=target(max_output_tokens=50), max_output_tokens=60)["max_tokens"] == 60


@pytest.mark.parametrize(
    ("model", "budget", "sent"),
    [
        ("claude-haiku-4-5", 2000, {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 2100}),
        ("claude-haiku-4-5", 5, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1124}),
        ("claude-3-7-sonnet-20250219", 2000, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("claude-sonnet-4-20250514", 2000, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", 2000, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("claude-opus-4-6", 2000, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("claude-opus-5", 9000, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("claude-haiku-5-5", 30_000, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("my-own-model", 2000, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("claude-opus-5", 0, {"max_tokens": 100}),
    ],
)
def test_budget_of_thought_is_sent_as_the_model_takes_it(model: str, budget: int, sent: JsonObject) -> None:
    found = body(asked=target(model, thinking_budget=budget, max_output_tokens=100))
    assert found | sent == found
    assert ("thinking" in found) == (budget > 0)


@pytest.mark.parametrize(
    ("model", "given", "sent"),
    [
        ("claude-haiku-4-5", {}, True),
        ("claude-opus-4-6", {}, True),
        ("claude-opus-4-7", {}, False),
        ("claude-haiku-5-5", {}, False),
        ("claude-haiku-4-5", {"thinking_budget": 2000}, False),
        ("my-own-model", {}, True),
    ],
)
def test_temperature_is_sent_to_models_that_take_it(model: str, given: dict[str, Any], sent: bool) -> None:
    found = anthropic_api(target(model, temperature=0.3, **given), print).body(question())
    assert ("temperature" in found) is sent
    judged = anthropic_api(target(model, **given), print).body(question(temperature=0.0))
    assert ("temperature" in judged) is sent


def test_temperature_that_is_left_out_is_told() -> None:
    warned: list[str] = []
    with model_api(says("42")) as api:
        asked = target("claude-haiku-5-5", temperature=0.3, base_url=api.url)
        ask_all(asked, [question()], context(warned=warned))
    assert warned == ["c: temperature is ignored: the model does not support it"]


def test_version_is_the_targets() -> None:
    assert anthropic_api(target(), print).headers["anthropic-version"] == "2023-06-01"
    assert anthropic_api(target(version="2026-10-21"), print).headers["anthropic-version"] == "2026-10-21"


def test_tool_calls_are_a_trace() -> None:
    content: Any = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "1", "name": "look", "input": {"a": 1}},
        {"type": "tool_use", "id": "2"},
        7,
    ]
    found: Response = anthropic_api(target(), print).response(
        {"content": content, "stop_reason": "tool_use", "usage": None}
    )
    assert (found.answer, found.calls, found.has_trace) == ("I look.", (ToolCall(tool="look", input={"a": 1}),), True)
    assert found.usage is None
