"""Requests and responses of targets, why models stop, and interfaces between stages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from agentv_ci.contracts.attachments import AttachmentType
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue, Verdict
from agentv_ci.contracts.results import (
    Blame,
    Change,
    EvaluatorResult,
    Expense,
    OutputMessage,
    Preference,
    PrintedOutput,
    ToolCall,
    Usage,
)

WHOLE = frozenset(
    {
        *(
            "stop",
            "end_turn",
            "stop_sequence",
            "completed",
            "complete",
            "eos",
            "eos_token",
            "end_of_text",
        ),
        *("tool_calls", "function_call", "tool_use", "tool_call", "finish_reason_unspecified", ""),
    }
)
"""Reasons of a model itself; all others say that an answer may not be whole."""
TOO_LONG = frozenset({"length", "max_tokens", "max_output_tokens", "max_length", "model_length"})
"""The limit of an answer's length was reached."""
FULL = "model_context_window_exceeded"
FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii"}
)
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
    """Return what to say of an answer that may not be whole.

    `setting` is the limit of its length, if there is one.
    """
    if reason.lower() in TOO_LONG:
        return f"an answer was truncated ({reason})" + (f"; raise {setting}" if setting else "")
    if reason.lower() == FULL:
        return f"an answer was truncated ({reason}); shorten the question"
    return f"an answer may not be whole ({reason})"


if TYPE_CHECKING:
    from asyncio import Event

Log = Callable[[str], None]
"""Print a line with `--verbose`."""

Warn = Callable[[str], None]
"""Print a warning once."""
OF_CASE = "; case "
"""Separates a warning from the case that it is about."""


def about_case(sentence: str, case_id: str) -> str:
    """Return a warning with its case.

    Warnings that differ only in it are shown for the first few cases.
    """
    return f"{sentence}{OF_CASE}'{case_id}'"


def kind_of_status(status: int) -> ErrorKind:
    """Return the kind of error of an HTTP status from 300 on."""
    if status in (401, 402, 403):
        return "auth"
    if status == 429:
        return "rate_limit"
    return "server" if status >= 500 or status == 408 else "request"


class Attachment(Struct, frozen=True):
    """An image or a document of a message: a file of the plan, or a URL."""

    type: AttachmentType
    media_type: str | None
    path: str | None
    sha256: str | None
    url: str | None = None
    size_bytes: int | None = None

    @property
    def shown(self) -> JsonObject:
        """What stands for it where its content is too long."""
        return {
            "type": self.type,
            "path": self.path,
            "media_type": self.media_type,
            "bytes": self.size_bytes,
        }


class ChatMessage(Struct, frozen=True):
    """A message in the form of model APIs."""

    role: Literal["system", "user", "assistant"]
    content: str
    """The text, with the names of images and documents in their places."""
    parts: tuple[str | Attachment, ...] = ()
    """Texts, images and documents in order; empty without images and documents."""


class InputFile(Struct, frozen=True):
    """A file of the question."""

    path: Path
    """Absolute path of a file with the content in the plan."""
    is_guideline: bool
    sha256: str
    """Of that content."""


NO_SYSTEM_PROMPT = "none"
"""The system prompt of questions without one besides their messages."""


class Request(Struct, frozen=True):
    """One question to one target."""

    case_id: str
    prompt: str
    """The whole conversation as one text, without guidelines."""
    guidelines: str
    chat: tuple[ChatMessage, ...]
    """The whole conversation, with guidelines in the system message."""
    timeout_s: float
    cwd: Path
    """The eval file's folder."""
    files: tuple[InputFile, ...] = ()
    task: str | None = None
    """The prompt for agents, with paths instead of file contents; None: same as `prompt`."""
    attempt: int = 0
    """0-based."""
    seed: int | None = None
    system_prompt: str | None = None
    """For model APIs: a text, or `none`; None: the target's."""
    temperature: float | None = None
    """Overrides the target's."""
    max_output_tokens: int | None = None
    """Overrides the target's."""
    sample: str | None = None
    """A valid reply, for mocks without their own."""
    sample_calls: tuple[ToolCall, ...] | None = None
    """Tool calls before that reply; None: they are not reported."""
    workspace: str | None = None
    """The digest of the workspace in which it is answered."""
    place: Place | None = None
    """That workspace, while it is answered."""
    attached: Mapping[str, str] | None = None
    """SHA-256 → Base64 of images and documents; None: bodies have what stands for them."""


def as_data(request: Request) -> dict[str, Any]:
    """Return a question as data.

    Images and documents are in it by their digests; only messages with them have parts.
    """
    data: dict[str, Any] = to_builtins(replace(request, place=None), enc_hook=str)
    del data["attached"], data["place"]
    if data["workspace"] is None:
        del data["workspace"]
    for message in data["chat"]:
        if not message["parts"]:
            del message["parts"]
    return data


class ProcessResult(Struct, frozen=True):
    """The result of a command that ended by itself."""

    status: int
    """Exit code; −N after signal N."""
    stdout: str
    stderr: str


class Listener(Protocol):
    """Gets the output of a command as it comes, and knows when the command has done its work."""

    @property
    def done(self) -> Event:
        """Set when its output is complete: if it does not end soon, it is ended, with status 0."""

    def __call__(self, output: int, data: bytes, /) -> None:
        """Get a part of its output: the file descriptor, 1 or 2, and bytes."""


