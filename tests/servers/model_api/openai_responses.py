"""OpenAI's Responses, also as Azure speaks them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.servers.http import Asked, Reply, answers
from tests.servers.model_api.dialect import (
    CREATED,
    NAMED,
    USAGE,
    Answer,
    Json,
    Trouble,
    event,
    pieces,
    served_model,
    streams,
    tool_call,
    words,
)
from tests.servers.model_api.openai import OpenAI

PARAMETERS = words(
    "access_programs background background_options context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store "
    "stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user"
)
AGENT_PARAMETERS = frozenset({"client_metadata"})
"""What agents of the vendor send although the SDK has no name for it."""
_ITEM: Json = {"properties": {"role": {"enum": ["assistant", "system", "developer", "user"]}}}
_USAGE: Json = {
    "input_tokens": USAGE.input,
    "input_tokens_details": {"cached_tokens": USAGE.cached, "cache_write_tokens": 0},
    "output_tokens": USAGE.output,
    "output_tokens_details": {"reasoning_tokens": USAGE.reasoning},
    "total_tokens": USAGE.total,
}
_INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output")


class OpenAIResponses(OpenAI):
    """Responses, without conversations kept by the server."""

    def schema(self) -> Json:
        return {
            "required": ["model", "input"],
            "properties": {
                **dict.fromkeys(PARAMETERS | AGENT_PARAMETERS, True),
                "model": NAMED,
                "max_output_tokens": {"type": ["integer", "null"], "minimum": 16},
                "input": {"anyOf": [NAMED, {"type": "array", "minItems": 1, "items": _ITEM}]},
            },
            "additionalProperties": False,
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

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        trouble = super().unsupported(asked, parameter)
        # Unlike chat completions, Responses have no code here.
        return replace(trouble, code="") if trouble else None

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
    if answer.command is not None and not _has_output(body):
        call = tool_call(_declared(body), answer.command)
        if call:
            name, arguments = call
            called = {"id": "fc_mock", "type": "function_call", "status": "completed", "call_id": "call_mock"}
            return [*items, {**called, "name": name, "arguments": json.dumps(arguments)}]
    part: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    if answer.stop == "refusal":
        part = {"type": "refusal", "refusal": answer.text}
    status = "incomplete" if answer.stop == "length" else "completed"
    return [*items, {"id": "msg_mock", "type": "message", "status": status, "role": "assistant", "content": [part]}]


def _declared(body: Json) -> dict[str, Any]:
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
