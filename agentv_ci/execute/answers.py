"""Answers, tokens and error messages, in the formats of all vendors."""

from __future__ import annotations

from collections.abc import Iterable

from agentv_ci.base.json_access import count_at, objects_at, text_at, value_at
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError, Response, is_broken
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage


def answered(
    text: str,
    calls: Iterable[ToolCall],
    *,
    model: str | None,
    usage: Usage | None,
    finish_reason: str | None,
) -> Response:
    """Return a model's answer of one message; it has a trace only when the model called tools.

    Raises ProviderError when the service gave up before there was one.
    """
    if is_broken(finish_reason):
        raise ProviderError(
            "server",
            f"the API broke the answer off (finish reason {finish_reason})",
            retryable=True,
        )
    called = tuple(calls)
    return Response(
        answer=text,
        messages=(OutputMessage(role="assistant", content=text, tool_calls=called),),
        has_trace=bool(called),
        model=model,
        usage=usage,
        finish_reason=finish_reason,
    )


def openai_usage(block: JsonValue, read: str, written: str) -> Usage | None:
    """Return OpenAI's tokens.

    `read` and `written` are the field names, which its two formats spell differently.
    """
    if not isinstance(block, dict):
        return None
    return Usage(
        input_tokens=count_at(block, read),
        output_tokens=count_at(block, written),
        total_tokens=count_at(block, "total_tokens"),
        cached_tokens=count_at(block, f"{read}_details", "cached_tokens"),
        cache_write_tokens=count_at(block, f"{read}_details", "cache_write_tokens"),
    )


def anthropic_usage(block: JsonValue) -> Usage | None:
    """Return Anthropic's tokens; it counts cached input apart from `input_tokens`."""
    if not isinstance(block, dict):
        return None
    fresh, cached = count_at(block, "input_tokens"), count_at(block, "cache_read_input_tokens")
    stored = count_at(block, "cache_creation_input_tokens")
    of_hour = count_at(block, "cache_creation", "ephemeral_1h_input_tokens")
    if stored is None and value_at(block, "cache_creation"):
        stored = (count_at(block, "cache_creation", "ephemeral_5m_input_tokens") or 0) + (
            of_hour or 0
        )
    read = None if fresh is None else fresh + (cached or 0) + (stored or 0)
    usage = summed(read, count_at(block, "output_tokens"), cached)
    # Most answers write nothing to the cache.
    writes = {"cache_write_tokens": stored or None, "cache_write_1h_tokens": of_hour or None}
    if stored:
        return usage.model_copy(update=writes)
    return usage


def gemini_usage(block: JsonValue) -> Usage | None:
    """Return Gemini's tokens.

    Thoughts count as output, and what tools add to the prompt as input.
    """
    if not isinstance(block, dict):
        return None
    read = _sum(block, "promptTokenCount", "toolUsePromptTokenCount")
    written = _sum(block, "candidatesTokenCount", "thoughtsTokenCount")
    total = count_at(block, "totalTokenCount")
    if written is None and read is not None and total is not None:
        # A blocked answer has no count of its own.
        written = max(0, total - read)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=total,
        cached_tokens=count_at(block, "cachedContentTokenCount"),
    )


def summed(read: int | None, written: int | None, cached: int | None) -> Usage:
    """Return tokens with their computed total."""
    total = None if read is None or written is None else read + written
    return Usage(input_tokens=read, output_tokens=written, total_tokens=total, cached_tokens=cached)


def _sum(block: JsonValue, *names: str) -> int | None:
    counts = [count for name in names if (count := count_at(block, name)) is not None]
    return sum(counts) if counts else None


def of_type(objects: Iterable[JsonObject], kind: str) -> list[JsonObject]:
    """Return the objects whose `type` is this one."""
    return [item for item in objects if item.get("type") == kind]


def joined(objects: Iterable[JsonObject], name: str) -> str:
    """Return the texts that objects have under a name, as one."""
    return "".join(text_at(item, name) or "" for item in objects)


def error_message(body: JsonValue) -> str | None:
    """Return the message of an error body.

    The body is the message itself, has it in `error`, `message` or `detail`, possibly nested, or is
    a list of `{"loc", "msg"}` (FastAPI).
    """
    match body:
        case str():
            return one_line(body) or None
        case list():
            return "; ".join(map(_located, objects_at(body))) or None
        case dict():
            for key in ("error", "message", "detail"):
                if reason := error_message(body.get(key)):
                    return reason
            return None
        case _:
            return None


def _located(problem: JsonValue) -> str:
    place = value_at(problem, "loc")
    steps = []
    if isinstance(place, list):
        steps = [str(step) for step in place if step != "body"]
    return f"{'.'.join(steps)}: {text_at(problem, 'msg') or 'invalid'}"


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())
