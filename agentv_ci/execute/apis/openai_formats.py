"""OpenAI's two APIs, which Azure and many servers support too: chat completions and Responses.

https://platform.openai.com/docs/api-reference/chat and
https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from agentv_ci.base.json_access import objects_at, read_json, text_at, value_at
from agentv_ci.contracts.api_targets import AzureOpenAITarget, OpenAITarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import (
    Attachment,
    ChatMessage,
    ProviderError,
    Request,
    Response,
    is_filtered,
)
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.answers import answered, joined, of_type, openai_usage
from agentv_ci.execute.apis.provider import (
    Api,
    budget_of,
    effort,
    instructions_and_turns,
    messages_of,
    temperature_of,
    whole_limit_of,
)
from agentv_ci.execute.apis.refusals import inner_error

VENDOR = urlsplit(OpenAITarget.fallbacks["base_url"]).hostname
UNFINISHED = ("failed", "cancelled", "queued", "in_progress")

SpeakingTarget = OpenAITarget | AzureOpenAITarget


def openai_api(
    target: SpeakingTarget,
    base_url: str,
    headers: Mapping[str, str],
    *,
    place: str = "",
    query: str = "",
) -> Api:
    """Return the API of a resolved target, in the target's format.

    `place` precedes the end of the path, and `query` follows it.
    """
    if target.api_format == "responses":
        path, question = f"{place}/responses{query}", ("instructions", "input")
        body = partial(responses_body, target)
        return Api(
            base_url,
            path,
            headers,
            question,
            body,
            read_responses,
            responses_usage,
            takes_seed=False,
        )
    path = f"{place}/chat/completions{query}"
    body = partial(chat_body, target)
    return Api(base_url, path, headers, ("messages",), body, read_chat, chat_usage, takes_seed=True)


def _model(target: SpeakingTarget) -> str:
    model = target.deployment if isinstance(target, AzureOpenAITarget) else target.model
    assert model is not None, "a resolved target has a deployment"
    return model


def _limit_name(target: SpeakingTarget) -> str:
    """Return the name of the token limit.

    OpenAI's newer models refuse max_tokens; many compatible servers support nothing else.
    """
    if target.max_tokens_param is not None:
        return target.max_tokens_param
    is_vendor = (
        isinstance(target, AzureOpenAITarget) or urlsplit(target.base_url).hostname == VENDOR
    )
    if is_vendor:
        return "max_completion_tokens"
    return "max_tokens"


def chat_body(target: SpeakingTarget, request: Request) -> JsonObject:
    """Return the body of a question to chat completions."""
    system, turns = instructions_and_turns(target, request)
    messages: list[JsonValue] = [{"role": "system", "content": system}] if system else []
    messages += messages_of(turns, request, _chat_text, _chat_part)
    body: JsonObject = {"model": _model(target), "messages": messages}
    if (temperature := temperature_of(target, request)) is not None:
        body["temperature"] = temperature
    if (limit := whole_limit_of(target, request)) is not None:
        body[_limit_name(target)] = limit
    if (budget := budget_of(target)) is not None:
        body["reasoning_effort"] = effort(budget)
    if request.seed is not None:
        body["seed"] = request.seed
    return body


def _chat_text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _chat_part(part: Attachment, data: str) -> JsonObject:
    if part.type == "image":
        return {"type": "image_url", "image_url": {"url": part.url or _data_url(part, data)}}
    return {
        "type": "file",
        "file": {"filename": _file_name(part), "file_data": _data_url(part, data)},
    }


def _data_url(part: Attachment, data: str) -> str:
    return f"data:{part.media_type};base64,{data}"


def _file_name(part: Attachment) -> str:
    return PurePosixPath(part.path or "").name


def read_chat(body: JsonObject) -> Response:
    """Return the answer of a completion.

    Raises ProviderError for a refusal, a filtered or a missing answer.
    """
    if error := inner_error(body) or inner_error(value_at(body, "choices", 0)):
        raise error
    message = value_at(body, "choices", 0, "message")
    if not isinstance(message, dict):
        raise ProviderError("malformed", "choices[0].message is missing in the answer")
    reason = text_at(body, "choices", 0, "finish_reason")
    content = message.get("content")
    _require_answer(content, reason, filter(None, [text_at(message, "refusal")]))
    return answered(
        _text(content),
        _chat_calls(message),
        model=text_at(body, "model"),
        usage=chat_usage(body),
        finish_reason=reason,
    )


def _require_answer(answer: JsonValue, reason: str | None, refusals: Iterable[str]) -> None:
    """Raise ProviderError for an answer that was filtered, and for refusals instead of one."""
    if is_filtered(reason):
        raise ProviderError("request", "the API's content filter withheld the answer")
    refused = list(refusals)
    if refused and not answer:
        raise ProviderError("request", f"the model refused to answer: {' '.join(refused)}")


def chat_usage(body: JsonObject) -> Usage | None:
    """Return the tokens of a completion."""
    return openai_usage(body.get("usage"), "prompt_tokens", "completion_tokens")


def _text(content: JsonValue) -> str:
    """Return the content as text: of a list of parts, which some servers send, their texts.

    Else as JSON.
    """
    if not content or isinstance(content, str):
        return content if isinstance(content, str) else ""
    parts = [part for part in objects_at(content) if part.get("type") in (None, "text")]
    if parts:
        return joined(parts, "text")
    return json.dumps(content, ensure_ascii=False)


def _chat_calls(message: JsonValue) -> Iterator[ToolCall]:
    for item in objects_at(message, "tool_calls"):
        if name := text_at(item, "function", "name"):
            yield ToolCall(tool=name, input=_arguments(value_at(item, "function", "arguments")))


def _arguments(written: JsonValue) -> JsonValue:
    """Return a call's arguments, parsed as JSON where possible."""
    try:
        return read_json(written) if isinstance(written, str) else written
    except ValueError:
        return written


