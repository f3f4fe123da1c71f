"""OpenAI's chat completions, also as Azure speaks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.servers.model_api.dialect import (
    CREATED,
    USAGE,
    Answer,
    Mistake,
    Trouble,
    checked_body,
    served_model,
    tool_call,
)
from tests.servers.model_api.openai import PROMPT_RESULTS, OpenAI, check_keys, check_numbers, check_value, required
from tests.servers.model_api.wire import Asked, Json, Reply, answers, event, pieces, streams, words

PARAMETERS = words(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier "
    "stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
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

    def check(self, asked: Asked) -> None:
        self._check_version(asked)
        body = checked_body(asked)
        if not self.by_deployment and not body.get("model"):
            raise Mistake("you must provide a model parameter")
        known = PARAMETERS | {"data_sources"} if self.azure else PARAMETERS
        check_keys(body, known, "Unrecognized request argument supplied: {}")
        check_numbers(body, {"max_tokens": 1, "max_completion_tokens": 1})
        if "max_tokens" in body and "max_completion_tokens" in body:
            message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
            raise Mistake(message, code="invalid_parameter_combination")
        if "stream_options" in body and not body.get("stream"):
            raise Mistake("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
        _check_messages(required(body, "messages"))

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
        return streams([event(error)], self.headers) if asked.body.get("stream") else answers(200, error, self.headers)

    def unsupported(self, asked: Asked, parameter: str, new_name: str | None) -> Trouble | None:
        value = asked.body.get(parameter)
        if parameter not in ("temperature", "top_p") or value is None:
            return super().unsupported(asked, parameter, new_name)
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
        if self.azure:
            filters = {"choices": [], "prompt_filter_results": PROMPT_RESULTS}
            yield event({**head, "id": "", "model": "", "created": 0, **filters, **usage})
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
    for key in ("reasoning_content", "content", "refusal"):
        for piece in pieces(message.get(key) or ""):
            yield {key: piece}
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


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list):
        raise Mistake("Invalid type for 'messages': expected an array of objects.", param="messages")
    if not messages:
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise Mistake(message, param="messages", code="empty_array")
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        check_value(message.get("role"), ROLES, f"{where}.role")
        _check_content(message, where)
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                raise Mistake(f"Invalid parameter: {text}", param=f"{where}.role")
        else:
            open_calls = {call["id"] for call in message.get("tool_calls") or []}


def _check_content(message: Json, where: str) -> None:
    content = message.get("content")
    if content is None and (message.get("tool_calls") or message.get("refusal") or message.get("function_call")):
        return
    if not isinstance(content, str | list):
        text = f"Invalid value for 'content': expected a string, got {json.dumps(content)}."
        raise Mistake(text, param=f"{where}.content", code="invalid_type")
    if isinstance(content, list):
        for index, part in enumerate(content):
            supported = ("text", "image_url", "input_audio", "refusal", "file")
            check_value(part.get("type"), supported, f"{where}.content[{index}].type")
