"""What `prove` calls the wrong answers that it tries."""

from __future__ import annotations

from typing import Literal

NullAgent = Literal[
    "empty",
    "echo-prompt",
    "echo-last-message",
    "refusal",
    "dont-know",
    "other-reference",
    "empty-object",
    "empty-array",
]
"""Agents that do nothing for the question."""
Operator = Literal[
    "number",
    "entity",
    "negation",
    "sentence-order",
    "first-sentence",
    "json-field-removed",
    "json-field-retyped",
    "json-text",
    "tool-dropped",
    "tool-swapped",
    "tool-arguments",
]
"""Ways to damage a reference answer."""
NullAgentsGate = Literal["forbid", "report"]
WrongAnswer = Literal[NullAgent, Operator]
