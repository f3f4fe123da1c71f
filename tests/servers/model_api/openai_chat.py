"""OpenAI's chat completions, also as Azure speaks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.servers.http import Asked, Reply, answers
from tests.servers.model_api.dialect import (
    CREATED,
    NAMED,
    USAGE,
    Answer,
    Json,
    Mistake,
    Trouble,
    event,
    pieces,
    served_model,
    streams,
    tool_call,
    words,
)
from tests.servers.model_api.openai import PROMPT_RESULTS, OpenAI

PARAMETERS = words(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier "
    "stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
_MESSAGE: Json = {
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "assistant", "user", "function", "tool", "developer"]},
        "content": {"type": ["string", "array", "null"]},
    },
}
_USAGE: Json = {
    "prompt_tokens": USAGE.input,
    "completion_tokens": USAGE.output,
    "total_tokens": USAGE.total,
    "prompt_tokens_details": {"cached_tokens": USAGE.cached, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": USAGE.reasoning, "audio_tokens": 0},
}
_FINISH = {"end": "stop", "refusal": "stop", "length": "length", "filter": "content_filter"}


class OpenAIChat(OpenAI):
    """Chat completions; with `by_deployment` in Azure's older style, which names the model in the path."""

    def __init__(self, *, azure: bool = False, by_deployment: bool = False) -> None:
        super().__init__(azure=azure)
        self.by_deployment = by_deployment

    def schema(self) -> Json:
        return {
            "required": ["messages"] if self.by_deployment else ["model", "messages"],
            "properties": {
                **dict.fromkeys(PARAMETERS, True),
                "model": NAMED,
                "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
            },
            "additionalProperties": False,
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
        body = {**self._head(asked, "chat.completion"), "choices": [choice], "usage": _USAGE}
        if self.azure:
            choice["content_filter_results"] = {}
            body["prompt_filter_results"] = PROMPT_RESULTS
        return answers(200, body, self.headers)

    def failed_inside(self, asked: Asked) -> Reply:
        error = {"error": {"message": "Provider returned error", "code": 502, "metadata": {"provider_name": "mock"}}}
        return answers(200, error, self.headers)

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        value = asked.body.get(parameter)
        if parameter not in ("temperature", "top_p") or value is None:
            return super().unsupported(asked, parameter)
        # The default is no change, so the API lets it pass.
        if value == 1:
            return None
        message = (
            f"Unsupported value: '{parameter}' does not support {value} with this model. "
            "Only the default (1) value is supported."
        )
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
            yield event({**head, "choices": [], "usage": _USAGE})
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
    if answer.command is not None and not answered and (call := tool_call(_declared(body), answer.command)):
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
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


def _declared(body: Json) -> dict[str, Any]:
    functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    return {function["name"]: function.get("parameters") for function in functions}
