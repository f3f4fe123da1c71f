"""A result of another tool, before it is a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentv_ci.contracts.base import JsonObject

AdoptKind = Literal["promptfoo", "inspect", "junit", "openai-evals", "pydantic-evals", "jsonl"]
"""The tool whose results are adopted; `jsonl` is any table of lines, with a map of its columns."""


@dataclass(frozen=True, slots=True)
class AdoptedCheck:
    """The result of one check of an answer."""

    name: str
    type: str
    score: float
    """From 0 to 1."""
    passed: bool
    reasoning: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class AdoptedResult:
    """One answer that another tool has judged."""

    id: str
    passed: bool | None
    """None if it could not be judged, or was skipped."""
    score: float | None = None
    """From 0 to 1; by default 1 if it passed, else 0."""
    answer: str = ""
    question: tuple[tuple[str, str], ...] = ()
    """Role and text of each message."""
    expected: str | None = None
    outcome: str | None = None
    """What a good answer achieves."""
    suite: str | None = None
    """The file of the case, relative to the repository; None for the results themselves."""
    line: int = 1
    target: str = "default"
    model: str | None = None
    checks: tuple[AdoptedCheck, ...] = ()
    reasoning: str = ""
    error: str | None = None
    skip: str | None = None
    duration_ms: int = 0
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tags: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    definition: Mapping[str, object] = field(default_factory=dict)
    """What else defines the case, besides its question and expected answer: part of its digest."""
