"""OpenAI's chat completions and Responses, also as Azure speaks them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.http import Asked, Reply, answers
from tests.servers.model_api.dialect import (
    BASE64,
    CREATED,
    NAMED,
    NOTHING,
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

_CODES: Mapping[int, str] = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_AZURE_CODES: Mapping[int, str] = {404: "DeploymentNotFound", 500: "InternalServerError", 503: "ServiceUnavailable"}
_SAFE: Json = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}


class _OpenAI(Dialect):
    """Errors, keys and headers of OpenAI, or of Azure when `azure` is set."""

    def __init__(self, *, azure: bool = False) -> None:
        self.azure = azure

    @property
    def headers(self) -> dict[str, str]:
        return {"apim-request-id" if self.azure else "x-request-id": REQUEST_ID}

    def check_key(self, asked: Asked, key: str) -> None:
        given = asked.headers.get("api-key") if self.azure else None
        given = given or asked.headers.get("authorization", "").removeprefix("Bearer ")
        if given == key:
            return
        if self.azure:
            raise Mistake("Access denied due to invalid subscription key or wrong API endpoint.", status=401)
        if not given:
            raise Mistake("You didn't provide an API key.", status=401, kind="invalid_request_error", code="")
        raise Mistake("Incorrect API key provided.", status=401)

    def error(self, trouble: Trouble) -> Reply:
        body = self._azure_error(trouble) if self.azure else _error(trouble)
        headers = {**self.headers, **_retry_headers(trouble.retry_after_s)}
        return answers(trouble.status, {"error": {**body, **trouble.extra}}, headers)

    def _azure_error(self, trouble: Trouble) -> Json:
        if trouble.kind or trouble.param or (trouble.code and trouble.status == 400):
            return _error(trouble)
        code = trouble.code or _AZURE_CODES.get(trouble.status, str(trouble.status))
        return {"code": code, "message": trouble.message}

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        if parameter not in asked.body:
            return None
        message = f"Unsupported parameter: '{parameter}' is not supported with this model."
        # Unlike chat completions, Responses have no code here.
        return Trouble(400, message, param=parameter, code="")

    def filtered_prompt(self, asked: Asked) -> Reply:
        if not self.azure:
            message = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
            return self.error(Trouble(400, message, code="invalid_prompt"))
        message = (
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
            "Please modify your prompt and retry."
        )
        results = {**_SAFE, "violence": {"filtered": True, "severity": "medium"}}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results}
        extra = {"type": None, "status": 400, "innererror": inner}
        return self.error(Trouble(400, message, param="prompt", code="content_filter", extra=extra))

    def lacks_quota(self) -> Reply:
        message = "You exceeded your current quota, please check your plan and billing details."
        return self.error(Trouble(429, message, kind="insufficient_quota", code="insufficient_quota"))


def _error(trouble: Trouble) -> Json:
    status = trouble.status
    usual = "requests" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    code = _CODES.get(status) if trouble.code is None else trouble.code
    return {
        "message": trouble.message,
        "type": trouble.kind or usual,
        "param": trouble.param,
        "code": code or None,
    }


def _retry_headers(seconds: float | None) -> dict[str, str]:
    if seconds is None:
        return {}
    return {"retry-after": str(math.ceil(seconds)), "retry-after-ms": f"{seconds * 1000:g}"}


_IMAGE = pattern(f"^(https?://|data:image/(png|jpeg|gif|webp);base64,{BASE64})")
_CHAT_PARTS: Mapping[str, Json] = {
    "image_url": exactly(type={}, image_url=exactly(url=_IMAGE)),
    # PDF files only, and no URLs of files.
    "file": exactly(type={}, file=exactly(filename=NAMED, file_data=pattern(f"^data:application/pdf;base64,{BASE64}"))),
}
_FILE_DATA = pattern(f"^data:(application/pdf|text/plain);base64,{BASE64}")
_RESPONSE_PARTS: Mapping[str, Json] = {
    # The parts of chat completions have other names here.
    **dict.fromkeys((*_CHAT_PARTS, "text"), NOTHING),
    "input_image": exactly(type={}, detail={"enum": ["low", "high", "auto"]}, image_url=_IMAGE),
    "input_file": {
        "oneOf": [
            exactly(type={}, filename=NAMED, file_data=_FILE_DATA),
            exactly(type={}, file_url=pattern("^https?://")),
        ]
    },
}
_MESSAGE: Json = {
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "assistant", "user", "function", "tool", "developer"]},
        "content": {"type": ["string", "array", "null"], "items": by_type(_CHAT_PARTS)},
    },
    **only_for_user("content", ("image_url", "file")),
}
_CHAT_USAGE: Json = {
    "prompt_tokens": USAGE.input,
    "completion_tokens": USAGE.output,
    "total_tokens": USAGE.total,
    "prompt_tokens_details": {"cached_tokens": USAGE.cached, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": USAGE.reasoning, "audio_tokens": 0},
}
_FINISH = {"end": "stop", "refusal": "stop", "length": "length", "filter": "content_filter"}


class OpenAIChat(_OpenAI):
    """Chat completions; with `by_deployment` in Azure's older style, which names the model in the path."""

    def __init__(self, *, azure: bool = False, by_deployment: bool = False) -> None:
        super().__init__(azure=azure)
        self.by_deployment = by_deployment

    def schema(self) -> Json:
        return {
            "required": ["messages"] if self.by_deployment else ["model", "messages"],
            "properties": {
                "model": NAMED,
                "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
            },
            "not": {"required": ["max_tokens", "max_completion_tokens"]},
        }

    def check(self, asked: Asked) -> None:
        self._check_version(asked)
        super().check(asked)

    def _check_version(self, asked: Asked) -> None:
        if self.by_deployment and not asked.query.get("api-version"):
            raise Mistake("Resource not found", status=404, code="404")
        if self.azure and not self.by_deployment and "api-version" in asked.query:
            raise Mistake("api-version query parameter is not allowed when using /v1 path")

    def answer(self, asked: Asked, answer: Answer) -> Reply:
        message, finish = _message(asked.body, answer)
        if asked.body.get("stream"):
            return streams(self._chunks(asked, message, finish), self.headers)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        body = {**self._head(asked, "chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}
        if self.azure:
            choice["content_filter_results"] = {}
            body["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": _SAFE}]
        return answers(200, body, self.headers)

    def failed_inside(self, asked: Asked) -> Reply:
        error = {"error": {"message": "Provider returned error", "code": 502, "metadata": {"provider_name": "mock"}}}
        return answers(200, error, self.headers)

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        if parameter not in asked.body:
            return None
        said = f"'{parameter}' does not support {asked.body[parameter]} with this model."
        message = f"Unsupported value: {said} Only the default (1) value is supported."
        return Trouble(400, message, param=parameter, code="unsupported_value")

    def _head(self, asked: Asked, kind: str) -> Json:
        named = asked.body.get("model")
        if self.by_deployment and (found := re.search("/deployments/([^/]+)/", asked.route)):
            named = found[1]
        return {
            "id": "chatcmpl-mock",
            "object": kind,
            "created": CREATED,
            "model": served_model(str(named)),
            "service_tier": "default",
            "system_fingerprint": None,
        }

    def _chunks(self, asked: Asked, message: Json, finish: str) -> Iterator[str]:
        head = self._head(asked, "chat.completion.chunk")
        counted = bool((asked.body.get("stream_options") or {}).get("include_usage"))
        # Usage is null in all chunks but the last, and only there for those who asked for it.
        usage = {"usage": None} if counted else {}
        for delta in _deltas(message):
            yield event({**head, "choices": [_choice(delta)], **usage})
        yield event({**head, "choices": [{**_choice({}), "finish_reason": finish}], **usage})
        if counted:
            yield event({**head, "choices": [], "usage": _CHAT_USAGE})
        yield "data: [DONE]\n\n"


def _choice(delta: Json) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": "" if message["content"] is not None else None}
    for piece in pieces(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _message(body: Json, answer: Answer) -> tuple[Json, str]:
    """The assistant's message and its finish reason."""
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None, "annotations": []}
    answered = any(one.get("role") == "tool" for one in body["messages"])
    if call := tool_call(_chat_tools(body), answer.command, is_done=answered):
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        calls = [{"id": "call_mock", "type": "function", "function": function}]
        return {**message, "content": None, "tool_calls": calls}, "tool_calls"
    if answer.stop in ("refusal", "filter"):
        message["content"] = None
    if answer.stop == "refusal":
        message["refusal"] = answer.text
    if answer.thought:
        # OpenAI keeps thoughts to itself here; servers compatible with it do not.
        message["reasoning_content"] = answer.thought
    return message, _FINISH[answer.stop]


def _chat_tools(body: Json) -> dict[str, Any]:
    functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    return {function["name"]: function.get("parameters") for function in functions}


_ITEM: Json = {
    "properties": {
        "role": {"enum": ["assistant", "system", "developer", "user"]},
        "content": {"items": by_type(_RESPONSE_PARTS)},
    },
    **only_for_user("content", tuple(_RESPONSE_PARTS)),
}
_USAGE: Json = {
    "input_tokens": USAGE.input,
    "input_tokens_details": {"cached_tokens": USAGE.cached, "cache_write_tokens": 0},
    "output_tokens": USAGE.output,
    "output_tokens_details": {"reasoning_tokens": USAGE.reasoning},
    "total_tokens": USAGE.total,
}
_INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output")


class OpenAIResponses(_OpenAI):
    """Responses, without conversations kept by the server."""

    def schema(self) -> Json:
        return {
            "required": ["model", "input"],
            "properties": {
                "model": NAMED,
                "max_output_tokens": {"type": ["integer", "null"], "minimum": 16},
                "input": {"anyOf": [NAMED, {"type": "array", "minItems": 1, "items": _ITEM}]},
            },
        }

    def answer(self, asked: Asked, answer: Answer) -> Reply:
        incomplete = _INCOMPLETE.get(answer.stop)
        response = {
            **_head(asked),
            "status": "incomplete" if incomplete else "completed",
            "incomplete_details": {"reason": incomplete} if incomplete else None,
            "output": _items(asked.body, answer),
            "usage": _USAGE,
        }
        return self._reply(asked, response)

    def failed_inside(self, asked: Asked) -> Reply:
        error = {"code": "server_error", "message": "The server had an error while processing your request."}
        return self._reply(asked, {**_head(asked), "status": "failed", "error": error})

    def _reply(self, asked: Asked, response: Json) -> Reply:
        if not asked.body.get("stream"):
            return answers(200, response, self.headers)
        numbered = enumerate(_events(_head(asked), response))
        return streams(
            (event({"type": kind, "sequence_number": number, **data}, kind) for number, (kind, data) in numbered),
            self.headers,
        )


def _head(asked: Asked) -> Json:
    body = asked.body
    return {
        "id": "resp_mock",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "model": served_model(body["model"]),
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": None,
    }


def _items(body: Json, answer: Answer) -> list[Json]:
    summary = [{"type": "summary_text", "text": answer.thought}] if answer.thought else []
    items: list[Json] = [{"id": "rs_mock", "type": "reasoning", "summary": summary}] if summary else []
    if answer.stop == "filter":
        return items
    if call := tool_call(_response_tools(body), answer.command, is_done=_has_output(body)):
        called = {"id": "fc_mock", "type": "function_call", "status": "completed", "call_id": "call_mock"}
        return [*items, {**called, "name": call[0], "arguments": json.dumps(call[1])}]
    part: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    if answer.stop == "refusal":
        part = {"type": "refusal", "refusal": answer.text}
    status = "incomplete" if answer.stop == "length" else "completed"
    return [*items, {"id": "msg_mock", "type": "message", "status": status, "role": "assistant", "content": [part]}]


def _response_tools(body: Json) -> dict[str, Any]:
    functions = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
    return {function["name"]: function.get("parameters") for function in functions}


def _has_output(body: Json) -> bool:
    asked_for = body["input"]
    return isinstance(asked_for, list) and any(item.get("type") in _OUTPUTS for item in asked_for)


_Event = tuple[str, Json]


def _events(head: Json, response: Json) -> Iterator[_Event]:
    yield "response.created", {"response": head}
    yield "response.in_progress", {"response": head}
    for index, item in enumerate(response["output"]):
        for kind, data in _item_events(item):
            yield kind, {"output_index": index, **data}
    yield f"response.{response['status']}", {"response": response}


def _item_events(item: Json) -> Iterator[_Event]:
    empty: Json = {"content": [], "arguments": "", "summary": [], "status": "in_progress"}
    yield "response.output_item.added", {"item": {key: empty.get(key, value) for key, value in item.items()}}
    match item["type"]:
        case "message":
            yield from _message_events(item)
        case "function_call":
            yield from _call_events(item)
        case _:
            pass
    yield "response.output_item.done", {"item": item}


def _message_events(item: Json) -> Iterator[_Event]:
    (part,) = item["content"]
    place = {"item_id": item["id"], "content_index": 0}
    yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _call_events(item: Json) -> Iterator[_Event]:
    for piece in pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {"item_id": item["id"], "delta": piece}
    done = {"item_id": item["id"], "name": item["name"], "arguments": item["arguments"]}
    yield "response.function_call_arguments.done", done
