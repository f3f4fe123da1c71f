"""OpenAI's chat completions, which most servers speak: https://platform.openai.com/docs/api-reference/chat."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentv_ci.contracts.api_targets import AzureOpenAITarget, OpenAITarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.results import ToolCall
from agentv_ci.execute.answers import answered, openai_usage
from agentv_ci.execute.apis.question import budget_of, effort, instructions_and_turns, temperature_of, whole_limit_of
from agentv_ci.execute.apis.refusals import inner_error
from agentv_ci.json_access import objects_at, read_json, text_at, value_at


def chat_body(target: OpenAITarget | AzureOpenAITarget, model: str, request: Request, *, limit_name: str) -> JsonObject:
    """Return the body of a question; `limit_name` is what the server calls the most tokens of an answer."""
    system, turns = instructions_and_turns(request)
    messages: list[JsonValue] = [{"role": "system", "content": system}]
    messages += [{"role": each.role, "content": each.content} for each in turns]
    body: JsonObject = {"model": model, "messages": messages}
    if (temperature := temperature_of(target, request)) is not None:
        body["temperature"] = temperature
    if (limit := whole_limit_of(target, request)) is not None:
        body[limit_name] = limit
    if (budget := budget_of(target)) is not None:
        body["reasoning_effort"] = effort(budget)
    if request.seed is not None:
        body["seed"] = request.seed
    return body


def read_chat(body: JsonObject) -> Response:
    """Return the answer of a completion; raises ProviderError for a refusal, a filtered answer, or none at all."""
    if error := inner_error(body) or inner_error(value_at(body, "choices", 0)):
        raise error
    message = value_at(body, "choices", 0, "message")
    if not isinstance(message, dict):
        raise ProviderError("malformed", "the answer has no choices[0].message")
    reason = text_at(body, "choices", 0, "finish_reason")
    content = message.get("content")
    if reason == "content_filter":
        raise ProviderError("request", "the API's content filter withheld the answer")
    if not content and (refusal := text_at(message, "refusal")):
        raise ProviderError("request", f"the model refused to answer: {refusal}")
    answer = _text(content)
    return answered(
        answer,
        _calls(message),
        model=text_at(body, "model"),
        usage=openai_usage(body.get("usage"), "prompt_tokens", "completion_tokens"),
        finish_reason=reason,
    )


def _text(content: JsonValue) -> str:
    """The content as text: of a list of parts, as some servers send it, their texts; anything else as JSON."""
    if not content or isinstance(content, str):
        return content if isinstance(content, str) else ""
    texts = [text_at(part, "text") for part in objects_at(content) if value_at(part, "type") in (None, "text")]
    if texts:
        return "".join(text or "" for text in texts)
    return json.dumps(content, ensure_ascii=False)


def _calls(message: JsonValue) -> Iterator[ToolCall]:
    for each in objects_at(message, "tool_calls"):
        if name := text_at(each, "function", "name"):
            yield ToolCall(tool=name, input=arguments(value_at(each, "function", "arguments")))


def arguments(written: JsonValue) -> JsonValue:
    """Return a call's arguments, which are JSON in a text; what is none stays a text."""
    try:
        return read_json(written) if isinstance(written, str) else written
    except ValueError:
        return written
