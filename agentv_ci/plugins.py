"""What a package implements to add evaluators, providers and reporters.

See docs/plugins.md for a worked example.

A plugin is a class without arguments, or an object, that a package names in an entry point of one
of the groups `agentv_ci.evaluators`, `agentv_ci.providers` and `agentv_ci.reporters`. The name of
the entry point is that of the plugin, with a prefix: `acme/politeness`. `settings` is a pydantic
model: it checks what authors write, and its JSON Schema completes it in editors. One object serves
a whole run, and may be called from several tasks and threads at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, TypeVar

from pydantic import BaseModel

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import ChatMessage, ProviderError
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import OutputMessage, ResultRow, ToolCall, Usage

__all__ = [
    "Answer",
    "AnsweredCase",
    "ChatMessage",
    "Evaluator",
    "OutputMessage",
    "Provider",
    "ProviderError",
    "Question",
    "Reporter",
    "ResultRow",
    "RunReport",
    "Score",
    "ToolCall",
    "Usage",
]

Settings = TypeVar("Settings", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCase:
    """A case with the answer of its target."""

    case_id: str
    candidate_answer: str
    """The answer: the last message of the agent that has content."""
    question: str
    """The whole conversation as one text."""
    expected_outcome: str
    reference_answer: str
    """The last expected message of the assistant, as text."""
    input_messages: Sequence[OutputMessage]
    """The question, with the texts of its files."""
    expected_messages: Sequence[OutputMessage]
    output_messages: Sequence[OutputMessage]
    """The messages and tool calls of the answer."""
    has_trace: bool
    """Whether the target reports tool calls."""
    usage: Usage | None
    cost_usd: float | None
    duration_ms: int | None
    seed: int | None
    metadata: Mapping[str, JsonValue]
    """The author's data: a copy."""


@dataclass(frozen=True, slots=True)
class Score:
    """How good an answer is."""

    score: float
    """From 0 to 1."""
    hits: Sequence[str] = ()
    """Correct parts of the answer."""
    misses: Sequence[str] = ()
    """Wrong or missing parts of the answer."""
    reasoning: str = ""


class Evaluator(Protocol[Settings]):
    """Scores answers: `type: acme/politeness`."""

    @property
    def settings(self) -> type[Settings]:
        """The model of the settings."""
        ...

    def score(self, answer: AnsweredCase, settings: Settings, /) -> Score | Awaitable[Score]:
        """Return the score of an answer.

        A plain function runs in a thread, an async one in the event loop.

        An exception is an error of this evaluator, with its message; others keep their scores. The
        time limit is that of the case.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to a target."""

    case_id: str
    prompt: str
    """The whole conversation as one text, without guidelines."""
    messages: Sequence[ChatMessage]
    """The whole conversation, with guidelines in the system message."""
    guidelines: str
    files: Sequence[Path]
    """Files of the question, with absolute paths."""
    cwd: Path
    """The folder of the eval file."""
    timeout_s: float
    attempt: int
    """From 0."""
    seed: int | None
    system_prompt: str | None
    temperature: float | None
    max_output_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question."""

    text: str
    messages: Sequence[OutputMessage] = ()
    """All messages with their tool calls; default: one message with the text, without a trace."""
    usage: Usage | None = None
    cost_usd: float | None = None
    """Default: the price of the tokens, if `model` has one."""
    model: str | None = None
    finish_reason: str | None = None
    request: Mapping[str, JsonValue] = field(default_factory=dict)
    """What was sent, for the results."""


class Provider(Protocol[Settings]):
    """Answers questions: `provider: acme/bot`.

    Retries, limits, redaction, the cache and budgets are those of every target.
    """

    @property
    def settings(self) -> type[Settings]:
        """The model of the settings.

        A field with a `SecretStr` must be an environment reference, and is masked.
        """
        ...

    async def ask(self, question: Question, settings: Settings, /) -> Answer:
        """Return the answer; environment references in `settings` are replaced by their values.

        Raise `ProviderError(kind, detail, retryable=…, retry_after_s=…)` when there is no answer;
        `kind` is one of timeout, rate_limit, auth, network, server, request, malformed and process.
        Set `usage`, `cost_usd` and `model` of the error if the question has used something. Any
        other exception counts as `process`. The call is cancelled when the time of the question is
        over.
        """
        ...


class Reporter(Protocol):
    """Writes a report of a finished run: `--report acme/csv=FILE`."""

    def write(self, report: RunReport, rows: Iterable[ResultRow], out: IO[bytes], /) -> None:
        """Write a report; `rows` are read from the results while they are taken, once.

        It may be called again for the same run: when another report cannot be written, the verdict
        changes. An exception fails the run like results that cannot be written; other reports are
        still written.
        """
        ...
