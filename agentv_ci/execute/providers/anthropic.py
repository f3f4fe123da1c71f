"""`provider: anthropic`: Anthropic's Messages API.

Protocol: POST {base_url}/v1/messages, https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial

from agentv_ci.base.json_access import objects_at, text_at, value_at
from agentv_ci.base.retry import DEFAULT_STATUS_CODES
from agentv_ci.contracts.api_targets import AnthropicTarget
from agentv_ci.contracts.attachments import TEXT
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Attachment, ProviderError, Request, Response, Warn
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.answers import answered, anthropic_usage, joined, of_type
from agentv_ci.execute.apis.provider import (
    Api,
    ApiProvider,
    alternating,
    budget_of,
    effort,
    instructions_and_turns,
    limit_of,
    messages_of,
    temperature_of,
)
from agentv_ci.execute.apis.refusals import inner_error
from agentv_ci.execute.provider_services import ProviderServices

DEFAULT_VERSION = str(AnthropicTarget.implied["version"])
DEFAULT_LIMIT = 8_192
"""The API requires a limit; all current models support this one."""

MODEL = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?", re.IGNORECASE)
"""`claude-haiku-4-5`, `claude-sonnet-4.6`, `claude-3-7-sonnet-20250219`, `claude-opus-5`:
generation and revision.
"""

LEAST_BUDGET = 1_024
"""The smallest thinking budget that the API accepts."""
FIRST_ADAPTIVE = (4, 6)
"""The first models with adaptive thinking; earlier ones take a budget."""
FIRST_WITHOUT_SAMPLING = (4, 7)
"""The first models that do not support a temperature."""


def open_provider(target: AnthropicTarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, anthropic_api(target, services.warn), services)


def anthropic_api(target: AnthropicTarget, warn: Warn) -> Api:
    """Return the API; `warn` gets settings that its model does not support."""
    assert target.base_url is not None, "a resolved target has a base_url"
    headers = {"anthropic-version": target.version or DEFAULT_VERSION}
    return Api(
        target.base_url,
        "/v1/messages",
        {**headers, "x-api-key": target.api_key} if target.api_key else headers,
        ("system", "messages"),
        partial(_body, target, warn),
        _response,
        _usage,
        takes_seed=False,
        # 529: overloaded.
        status_codes=DEFAULT_STATUS_CODES | {529},
    )


def _body(target: AnthropicTarget, warn: Warn, request: Request) -> JsonObject:
    """Return the body: instructions apart, user and assistant alternating."""
    system, turns = instructions_and_turns(target, request)
    generation = _generation(target.model)
    budget = max(LEAST_BUDGET, wanted) if (wanted := budget_of(target)) else 0
    body: JsonObject = {
        "model": target.model,
        "max_tokens": (limit_of(target, request) or DEFAULT_LIMIT) + budget,
        **({"system": system} if system else {}),
        "messages": messages_of(alternating(turns), request, _text, _part),
        **_thinking(budget, generation),
    }
    temperature = temperature_of(target, request)
    if temperature is None:
        return body
    if not budget and generation < FIRST_WITHOUT_SAMPLING:
        return {**body, "temperature": temperature}
    reason = "it cannot be combined with thinking" if budget else "the model does not support it"
    warn(f"{target.name}: temperature is ignored: {reason}")
    return body


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _part(part: Attachment, data: str) -> JsonObject:
    source: JsonObject = {"type": "base64", "media_type": part.media_type, "data": data}
    if part.url is not None:
        source = {"type": "url", "url": part.url}
    elif part.media_type == TEXT:
        source = {"type": "text", "media_type": TEXT, "data": b64decode(data).decode("utf-8")}
    return {"type": part.type, "source": source}


def _thinking(budget: int, generation: tuple[int, int]) -> JsonObject:
    if not budget:
        return {}
    if generation >= FIRST_ADAPTIVE:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort(budget)}}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _response(body: JsonObject) -> Response:
    if error := inner_error(body):
        raise error
    content = body.get("content")
    if not isinstance(content, list):
        raise ProviderError("malformed", "content is missing in the answer")
    reason = text_at(body, "stop_reason")
    answer = joined(of_type(objects_at(content), "text"), "text")
    if reason == "refusal":
        raise ProviderError(
            "request", "the model refused to answer" + (f": {answer}" if answer else "")
        )
    return answered(
        answer,
        _calls(content),
        model=text_at(body, "model"),
        usage=_usage(body),
        finish_reason=reason,
    )


def _usage(body: JsonObject) -> Usage | None:
    return anthropic_usage(body.get("usage"))


def _generation(model: str) -> tuple[int, int]:
    """Return generation and revision of a model; (0, 0) when its name has none."""
    match = MODEL.search(model)
    if match:
        return (int(match[1]), int(match[2] or 0))
    return (0, 0)


def _calls(content: JsonValue) -> Iterator[ToolCall]:
    for block in objects_at(content):
        if value_at(block, "type") == "tool_use" and (name := text_at(block, "name")):
            yield ToolCall(tool=name, input=value_at(block, "input"))