class Place(Protocol):
    """The workspace of one trial, while its agent works."""

    @property
    def folder(self) -> Path:
        """The agent's working directory."""

    @property
    def scratch(self) -> Path:
        """A folder for the files of the question, which the agent may read and write."""

    async def run(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str],
        timeout_s: float,
        stdin: bytes = b"",
        listener: Listener | None = None,
        reads: Sequence[Path] = (),
    ) -> ProcessResult:
        """Run a command in it with this environment beside PATH, HOME and TMPDIR.

        Raises ProcessFailed.

        `reads` are files of the agent's own code.
        """
        ...


class Response(Struct, frozen=True):
    """A target's answer."""

    answer: str
    """Content of the last assistant message with content, else empty."""
    messages: tuple[OutputMessage, ...]
    has_trace: bool
    """Whether the provider reports tool calls."""
    model: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    """Why the model stopped, as reported by the API."""
    requests: int = 1
    """HTTP requests, including retries."""
    duration_ms: int | None = None
    """Reported duration, or that of the answered request; a share of it for batches."""
    cost_usd: float | None = None
    """Reported cost, or the price of its tokens; None if unknown."""
    request: Mapping[str, JsonValue] = field(default_factory=dict)
    """The request without secrets, for the results."""
    masked: bool = False
    """Whether a secret was redacted."""
    cached: bool = False
    """Whether it comes from the cache or a recording."""
    expenses: tuple[Expense, ...] = ()
    """Of requests for it that failed and still used tokens or money; `usage` and `cost_usd` do not
    count them.
    """
    changes: tuple[Change, ...] | None = None
    """What the agent has changed in its workspace; None without one."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls, in order."""
        return tuple(chain.from_iterable(message.tool_calls for message in self.messages))


class ProviderError(Exception):
    """A target did not return a usable answer."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        unreachable: bool = False,
        retry_after_s: float | None = None,
        requests: int = 1,
        printed: PrintedOutput | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.blame: Blame | None = None
        """Who is to blame; None: the kind and the provider decide."""
        self.detail = detail
        self.status = status
        self.retryable = retryable
        """Whether a retry may succeed."""
        self.unreachable = unreachable
        """Whether there was no connection at all."""
        self.retry_after_s = retry_after_s
        """The delay that the server requests."""
        self.requests = requests
        """HTTP requests, including retries."""
        self.printed = printed
        """Output of a command that failed."""
        self.model: str | None = None
        """The model that was asked, as reported by the provider."""
        self.usage: Usage | None = None
        """Tokens of the failed request; None if the provider does not report them."""
        self.cost_usd: float | None = None
        """Reported cost of the failed request; None if unknown."""
        self.earlier: tuple[Expense, ...] = ()
        """Of the tries before the last one."""
        self.masked = False
        """Whether a secret was redacted."""

    def price(self, expenses: tuple[Expense, ...]) -> None:
        """Replace the expenses by the same ones with their cost."""
        self.earlier, self.usage, self.cost_usd = expenses, None, None

    @property
    def expenses(self) -> tuple[Expense, ...]:
        """What all tries are known to have used."""
        usage = self.usage or Usage()
        if usage == Usage() and self.cost_usd is None:
            return self.earlier
        own = Expense(error_kind=self.kind, model=self.model, usage=usage, cost_usd=self.cost_usd)
        return (*self.earlier, own)


class JudgeQuestion(Struct, frozen=True):
    """A question to a judge."""

    system: str
    user: str
    sample: str
    """A valid reply, for mocks."""
    temperature: float | None = None
    max_output_tokens: int | None = None


class Ask(Protocol):
    """Ask a judge, with the same retries and limits as any request."""

    async def __call__(self, target: str, question: JudgeQuestion) -> Response:
        """Return the answer of the plan's target `target`; raises ProviderError."""
        ...


class Score(Struct, frozen=True):
    """The result of an evaluator; with `error`, `unmeasured` or `skipped`, `score` is meaningless."""

    score: float = 0.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    error: str | None = None
    unmeasured: str | None = None
    """What it measures, if the target does not report it."""
    skipped: str | None = None
    """Why it does not score this answer."""
    misses_required: bool = False
    """Whether a required part is missing, so that the case fails."""
    weighs_nothing: bool = False
    """Whether all parts have weight 0, so that it fails even if negated."""
    judge: str | None = None
    """The model that judged, or else its target."""
    judge_prompt: str | None = None
    raw_response: str | None = None
    broken_contract: str | None = None
    """How the judge's reply contradicts itself or leaves its scale, although its first verdict
    counts.
    """
    stderr: str | None = None
    """Standard error of a script."""
    members: tuple[EvaluatorResult, ...] = ()
    """Results of the members of a composite."""
    preferences: tuple[Preference, ...] = ()
    """Comparisons with the answers of other arms."""


class Grade(Struct, frozen=True):
    """The score and verdict of one answer."""

    score: float
    verdict: Verdict
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    reasoning: str
    results: tuple[EvaluatorResult, ...]
    error: str | None = None
    """The reason for verdict `error`."""
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    judge_expenses: tuple[Expense, ...] = ()
    """What judges have used, if the price of some of them is unknown, but not of all."""
    """None if the price of a judge is unknown."""
    masked: bool = False
    """Whether a secret was redacted in a judge's reply."""


class Environment(Struct, frozen=True):
    """The outside world as arguments of a run: variables, time, randomness and waiting."""

    variables: Mapping[str, str]
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    uniform: Callable[[float, float], float]
