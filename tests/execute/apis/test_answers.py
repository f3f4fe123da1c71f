"""Answers of every API: their text, their tool calls, their tokens, and what is no answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import AnthropicTarget, GeminiTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.apis.openai_formats import read_chat, read_responses
from agentv_ci.execute.providers.anthropic import anthropic_api
from agentv_ci.execute.providers.gemini import gemini_api

HERE: Any = {"name": "m", "base_url": "http://127.0.0.1:1", "model": "m"}
READERS: Mapping[str, Callable[[JsonObject], Response]] = {
    "chat": read_chat,
    "responses": read_responses,
    "anthropic": anthropic_api(AnthropicTarget(provider="anthropic", **HERE), print).response,
    "gemini": gemini_api(GeminiTarget(provider="gemini", **HERE)).response,
}


def chat(content: object = "", reason: str = "stop", **more: Any) -> JsonObject:
    choice: Any = {"message": {"content": content, **more.pop("message", {})}, "finish_reason": reason}
    return {"model": "m", "choices": [{**choice, **more.pop("choice", {})}], **more}


def responses(*output: Any, **more: Any) -> JsonObject:
    return {"status": "completed", "output": [*output], "model": "m", **more}


def claude(*content: Any, reason: str = "end_turn") -> JsonObject:
    return {"content": [*content], "stop_reason": reason, "usage": None, "model": "m"}


def gemini(*parts: object, reason: str = "STOP", usage: Any = None, **more: Any) -> JsonObject:
    candidate: Any = {"content": {"parts": [*parts]}, "finishReason": reason, **more}
    return {"candidates": [candidate], "modelVersion": "m", "usageMetadata": usage}


def text(content: str) -> JsonObject:
    return {"type": "text", "text": content}


NO_MESSAGE = "malformed: choices[0].message is missing in the answer"
NO_OUTPUT = "malformed: output is missing in the answer"
NO_CONTENT = "malformed: content is missing in the answer"
NO_CANDIDATES = "malformed: candidates are missing in the answer"
FILTERED = "request: the API's content filter withheld the answer"
FAILED, REFUSED = "server: the API answered with", "request: the model refused to answer"
STOPPED, BLOCKED = "the answer was stopped", "request: the API blocked the prompt"
THINKING = {"type": "thinking", "thinking": [text("hm")]}
BROKEN = "server: the API broke the answer off (finish reason {})"
WENT_AWAY = {"error": {"code": 502, "message": "went away"}}
"""https://openrouter.ai/docs/api-reference/errors"""
BAD_CALL = "MALFORMED_FUNCTION_CALL"


@pytest.mark.parametrize(
    ("api", "body", "expected"),
    [
        ("chat", chat(None), ""),
        ("chat", chat([]), ""),
        ("chat", chat([text("4"), {"text": "2"}]), "42"),
        ("chat", chat([THINKING, text("42")]), "42"),
        ("chat", chat([{"type": "image", "url": "é"}]), '[{"type": "image", "url": "é"}]'),
        ("chat", {}, NO_MESSAGE),
        *(("chat", {"choices": wrong}, NO_MESSAGE) for wrong in (None, [None], {"0": 1}, [{"message": None}])),
        ("chat", chat(message={"refusal": "I cannot."}), f"{REFUSED}: I cannot."),
        ("chat", chat("half", "content_filter"), FILTERED),
        ("chat", {"error": "down"}, f"{FAILED} an error: down"),
        ("chat", chat("", "error", choice=WENT_AWAY), f"{FAILED} an error: went away"),
        *(
            ("chat", chat("You can return it within", reason), BROKEN.format(reason))
            for reason in ("error", "ERROR", "abort", "cancelled", "insufficient_system_resource")
        ),
        ("chat", chat("half", "SAFETY"), FILTERED),
        ("chat", chat("half", "length"), "half"),
        ("responses", responses({"content": [{"type": "output_text", "text": each} for each in "42"]}), "42"),
        ("responses", responses({"type": "reasoning", "content": [text("hm")]}), ""),
        ("responses", responses({"content": [{"type": "refusal", "refusal": "No."}]}), f"{REFUSED}: No."),
        *(
            ("responses", responses(status=status), f"{FAILED} status {status}")
            for status in ("queued", "in_progress", "failed", "cancelled")
        ),
        ("responses", responses(error={"message": "down"}), f"{FAILED} an error: down"),
        ("responses", responses(incomplete_details={"reason": "content_filter"}), FILTERED),
        *(("responses", {"status": "completed", "output": wrong}, NO_OUTPUT) for wrong in (None, "42", text("42"))),
        ("anthropic", claude(THINKING, text("I "), text("look."), 7), "I look."),
        ("anthropic", claude(text("No."), reason="refusal"), f"{REFUSED}: No."),
        ("anthropic", claude(reason="refusal"), REFUSED),
        ("anthropic", claude(text("half"), reason="error"), BROKEN.format("error")),
        *(("anthropic", claude(text("half"), reason=reason), "half") for reason in ("pause_turn", "max_tokens")),
        *(("anthropic", {"content": wrong}, NO_CONTENT) for wrong in (None, "42")),
        ("gemini", gemini({"text": "hm", "thought": True}, {"text": "4"}, {"text": "2"}), "42"),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, f"{BLOCKED}: SAFETY"),
        ("gemini", {"promptFeedback": {"blockReason": "A", "blockReasonMessage": "B"}}, f"{BLOCKED}: A: B"),
        *(("gemini", wrong, NO_CANDIDATES) for wrong in ({}, {"candidates": ["42"]})),
        ("gemini", {"candidates": [{"finishReason": "RECITATION"}]}, f"request: {STOPPED}: RECITATION"),
        *(
            ("gemini", gemini({"text": "half"}, reason=reason), f"request: {STOPPED}: {reason}")
            for reason in ("LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "NEW")
        ),
        ("gemini", gemini({"text": "half"}, reason="MALFORMED_RESPONSE"), f"malformed: {STOPPED}: MALFORMED_RESPONSE"),
        ("gemini", gemini({"text": "half"}, reason="MAX_TOKENS"), "half"),
        ("gemini", gemini({"text": "half"}, reason="SAFETY"), f"request: {STOPPED}: SAFETY"),
        ("gemini", gemini(reason=BAD_CALL, finishMessage="bad"), f"malformed: {STOPPED}: {BAD_CALL}: bad"),
    ],
)
def test_an_answer_is_its_text_or_an_error(api: str, body: JsonObject, expected: str) -> None:
    try:
        found = READERS[api](body).answer
    except ProviderError as error:
        found = f"{error.kind}: {error.detail}"
    assert found == expected


