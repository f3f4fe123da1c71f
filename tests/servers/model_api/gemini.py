"""Gemini's generateContent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.http import Asked, Reply, answers
from tests.servers.model_api.dialect import (
    BASE64,
    USAGE,
    Answer,
    Dialect,
    Json,
    Mistake,
    Trouble,
    event,
    exactly,
    pattern,
    pieces,
    served_model,
    streams,
    tool_call,
)

_PART: Json = {
    "minProperties": 1,
    "properties": {
        "inlineData": exactly(
            mimeType=pattern("^(image/(png|jpeg|webp)|application/pdf|text/plain)$"), data=pattern(f"^{BASE64}")
        ),
        "fileData": {
            "required": ["fileUri"],
            "properties": {"fileUri": pattern("^https?://"), "mimeType": pattern("^[a-z]+/[a-z]+$")},
            "additionalProperties": False,
        },
    },
}
_CONTENT: Json = {
    "required": ["parts"],
    "properties": {
        "role": {"enum": ["user", "model", "function"]},
        "parts": {"type": "array", "minItems": 1, "items": _PART},
    },
}
_STATUS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_RPC = "type.googleapis.com/google.rpc"
_USAGE: Json = {
    "promptTokenCount": USAGE.input,
    "cachedContentTokenCount": USAGE.cached,
    "candidatesTokenCount": USAGE.output - USAGE.reasoning,
    "thoughtsTokenCount": USAGE.reasoning,
    "totalTokenCount": USAGE.total,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": USAGE.input}],
}
_FINISH = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_SIGNATURE = "bW9jay1zaWduYXR1cmU="
_HEADERS = {"server-timing": "gfet4t7; dur=1"}


class Gemini(Dialect):
    """generateContent and streamGenerateContent."""

    def check_key(self, asked: Asked, key: str) -> None:
        given = asked.headers.get("x-goog-api-key") or asked.query.get("key")
        if not given:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            raise Mistake(message, status=403)
        if given != key:
            raise Mistake("API key not valid. Please pass a valid API key.", code="API_KEY_INVALID")

    def schema(self) -> Json:
        return {
            "required": ["contents"],
            "properties": {
                "contents": {"type": "array", "minItems": 1, "items": _CONTENT},
                "systemInstruction": _CONTENT,
            },
        }

    def answer(self, asked: Asked, answer: Answer) -> Reply:
        if answer.stop == "filter":
            return _reply(asked, [_blocked("SAFETY")])
        parts = _parts(asked.body, answer)
        if not _streams(asked):
            return _reply(asked, [_candidate(parts, answer)])
        chunks = [_candidate([piece], None) for part in parts for piece in _pieces(part)]
        return _reply(asked, [*chunks, _candidate([], answer)])

    def error(self, trouble: Trouble) -> Reply:
        return answers(trouble.status, _error(trouble), _HEADERS)

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        body = asked.body
        config = body.get("generationConfig") or {}
        if parameter not in config and parameter not in body:
            return None
        return _unknown(parameter, " at 'generation_config'" if parameter in config else "")

    def filtered_prompt(self, asked: Asked) -> Reply:
        # Gemini has no HTTP error for it.
        return _reply(asked, [_blocked("PROHIBITED_CONTENT")])

    def lacks_quota(self) -> Reply:
        message = "You exceeded your current quota, please check your plan and billing details."
        violation = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        }
        details = [{"@type": f"{_RPC}.QuotaFailure", "violations": [violation]}]
        return self.error(Trouble(429, message, extra={"details": details}))

    def failed_inside(self, asked: Asked) -> Reply:
        return answers(200, _error(Trouble(503, "The model is overloaded. Please try again later.")), _HEADERS)


def _streams(asked: Asked) -> bool:
    return asked.route.endswith(":streamGenerateContent")


def _reply(asked: Asked, chunks: list[Json]) -> Reply:
    found = re.search("/models/([^:]+):", asked.route)
    named = [_finished(chunk, found[1] if found else "") for chunk in chunks]
    if _streams(asked):
        return streams((event(chunk, end="\r\n") for chunk in named), _HEADERS)
    return answers(200, named[0], _HEADERS)


def _finished(chunk: Json, model: str) -> Json:
    return {**chunk, "modelVersion": served_model(model), "responseId": "response-mock"}


def _blocked(reason: str) -> Json:
    usage = {"promptTokenCount": USAGE.input, "totalTokenCount": USAGE.input}
    return {"promptFeedback": {"blockReason": reason, "safetyRatings": []}, "usageMetadata": usage}


def _candidate(parts: list[Json], answer: Answer | None) -> Json:
    """A response, or a chunk of one; the last one knows the whole answer."""
    candidate: Json = {"index": 0}
    if answer is None or answer.stop != "refusal":
        candidate["content"] = {"role": "model", "parts": parts or [{"text": ""}]}
    if answer is not None:
        candidate["finishReason"] = _FINISH[answer.stop]
    return {"candidates": [candidate], "usageMetadata": _USAGE}


def _parts(body: Json, answer: Answer) -> list[Json]:
    if answer.stop == "refusal":
        return []
    thoughts: list[Json] = [{"text": answer.thought, "thought": True}] if answer.thought else []
    if call := tool_call(_declared(body), answer.command, is_done=_has_result(body)):
        return [*thoughts, {"functionCall": {"name": call[0], "args": call[1]}, "thoughtSignature": _SIGNATURE}]
    return [*thoughts, {"text": answer.text}]


def _pieces(part: Json) -> Iterator[Json]:
    if "text" not in part:
        yield part
        return
    for piece in pieces(part["text"]):
        yield {**part, "text": piece}


def _declared(body: Json) -> dict[str, Any]:
    declared: dict[str, Any] = {}
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            declared[function["name"]] = function.get("parametersJsonSchema") or function.get("parameters")
    return declared


def _has_result(body: Json) -> bool:
    return any("functionResponse" in part for content in body["contents"] for part in content["parts"])


def _error(trouble: Trouble) -> Json:
    kind = trouble.kind or _STATUS.get(trouble.status, "UNKNOWN")
    error: Json = {"code": trouble.status, "message": trouble.message, "status": kind, **trouble.extra}
    details = list(error.get("details") or [])
    if trouble.code:
        details.append({"@type": f"{_RPC}.ErrorInfo", "reason": trouble.code, "domain": "googleapis.com"})
    if trouble.retry_after_s is not None:
        details.append({"@type": f"{_RPC}.RetryInfo", "retryDelay": f"{trouble.retry_after_s:g}s"})
    return {"error": {**error, "details": details} if details else error}


def _unknown(name: str, where: str) -> Trouble:
    text = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    field = "generation_config" if where else ""
    violation = {"field": field, "description": text}
    details = [{"@type": f"{_RPC}.BadRequest", "fieldViolations": [violation]}]
    return Trouble(400, text, extra={"details": details})
