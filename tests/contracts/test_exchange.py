"""Finish reasons: which answers are whole, broken off, withheld, or may lack something."""

from __future__ import annotations

import pytest

from agentv_ci.contracts.exchange import cut_warning, is_broken, is_cut, is_filtered

WHOLE = [
    "stop",
    "STOP",
    "end_turn",
    "stop_sequence",
    "completed",
    "tool_calls",
    "tool_use",
    "function_call",
    "eos",
    None,
]
TRUNCATED = ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"]
UNFINISHED = ["pause_turn", "incomplete", "max_messages", "steered", "refusal", "something_new"]
FILTERED = ["content_filter", "SAFETY", "recitation"]
BROKEN = ["error", "Error", "abort", "cancelled", "insufficient_system_resource"]


@pytest.mark.parametrize("reason", [*WHOLE, *TRUNCATED, *UNFINISHED, *FILTERED, *BROKEN])
def test_every_reason_has_one_meaning(reason: str | None) -> None:
    assert is_cut(reason) is (reason not in WHOLE)
    assert is_broken(reason) is (reason in BROKEN)
    assert is_filtered(reason) is (reason in FILTERED)


@pytest.mark.parametrize("reason", [*TRUNCATED, *UNFINISHED])
def test_a_warning_says_what_to_do_where_something_can_be_done(reason: str) -> None:
    said = cut_warning(reason, "max_output_tokens")
    assert reason in said
    assert ("truncated" in said) is (reason in TRUNCATED)
    assert said.endswith(("max_output_tokens", "question", f"({reason})"))
    assert "raise" not in cut_warning(reason)
