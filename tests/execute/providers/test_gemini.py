"""`provider: gemini`: what is special about its requests and answers."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.api_targets import GeminiTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, ProviderError
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.apis.provider import Api
from agentv_ci.execute.providers.gemini import gemini_api
from tests.execute.builders import question


def api(model: str = "gemini-mock", **given: Any) -> Api:
    settings = {"name": "g", "provider": "gemini", "base_url": "http://127.0.0.1:1", "model": model}
    return gemini_api(GeminiTarget.model_validate({**settings, **given}))


@pytest.mark.parametrize(
    ("model", "version", "path"),
    [
        ("gemini-x", {}, "/v1beta/models/gemini-x:generateContent"),
        ("models/gemini-x", {"api_version": "v1"}, "/v1/models/gemini-x:generateContent"),
        ("tunedModels/mine", {}, "/v1beta/tunedModels/mine:generateContent"),
        ("odd name", {}, "/v1beta/models/odd%20name:generateContent"),
    ],
)
def test_the_model_is_in_the_path(model: str, version: dict[str, str], path: str) -> None:
    assert api(model, **version).path == path


def test_a_body_has_the_roles_of_the_api_and_its_settings_in_one_place() -> None:
    chat = (ChatMessage("system", "S"), ChatMessage("user", "u"), ChatMessage("assistant", "a"))
    body: JsonObject = {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "u"}]},
            {"role": "model", "parts": [{"text": "a"}]},
            {"role": "user", "parts": [{"text": "Continue."}]},
        ],
    }
    assert api().body(question(chat=chat)) == body
    settings: JsonObject = {"temperature": 0.5, "maxOutputTokens": 9, "seed": 7}
    given = api(temperature=0.5, max_output_tokens=9)
    assert given.body(question(chat=chat, seed=7)) == {**body, "generationConfig": settings}
    assert (api().headers, api(api_key="k").headers) == ({}, {"x-goog-api-key": "k"})


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
def test_a_thinking_budget_is_sent_as_the_model_supports_it(model: str, budget: int, sent: JsonObject) -> None:
    assert api(model, thinking_budget=budget).body(question())["generationConfig"] == {"thinkingConfig": sent}


def answered(*parts: object, usage: object = None) -> JsonObject:
    candidate: Any = {"content": {"parts": [*parts]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}  # type: ignore[dict-item]  # as JSON


def test_thoughts_are_not_part_of_the_answer_and_calls_are_a_trace() -> None:
    call = {"functionCall": {"name": "add", "args": {"a": 1}}}
    found = api().response(answered({"text": "hm", "thought": True}, {"text": "4"}, call, {"text": "2"}))
    assert (found.answer, found.calls) == ("42", (ToolCall(tool="add", input={"a": 1}),))
    assert (found.has_trace, found.model, found.finish_reason) == (True, "m", "STOP")


BLOCKED, BAD_CALL = "request: the API blocked the prompt", "MALFORMED_FUNCTION_CALL"


def stopped(reason: str, **more: Any) -> JsonObject:
    return {"candidates": [{"finishReason": reason, **more}]}


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, f"{BLOCKED}: SAFETY"),
        ({"promptFeedback": {"blockReason": "A", "blockReasonMessage": "B"}}, f"{BLOCKED}: A: B"),
        ({}, "malformed: candidates are missing in the answer"),
        ({"candidates": ["42"]}, "malformed: candidates are missing in the answer"),
        (stopped("RECITATION"), "request: the answer was stopped: RECITATION"),
        (stopped("SAFETY", content={"parts": [{"text": "half"}]}), "request: the answer was stopped: SAFETY"),
        (stopped(BAD_CALL, finishMessage="bad"), f"malformed: the answer was stopped: {BAD_CALL}: bad"),
    ],
)
def test_a_withheld_answer_is_an_error(body: JsonObject, failure: str) -> None:
    with pytest.raises(ProviderError) as caught:
        api().response(body)
    assert f"{caught.value.kind}: {caught.value.detail}" == failure


COUNTS: JsonObject = {"promptTokenCount": 3, "toolUsePromptTokenCount": 4, "thoughtsTokenCount": 5}


@pytest.mark.parametrize(
    ("block", "usage"),
    [
        (None, None),
        ({}, Usage()),
        ({"promptTokenCount": "many"}, Usage()),
        (COUNTS, Usage(input_tokens=7, output_tokens=5)),
    ],
)
def test_usage_adds_thoughts_and_prompts_of_tools(block: JsonObject | None, usage: Usage | None) -> None:
    assert api().response(answered({"text": "42"}, usage=block)).usage == usage
