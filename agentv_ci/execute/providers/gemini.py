"""`provider: gemini`: Google's Gemini API.

Protocol: POST {base_url}/{api_version}/models/{model}:generateContent,
https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

from agentv_ci.base.json_access import objects_at, text_at, value_at
from agentv_ci.base.mappings import known
from agentv_ci.contracts.api_targets import GeminiTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import Attachment, ProviderError, Request, Response
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.answers import answered, gemini_usage, joined
from agentv_ci.execute.apis.provider import (
    Api,
    ApiProvider,
    alternating,
    budget_of,
    instructions_and_turns,
    level_of,
    parts_of,
    temperature_of,
    whole_limit_of,
)
from agentv_ci.execute.apis.refusals import inner_error
from agentv_ci.execute.provider_services import ProviderServices

DEFAULT_VERSION = str(GeminiTarget.implied["api_version"])

LEVELS = ((512, "MINIMAL"), (4_096, "LOW"), (16_384, "MEDIUM"))
"""Largest thinking budget → level, for models with thinking levels; above the last one it is HIGH.
"""
FIRST_WITH_LEVELS = 3

FINISHED = frozenset({"STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"})
"""Finish reasons of a valid answer; all others mean that the answer was withheld."""


def open_provider(target: GeminiTarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, gemini_api(target), services)


def gemini_api(target: GeminiTarget) -> Api:
    """Return the API."""
    assert target.base_url is not None, "a resolved target has a base_url"
    assert target.model is not None, "a resolved target has a model"
    model = target.model.removeprefix("models/")
    place = model if "/" in model else f"models/{model}"
    return Api(
        target.base_url,
        f"/{target.api_version or DEFAULT_VERSION}/{quote(place)}:generateContent",
        {"x-goog-api-key": target.api_key} if target.api_key else {},
        ("systemInstruction", "contents"),
        partial(_body, target),
        _response,
        _usage,
        takes_seed=True,
    )


def _body(target: GeminiTarget, request: Request) -> JsonObject:
    """Return the body: instructions apart, user and model alternating."""
    system, turns = instructions_and_turns(target, request)
    contents: list[JsonValue] = [
        {
            "role": "model" if turn.role == "assistant" else "user",
            "parts": parts_of(turn, request, _text, _part),
        }
        for turn in alternating(turns)
    ]
    body: JsonObject = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if settings := _settings(target, request):
        body["generationConfig"] = settings
    return body


def _settings(target: GeminiTarget, request: Request) -> JsonObject:
    settings: JsonObject = {
        "temperature": temperature_of(target, request),
        "maxOutputTokens": whole_limit_of(target, request),
        "seed": request.seed,
        "thinkingConfig": _thinking(target),
    }
    return known(settings)


def _text(text: str) -> JsonObject:
    return {"text": text}


def _part(part: Attachment, data: str) -> JsonObject:
    if part.url is None:
        return {"inlineData": {"mimeType": part.media_type, "data": data}}
    media_type: JsonObject = {"mimeType": part.media_type} if part.media_type else {}
    return {"fileData": {"fileUri": part.url, **media_type}}


def _thinking(target: GeminiTarget) -> JsonObject | None:
    budget = budget_of(target)
    if budget is None:
        return None
    generation = re.search(r"gemini-(\d+)", target.model or "")
    if generation and int(generation[1]) >= FIRST_WITH_LEVELS:
        return {"thinkingLevel": level_of(budget, LEVELS, "HIGH")}
    return {"thinkingBudget": budget}


def _response(body: JsonObject) -> Response:
    """Return the answer; a blocked prompt has HTTP status 200 too, and no candidates."""
    if error := inner_error(body):
        raise error
    candidate = value_at(body, "candidates", 0)
    if not isinstance(candidate, dict):
        raise _without_candidates(body)
    parts = objects_at(candidate, "content", "parts")
    reason = text_at(candidate, "finishReason")
    if reason is not None and reason not in FINISHED:
        raise _stopped(reason, text_at(candidate, "finishMessage"))
    return answered(
        joined((part for part in parts if not part.get("thought")), "text"),
        _calls(parts),
        model=text_at(body, "modelVersion"),
        usage=_usage(body),
        finish_reason=reason,
    )


def _stopped(reason: str, message: str | None) -> ProviderError:
    kind: ErrorKind = "malformed" if reason.startswith("MALFORMED") else "request"
    detail = f"the answer was stopped: {reason}{f': {message}' if message else ''}"
    return ProviderError(kind, detail)


def _usage(body: JsonObject) -> Usage | None:
    return gemini_usage(body.get("usageMetadata"))


def _without_candidates(body: JsonObject) -> ProviderError:
    if reason := text_at(body, "promptFeedback", "blockReason"):
        message = text_at(body, "promptFeedback", "blockReasonMessage")
        return ProviderError(
            "request", f"the API blocked the prompt: {reason}{f': {message}' if message else ''}"
        )
    return ProviderError("malformed", "candidates are missing in the answer")


def _calls(parts: list[JsonObject]) -> Iterator[ToolCall]:
    for part in parts:
        if name := text_at(part, "functionCall", "name"):
            yield ToolCall(tool=name, input=value_at(part, "functionCall", "args"))