def responses_body(target: SpeakingTarget, request: Request) -> JsonObject:
    """Return the body of a question to Responses, which are not stored."""
    system, turns = instructions_and_turns(target, request)
    # The API requires input.
    asked = turns or [ChatMessage("user", "Begin.")]
    messages = messages_of(asked, request, _response_text, _response_part)
    instructions: JsonObject = {"instructions": system} if system else {}
    body: JsonObject = {"model": _model(target), **instructions, "input": messages, "store": False}
    if (temperature := temperature_of(target, request)) is not None:
        body["temperature"] = temperature
    if (limit := whole_limit_of(target, request)) is not None:
        body["max_output_tokens"] = limit
    if (budget := budget_of(target)) is not None:
        body["reasoning"] = {"effort": effort(budget)}
    return body


def _response_text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _response_part(part: Attachment, data: str) -> JsonObject:
    if part.type == "image":
        # The API's schema requires the detail; this is its default.
        return {
            "type": "input_image",
            "detail": "auto",
            "image_url": part.url or _data_url(part, data),
        }
    if part.url is not None:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": _file_name(part), "file_data": _data_url(part, data)}


def read_responses(body: JsonObject) -> Response:
    """Return the answer of a response; failures have HTTP status 200 too.

    Raises ProviderError for a refusal, a failure or a missing answer.
    """
    status = _status(body)
    reason = text_at(body, "incomplete_details", "reason")
    parts = list(_response_parts(body))
    answer = joined(of_type(parts, "output_text"), "text")
    refusals = (text_at(part, "refusal") or "" for part in of_type(parts, "refusal"))
    _require_answer(answer, reason, refusals)
    return answered(
        answer,
        _response_calls(body),
        model=text_at(body, "model"),
        usage=responses_usage(body),
        finish_reason=reason or status,
    )


def _status(body: JsonObject) -> str | None:
    """Return the status of a response; raises ProviderError for one without an answer."""
    if error := inner_error(body):
        raise error
    status = text_at(body, "status")
    if status in UNFINISHED:
        raise ProviderError("server", f"the API answered with status {status}")
    if not isinstance(body.get("output"), list):
        raise ProviderError("malformed", "output is missing in the answer")
    return status


def _response_parts(body: JsonObject) -> Iterator[JsonObject]:
    for item in objects_at(body, "output"):
        yield from objects_at(item, "content")


def responses_usage(body: JsonObject) -> Usage | None:
    """Return the tokens of a response."""
    return openai_usage(body.get("usage"), "input_tokens", "output_tokens")


def _response_calls(body: JsonObject) -> Iterator[ToolCall]:
    for item in objects_at(body, "output"):
        if value_at(item, "type") == "function_call" and (name := text_at(item, "name")):
            yield ToolCall(tool=name, input=_arguments(value_at(item, "arguments")))
