"""Anthropic's Messages."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from tests.servers.http import Asked, Reply, answers
from tests.servers.model_api.dialect import (
    BASE64,
    NAMED,
    REQUEST_ID,
    USAGE,
    Answer,
    Dialect,
    Json,
    Mistake,
    Trouble,
    by_type,
    event,
    exactly,
    only_for_user,
    pattern,
    pieces,
    served_model,
    streams,
    tool_call,
)

VERSIONS = ("2023-06-01", "2026-10-21")
_TEXT: Json = {"type": "string", "pattern": "\\S"}
_BASE64 = pattern(f"^{BASE64}")
_BY_URL = exactly(type={"const": "url"}, url=pattern("^https?://"))
_IMAGE_TYPE: Json = {"enum": ["image/jpeg", "image/png", "image/gif", "image/webp"]}
_SOURCES: Mapping[str, list[Json]] = {
    "image": [exactly(type={"const": "base64"}, media_type=_IMAGE_TYPE, data=_BASE64), _BY_URL],
    "document": [
        exactly(type={"const": "base64"}, media_type={"const": "application/pdf"}, data=_BASE64),
        exactly(type={"const": "text"}, media_type={"const": "text/plain"}, data=_TEXT),
        _BY_URL,
    ],
}
SYSTEM_MESSAGES = "mid-conversation-system-2026-04-07"
"""The feature with which a conversation may have system messages; Claude Code uses it."""
_BLOCK: Json = {
    "required": ["type"],
    "properties": {"text": _TEXT},
    **by_type({kind: exactly(type={}, source={"oneOf": sources}) for kind, sources in _SOURCES.items()}),
}
_CONTENT: Json = {"anyOf": [_TEXT, {"type": "array", "minItems": 1, "items": _BLOCK}]}
_MESSAGE: Json = {
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant", "system"]}, "content": _CONTENT},
    **only_for_user("content", tuple(_SOURCES)),
}
_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_HEADERS = {"request-id": REQUEST_ID}
_USAGE: Json = {
    "input_tokens": USAGE.input - USAGE.cached - USAGE.cache_written,
    "cache_creation_input_tokens": USAGE.cache_written,
    "cache_read_input_tokens": USAGE.cached,
    "output_tokens": USAGE.output,
    "output_tokens_details": {"thinking_tokens": USAGE.reasoning},
    "service_tier": "standard",
}
_STOP = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}


class AnthropicMessages(Dialect):
    """Messages in both versions of the API."""

    def check_key(self, asked: Asked, key: str) -> None:
        given = asked.headers.get("x-api-key") or asked.headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            raise Mistake("x-api-key header is required", status=401)
        if given != key:
            raise Mistake("invalid x-api-key", status=401)

    def schema(self) -> Json:
        return {
            "required": ["model", "max_tokens", "messages"],
            "properties": {
                "model": NAMED,
                "max_tokens": {"type": "integer", "minimum": 1},
                "temperature": {"minimum": 0, "maximum": 1},
                "thinking": {"properties": {"budget_tokens": {"minimum": 1024}}},
                # An empty string is allowed here.
                "system": {"anyOf": [{"const": ""}, _CONTENT]},
                "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
            },
        }

    def check(self, asked: Asked) -> None:
        version = asked.headers.get("anthropic-version")
        if version not in VERSIONS:
            raise Mistake(f'anthropic-version: "{version}" is not a valid version')
        super().check(asked)
        roles = [message["role"] for message in asked.body["messages"]]
        if "system" in roles and SYSTEM_MESSAGES not in asked.headers.get("anthropic-beta", ""):
            raise Mistake(f"messages.{roles.index('system')}.role: use the top-level parameter for system messages")
        if asked.body["messages"][-1]["role"] == "assistant":
            raise Mistake("This model does not support assistant message prefill.")

    def answer(self, asked: Asked, answer: Answer) -> Reply:
        content, stop = _content(asked.body, answer)
        details = {"type": "refusal", "category": None, "explanation": "mock refusal"} if stop == "refusal" else None
        message = {
            "id": "msg_mock",
            "type": "message",
            "role": "assistant",
            "model": served_model(asked.body["model"]),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "stop_details": details,
            "usage": _USAGE,
        }
        if not asked.body.get("stream"):
            return answers(200, message, _HEADERS)
        return streams((event({"type": kind, **data}, kind) for kind, data in _events(message)), _HEADERS)

    def error(self, trouble: Trouble) -> Reply:
        status = trouble.status
        retried = status in (408, 409, 429) or status >= 500
        headers = {**_HEADERS, "x-should-retry": "true" if retried else "false"}
        if trouble.retry_after_s is not None:
            headers["retry-after"] = str(math.ceil(trouble.retry_after_s))
        return answers(status, _error(trouble), headers)

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        if parameter not in asked.body:
            return None
        return Trouble(400, f"{parameter}: Extra inputs are not permitted")

    def filtered_prompt(self, asked: Asked) -> Reply:
        return self.error(Trouble(400, "Output blocked by content filtering policy"))

    def lacks_quota(self) -> Reply:
        message = "This organization has reached its monthly spend limit."
        reply = self.error(Trouble(429, message, code="enforced_spend_limit_reached"))
        # Only the body shows that a retry cannot help.
        return replace(reply, headers={k: v for k, v in reply.headers.items() if k != "x-should-retry"})

    def failed_inside(self, asked: Asked) -> Reply:
        return answers(200, _error(Trouble(529, "Overloaded")), _HEADERS)


def _error(trouble: Trouble) -> Json:
    kind = trouble.kind or _TYPES.get(trouble.status, "api_error")
    error: Json = {"type": kind, "message": trouble.message, **trouble.extra}
    if trouble.code:
        error["details"] = {"error_code": trouble.code}
    return {"type": "error", "error": error, "request_id": REQUEST_ID}


def _content(body: Json, answer: Answer) -> tuple[list[Json], str]:
    """The content blocks and the stop reason."""
    blocks: list[Json] = []
    if answer.thought:
        blocks.append({"type": "thinking", "thinking": answer.thought, "signature": "bW9jay1zaWduYXR1cmU="})
    declared = {tool["name"]: tool.get("input_schema") for tool in body.get("tools") or []}
    if call := tool_call(declared, answer.command, is_done=_has_result(body)):
        use = {"type": "tool_use", "id": "toolu_mock", "name": call[0], "input": call[1]}
        return [*blocks, {"type": "text", "text": "Let me run it."}, use], "tool_use"
    if answer.stop != "filter":
        blocks.append({"type": "text", "text": answer.text})
    return blocks, _STOP[answer.stop]


def _has_result(body: Json) -> bool:
    lists = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    return any(block.get("type") == "tool_result" for blocks in lists for block in blocks)


def _events(message: Json) -> Iterator[tuple[str, Json]]:
    begun: Json = {"content": [], "stop_reason": None, "stop_details": None, "usage": {**_USAGE, "output_tokens": 1}}
    yield "message_start", {"message": {**message, **begun}}
    yield "ping", {}
    for index, block in enumerate(message["content"]):
        yield "content_block_start", {"index": index, "content_block": _begun(block)}
        for delta in _deltas(block):
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ended = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    yield "message_delta", {"delta": ended, "usage": _USAGE}
    yield "message_stop", {}


def _begun(block: Json) -> Json:
    empty: Json = {"text": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif block["type"] == "tool_use":
        for piece in ["", *pieces(json.dumps(block["input"]))]:
            yield {"type": "input_json_delta", "partial_json": piece}
