"""An answer of a model, and its tokens as each vendor counts them."""

from __future__ import annotations

from collections.abc import Iterable

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import CalledTool, OutputMessage, Response, Usage
from agentv_ci.outside import count_at


def answered(
    text: str, calls: Iterable[CalledTool], *, model: str | None, usage: Usage | None, finish_reason: str | None
) -> Response:
    """Return what a model said in one message; calls make a trace, and no calls mean nothing."""
    called = tuple(calls)
    return Response(
        answer=text,
        messages=(OutputMessage("assistant", text, called),),
        has_trace=bool(called),
        model=model,
        usage=usage,
        finish_reason=finish_reason,
    )


def openai_usage(block: JsonValue, read: str, written: str) -> Usage | None:
    """Return OpenAI's tokens; `read` and `written` are the names of its two formats for them."""
    if not isinstance(block, dict):
        return None
    return Usage(
        input_tokens=count_at(block, read),
        output_tokens=count_at(block, written),
        total_tokens=count_at(block, "total_tokens"),
        cached_tokens=count_at(block, f"{read}_details", "cached_tokens"),
    )


def anthropic_usage(block: JsonValue) -> Usage | None:
    """Return Anthropic's tokens. Those from and for the cache are counted apart on the wire; read they all are."""
    if not isinstance(block, dict):
        return None
    fresh, cached = count_at(block, "input_tokens"), count_at(block, "cache_read_input_tokens")
    read = None if fresh is None else fresh + (cached or 0) + (count_at(block, "cache_creation_input_tokens") or 0)
    return summed(read, count_at(block, "output_tokens"), cached)


def gemini_usage(block: JsonValue) -> Usage | None:
    """Return Gemini's tokens. Thoughts are written, and what tools put into the prompt is read."""
    if not isinstance(block, dict):
        return None
    return Usage(
        input_tokens=_sum(block, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum(block, "candidatesTokenCount", "thoughtsTokenCount"),
        total_tokens=count_at(block, "totalTokenCount"),
        cached_tokens=count_at(block, "cachedContentTokenCount"),
    )


def summed(read: int | None, written: int | None, cached: int | None) -> Usage:
    """Return tokens where nobody tells their sum."""
    total = None if read is None or written is None else read + written
    return Usage(input_tokens=read, output_tokens=written, total_tokens=total, cached_tokens=cached)


def _sum(block: JsonValue, *names: str) -> int | None:
    counts = [count for name in names if (count := count_at(block, name)) is not None]
    return sum(counts) if counts else None
