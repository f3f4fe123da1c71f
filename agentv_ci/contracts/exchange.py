"""What goes to an agent and what comes back, and the ways stages call each other through the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from agentv_ci.contracts.base import ErrorKind, JsonValue, Verdict
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, PrintedOutput, ToolCall, Usage

Log = Callable[[str], None]
"""Takes one line for `--verbose`."""

Warn = Callable[[str], None]
"""Takes a sentence that people always see, once however often it is said."""


def kind_of_status(status: int) -> ErrorKind:
    """Return what an HTTP status from 300 on means."""
    if status in (401, 402, 403):
        return "auth"
    if status == 429:
        return "rate_limit"
    return "server" if status >= 500 or status == 408 else "request"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A turn as model APIs know it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that belongs to the question."""

    path: Path
    """Absolute, and holding the text that the plan knows."""
    is_guideline: bool
    sha256: str
    """Of that text."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to one target."""

    case_id: str
    prompt: str
    """The whole conversation as one text, guidelines left out."""
    guidelines: str
    chat: tuple[ChatMessage, ...]
    """The whole conversation turn by turn, guidelines in the system message."""
    timeout_s: float
    cwd: Path
    """The eval file's folder."""
    files: tuple[InputFile, ...] = ()
    task: str | None = None
    """The prompt for agents, which open files themselves: files are named, not shown. None: as `prompt`."""
    attempt: int = 0
    """0-based."""
    seed: int | None = None
    temperature: float | None = None
    """Overrides the target's."""
    max_output_tokens: int | None = None
    """Overrides the target's."""
    sample: str | None = None
    """A reply of the form that is asked for; what a mock gives that has none of its own."""


@dataclass(frozen=True, slots=True)
class Response:
    """A target's answer."""

    answer: str
    """Content of the last assistant message that has content, else empty."""
    messages: tuple[OutputMessage, ...]
    has_trace: bool
    """Whether the provider reports tool calls at all; without it an empty trace means nothing."""
    model: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    """Why the model stopped, in the API's own word."""
    requests: int = 1
    """Tries over the wire."""
    duration_ms: int | None = None
    """What it took: as the provider says, of a batch its share, else the time of the try that was answered."""
    cost_usd: float | None = None
    """What it cost: as the provider says, else by the price of its tokens; None where neither is known."""
    request: Mapping[str, JsonValue] = field(default_factory=dict)
    """What was asked, for the record; free of secrets."""
    masked: bool = False
    """Whether a secret stood in it and was taken out."""
    cached: bool = False
    """Whether it comes from the cache or a recording, and nobody was asked."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls, in order."""
        return tuple(call for message in self.messages for call in message.tool_calls)


class ProviderError(Exception):
    """A target gave no usable answer."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        requests: int = 1,
        printed: PrintedOutput | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.status = status
        self.retryable = retryable
        """Whether the same request may succeed a moment later."""
        self.retry_after_s = retry_after_s
        """The wait the server asks for."""
        self.requests = requests
        """Tries over the wire until it was given up."""
        self.printed = printed
        """What a command printed before it failed."""
        self.masked = False
        """Whether a secret stood in it and was taken out."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """What a judge is asked."""

    system: str
    user: str
    sample: str
    """A reply of the form that is asked for."""
    temperature: float | None = None
    max_output_tokens: int | None = None


class Ask(Protocol):
    """A question to a model, with the same retries and limits as any other; how evaluators reach judges."""

    async def __call__(self, target: str, question: JudgeQuestion) -> Response:
        """Return the answer of the plan's target `target`; raises ProviderError."""
        ...


@dataclass(frozen=True, slots=True)
class Score:
    """What an evaluator found. With `error` or `unmeasured` it could not score, and then `score` means nothing."""

    score: float = 0.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    error: str | None = None
    unmeasured: str | None = None
    """What it measures and the target does not give."""
    misses_required: bool = False
    """Whether a part is missing without which the case fails, whatever the score."""
    weighs_nothing: bool = False
    """Whether all its parts have weight 0: then it fails, negated or not."""
    raw_response: str | None = None
    stderr: str | None = None
    """What a script wrote there."""
    members: tuple[EvaluatorResult, ...] = ()
    """What the members of a combination found."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict over one answer."""

    score: float
    verdict: Verdict
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    reasoning: str
    results: tuple[EvaluatorResult, ...]
    error: str | None = None
    """Why there is no verdict, when `verdict` is `error`."""
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    """None when a judge's price is not known."""
    masked: bool = False
    """Whether a secret stood in a judge's reply and was taken out."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a run may not reach for by itself: the environment, time, chance and waiting."""

    variables: Mapping[str, str]
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    uniform: Callable[[float, float], float]
