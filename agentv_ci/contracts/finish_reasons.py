"""Why models stop, in the words of all vendors: whether an answer is whole."""

from __future__ import annotations

WHOLE = frozenset(
    {
        *("stop", "end_turn", "stop_sequence", "completed", "complete", "eos", "eos_token", "end_of_text"),
        *("tool_calls", "function_call", "tool_use", "tool_call", "finish_reason_unspecified", ""),
    }
)
"""Reasons of a model itself; all others say that an answer may not be whole."""
TOO_LONG = frozenset({"length", "max_tokens", "max_output_tokens", "max_length", "model_length"})
"""The limit of an answer's length was reached."""
FULL = "model_context_window_exceeded"
FILTERED = frozenset({"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii"})
"""An answer was withheld, or what was left of it."""
BROKEN = frozenset(
    {
        *("error", "server_error", "internal_error", "insufficient_system_resource", "timeout"),
        *("abort", "aborted", "cancelled", "canceled"),
    }
)
"""The service gave up; what came is not the model's answer."""


def is_broken(reason: str | None) -> bool:
    """Whether the service gave up before there was an answer."""
    return (reason or "").lower() in BROKEN


def is_filtered(reason: str | None) -> bool:
    """Whether an answer was withheld."""
    return (reason or "").lower() in FILTERED


def is_cut(reason: str | None) -> bool:
    """Whether an answer may not be whole."""
    return (reason or "").lower() not in WHOLE


def cut_warning(reason: str, setting: str | None = None) -> str:
    """Return what to say of an answer that may not be whole; `setting` is the limit of its length, if there is one."""
    if reason.lower() in TOO_LONG:
        return f"an answer was truncated ({reason})" + (f"; raise {setting}" if setting else "")
    if reason.lower() == FULL:
        return f"an answer was truncated ({reason}); shorten the question"
    return f"an answer may not be whole ({reason})"
