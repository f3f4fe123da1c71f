"""`provider: gemini`: what is special about its requests."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.api_targets import GeminiTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage
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