ARGUMENTS = {
    '{"a": 1}': {"a": 1},
    "{": "{",
    "": "",
    "NaN": None,
    '"\\ud800"': "\ufffd",
    "[" * 100_000: "[" * 100_000,
}
"""Arguments as they are written, and as they are read."""
WRITTEN: Any = [{"function": {"name": "f", "arguments": each}} for each in (*ARGUMENTS, None, {"b": 2})]
WRITTEN += [None, 5, {"function": None}]
READ = [*ARGUMENTS.values(), None, {"b": 2}]
CALLED = {"type": "function_call", "name": "f", "arguments": json.dumps({"a": 1})}
USED = {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}


@pytest.mark.parametrize(
    ("api", "body", "calls", "reason"),
    [
        ("chat", chat(None, message={"tool_calls": WRITTEN}), READ, "stop"),
        ("responses", responses(CALLED, {"type": "function_call"}, 7), [{"a": 1}], "completed"),
        ("responses", responses(status="incomplete", incomplete_details={"reason": "length"}), [], "length"),
        ("responses", responses(status="incomplete"), [], "incomplete"),
        ("anthropic", claude(USED, {"type": "tool_use", "id": "2"}, reason="tool_use"), [{"a": 1}], "tool_use"),
        ("gemini", gemini({"functionCall": {"name": "f", "args": {"a": 1}}}, {"text": "2"}), [{"a": 1}], "STOP"),
    ],
)
def test_an_answer_has_tool_calls_its_model_and_why_it_ended(
    api: str, body: JsonObject, calls: list[Any], reason: str
) -> None:
    found = READERS[api](body)
    assert found.calls == tuple(ToolCall(tool="f", input=each) for each in calls)
    assert (found.has_trace, found.model, found.finish_reason) == (bool(calls), "m", reason)


NO_COUNTS = {"prompt_tokens": "7", "completion_tokens": 1.5, "total_tokens": True, "prompt_tokens_details": []}
COUNTS = {"promptTokenCount": 3, "toolUsePromptTokenCount": 4, "thoughtsTokenCount": 5}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (chat(usage=None), None),
        (chat(usage=[]), None),
        *((chat(usage=wrong), Usage()) for wrong in ({}, NO_COUNTS, {"prompt_tokens": -5})),
        (chat(usage={"prompt_tokens": 3, "completion_tokens": None, "total_tokens": "many"}), Usage(input_tokens=3)),
        (gemini(), None),
        *((gemini(usage=wrong), Usage()) for wrong in ({}, {"promptTokenCount": "many"})),
        (gemini(usage=COUNTS), Usage(input_tokens=7, output_tokens=5)),
    ],
)
def test_tokens_are_counts_with_thoughts_and_prompts_of_tools(body: JsonObject, expected: Usage | None) -> None:
    assert READERS["gemini" if "candidates" in body else "chat"](body).usage == expected


@pytest.mark.parametrize(
    ("counts", "read", "written", "of_hour"),
    [
        ({"cache_creation_input_tokens": 12}, 15, 12, None),
        ({"cache_creation_input_tokens": 0, "cache_read_input_tokens": 5}, 8, None, None),
        ({"cache_creation_input_tokens": 12, "cache_creation": {"ephemeral_1h_input_tokens": 4}}, 15, 12, 4),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 8, "ephemeral_1h_input_tokens": 4}}, 15, 12, 4),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}}, 3, None, None),
    ],
)
def test_what_anthropic_writes_to_its_cache_is_input_with_a_count_of_its_own(
    counts: JsonObject, read: int, written: int | None, of_hour: int | None
) -> None:
    usage = READERS["anthropic"](
        claude(text("42")) | {"usage": {"input_tokens": 3, "output_tokens": 1, **counts}}
    ).usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (read, written, of_hour)
