"""`provider: gemini`: what is special about its requests and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import GeminiTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Request
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.apis.provider import Api
from agentv_ci.execute.providers.gemini import gemini_api


def api(model: str = "gemini-mock", **given: Any) -> Api:
    settings = {"name": "g", "provider": "gemini", "base_url": "http://127.0.0.1:1", "api_key": "k", "model": model}
    return gemini_api(GeminiTarget.model_validate({**settings, **given}))


def question(*chat: ChatMessage, **given: Any) -> Request:
    return Request("one", "", "", chat or (ChatMessage("user", "hi"),), timeout_s=30, cwd=Path("/"), **given)


@pytest.mark.parametrize(
    ("model", "version", "path"),
    [
        ("gemini-x", None, "/v1beta/models/gemini-x:generateContent"),
        ("models/gemini-x", "v1", "/v1/models/gemini-x:generateContent"),
        ("tunedModels/mine", None, "/v1beta/tunedModels/mine:generateContent"),
        ("odd name", None, "/v1beta/models/odd%20name:generateContent"),
    ],
)
def test_model_stands_in_the_path(model: str, version: str | None, path: str) -> None:
    assert api(model, **({"api_version": version} if version else {})).path == path


def test_turns_have_the_roles_of_the_api() -> None:
    chat = (ChatMessage("system", "S"), ChatMessage("user", "u"), ChatMessage("assistant", "a"))
    assert api().body(question(*chat)) == {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "u"}]},
            {"role": "model", "parts": [{"text": "a"}]},
            {"role": "user", "parts": [{"text": "Continue."}]},
        ],
    }


def test_settings_stand_in_one_place() -> None:
    body = api(temperature=0.5, max_output_tokens=9).body(question(seed=7))
    assert body["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 9, "seed": 7}


@pytest.mark.parametrize(
    ("model", "budget", "sent"),
    [
        ("gemini-2.5-pro", 0, {"thinkingBudget": 0}),
        ("gemini-2.5-pro", 5000, {"thinkingBudget": 5000}),
        ("gemini-3.5-flash-lite", 0, {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-pro", 4000, {"thinkingLevel": "LOW"}),
        ("gemini-3-pro", 16_384, {"thinkingLevel": "MEDIUM"}),
        ("gemini-4-pro", 50_000, {"thinkingLevel": "HIGH"}),
        ("tunedModels/mine", 5000, {"thinkingBudget": 5000}),
    ],
)
def test_budget_of_thought_is_sent_as_the_model_takes_it(model: str, budget: int, sent: JsonObject) -> None:
    assert api(model, thinking_budget=budget).body(question())["generationConfig"] == {"thinkingConfig": sent}


def test_thoughts_are_no_part_of_the_answer_and_calls_are_a_trace() -> None:
    parts: Any = [
        {"text": "hm", "thought": True},
        {"text": "4"},
        {"functionCall": {"name": "add", "args": {"a": 1}}},
        {"text": "2"},
    ]
    found = api().response({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    assert (found.answer, found.calls) == ("42", (ToolCall(tool="add", input={"a": 1}),))


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "request", "the API blocked the prompt: SAFETY"),
        (
            {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "Sorry"}},
            "request",
            "the API blocked the prompt: OTHER: Sorry",
        ),
        ({}, "malformed", "candidates are missing in the answer"),
        ({"candidates": []}, "malformed", "candidates are missing in the answer"),
        ({"candidates": [{"finishReason": "RECITATION"}]}, "request", "the answer was stopped: RECITATION"),
        (
            {"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"text": "half"}]}}]},
            "request",
            "the answer was stopped: SAFETY",
        ),
        (
            {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "bad"}]},
            "malformed",
            "the answer was stopped: MALFORMED_FUNCTION_CALL: bad",
        ),
    ],
)
def test_answer_that_was_withheld_is_an_error(body: JsonObject, kind: str, said: str) -> None:
    with pytest.raises(ProviderError) as caught:
        api().response(body)
    assert (caught.value.kind, caught.value.detail) == (kind, said)


@pytest.mark.parametrize(
    ("block", "usage"),
    [
        (None, None),
        ({}, Usage()),
        (
            {"promptTokenCount": 3, "toolUsePromptTokenCount": 4, "thoughtsTokenCount": 5},
            Usage(input_tokens=7, output_tokens=5),
        ),
        ({"promptTokenCount": "many"}, Usage()),
    ],
)
def test_usage_adds_what_belongs_together(block: JsonObject | None, usage: Usage | None) -> None:
    candidate: Any = [{"content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]
    assert api().response({"candidates": candidate, "usageMetadata": block}).usage == usage
