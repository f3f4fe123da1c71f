"""`provider: openai`: OpenAI's chat completions, and every server that speaks them.

Protocol: POST {base_url}/chat/completions, https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import (
    CalledTool,
    Log,
    OutputMessage,
    ProviderError,
    Request,
    Response,
    Usage,
    World,
)
from agentv_ci.contracts.targets import HttpTarget, OpenAITarget
from agentv_ci.execute.providers.transport import Transport, error_message
from agentv_ci.outside import read_json
from agentv_ci.retry import DEFAULT_STATUS_CODES, RetryPolicy, with_retries

DEFAULT_SYSTEM_PROMPT = "You are a careful assistant. Follow the instructions and make nothing up."


class OpenAIProvider:
    """See Provider."""

    def __init__(self, target: OpenAITarget, *, root: Path, world: World, log: Log) -> None:
        assert target.base_url is not None, "a resolved target has a base_url"
        bundle = str(root / target.ca_bundle) if target.ca_bundle else None
        self._target = target
        self._world = world
        self._log = log
        self._policy = retry_policy(target)
        self._transport = Transport(target.base_url, ca_bundle=bundle, world=world)

    async def check(self) -> None:
        """An API is ready when its settings are complete, which resolving them has shown."""

    async def ask(self, request: Request) -> Response:
        """Post the chat, repeating what the retry settings say."""
        body = self._body(request)

        async def once() -> Response:
            reply = await self._transport.post(
                "/chat/completions", headers=self._headers(), body=body, timeout_s=request.timeout_s
            )
            return _response(reply.body, body)

        def on_retry(error: ProviderError, retry: int, wait_s: float) -> None:
            name = self._target.name
            self._log(f"{name}: {error.detail}; retry {retry} of {self._policy.max_retries} in {wait_s:.1f} s")

        response, tries = await with_retries(once, self._policy, self._world, on_retry, timeout_s=request.timeout_s)
        return replace(response, requests=tries)

    def _headers(self) -> dict[str, str]:
        key = {"authorization": f"Bearer {self._target.api_key}"} if self._target.api_key else {}
        return {**key, **{name.lower(): value for name, value in (self._target.headers or {}).items()}}

    def _body(self, request: Request) -> JsonObject:
        messages: list[JsonValue] = [{"role": each.role, "content": each.content} for each in request.chat]
        if not any(each.role == "system" for each in request.chat):
            messages.insert(0, {"role": "system", "content": DEFAULT_SYSTEM_PROMPT})
        body: JsonObject = {"model": self._target.model, "messages": messages}
        temperature = self._target.temperature if request.temperature is None else request.temperature
        limit = request.max_output_tokens or self._target.max_output_tokens
        if temperature is not None:
            body["temperature"] = temperature
        if limit is not None:
            body[self._limit_name()] = limit
        if request.seed is not None:
            body["seed"] = request.seed
        return {**body, **(self._target.extra_body or {})}

    def _limit_name(self) -> str:
        if self._target.max_tokens_param is not None:
            return self._target.max_tokens_param
        # OpenAI's newer models refuse max_tokens; many compatible servers know nothing else.
        return "max_completion_tokens" if "api.openai.com" in (self._target.base_url or "") else "max_tokens"

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()


def retry_policy(target: HttpTarget) -> RetryPolicy:
    """Return the retry policy of a resolved target."""
    default = RetryPolicy()
    codes = target.retry_status_codes
    return RetryPolicy(
        max_retries=int(_number(target.max_retries, default.max_retries)),
        initial_delay_s=_number(target.retry_initial_delay_ms, default.initial_delay_s * 1000) / 1000,
        max_delay_s=_number(target.retry_max_delay_ms, default.max_delay_s * 1000) / 1000,
        backoff_factor=_number(target.retry_backoff_factor, default.backoff_factor),
        status_codes=DEFAULT_STATUS_CODES if codes is None else frozenset(int(code) for code in codes),
    )


def _number(value: float | str | None, default: float) -> float:
    return default if value is None else float(value)


def _response(body: JsonObject, asked: JsonObject) -> Response:
    if body.get("error"):
        # Some routers answer 200 and put the failure inside.
        raise ProviderError("server", f"the API answered with an error: {error_message(body) or 'without a message'}")
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ProviderError("malformed", "the answer has no choices[0].message")
    content = message.get("content")
    if choice.get("finish_reason") == "content_filter" and not content:
        raise ProviderError("request", "the API's content filter withheld the answer")
    if content is None:
        content = message.get("refusal") or ""
    answer = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    calls = tuple(_calls(message.get("tool_calls")))
    model = body.get("model")
    return Response(
        answer=answer,
        messages=(OutputMessage("assistant", answer, calls),),
        has_trace=bool(calls),
        model=model if isinstance(model, str) else None,
        usage=_usage(body.get("usage")),
        request={"messages": asked["messages"]},
    )


def _calls(listed: JsonValue) -> list[CalledTool]:
    calls: list[CalledTool] = []
    for each in listed if isinstance(listed, list) else ():
        function = each.get("function") if isinstance(each, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            calls.append(CalledTool(str(function["name"]), _arguments(function.get("arguments"))))
    return calls


def _arguments(text: JsonValue) -> JsonValue:
    try:
        return read_json(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _usage(block: JsonValue) -> Usage | None:
    if not isinstance(block, dict):
        return None
    details = block.get("prompt_tokens_details")
    return Usage(
        input_tokens=_count(block.get("prompt_tokens")),
        output_tokens=_count(block.get("completion_tokens")),
        total_tokens=_count(block.get("total_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
    )


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
