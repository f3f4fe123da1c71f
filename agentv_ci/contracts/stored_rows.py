"""Rows as they are stored in JSON lines: what `results.ResultRow` holds, read by msgspec.

It reads a row six times faster than pydantic, and accepts none that pydantic refuses; a test
compares them. Schemas and messages are those of `ResultRow`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.json import Decoder

from agentv_ci.contracts.base import ErrorKind, EvaluatorVerdict, Require, Verdict
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.results import Blame, Choice, EvaluatorResult, ResultRow, Usage, blame_of
from agentv_ci.contracts.workspaces import RELATIVE_PATH, Isolation

Name = Annotated[str, Meta(min_length=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Dollars = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=1)]
Texts = tuple[str, ...]

_read_any = Decoder().decode
_read_object = Decoder(dict[str, Any]).decode


class _Stored(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Fields are those of the model of the same name, with the same defaults."""


class StoredUsage(_Stored, frozen=True):
    """Token counts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


class StoredExpense(_Stored, frozen=True):
    """What one request has used."""

    attempt: Number = 1
    error_kind: ErrorKind | None = None
    model: str | None = None
    usage: StoredUsage = StoredUsage()
    cost_usd: Dollars | None = None
    is_judge: bool = False
    is_earlier: bool = False


class StoredPreference(_Stored, frozen=True):
    """A comparison of two arms."""

    arm: Name
    own_answer: str
    answer: str
    own_first: Choice
    other_first: Choice


class StoredResult(_Stored, frozen=True):
    """The result of one evaluator."""

    name: Name
    type: str
    status: Literal["ok", "error", "skipped"]
    score: Share
    weight: float
    required: bool
    verdict: EvaluatorVerdict
    hits: Texts
    misses: Texts
    reasoning: str
    settings: str | None = None
    judge: str | None = None
    judge_prompt: str | None = None
    raw_response: str | None = None
    broken_contract: str | None = None
    stderr: str | None = None
    evaluator_results: tuple[StoredResult, ...] | None = None
    preferences: tuple[StoredPreference, ...] | None = None
    compared_masked: bool = False

    @property
    def breaks_contract(self) -> bool:
        """Whether the reply of its judge, or of a member's, broke the contract."""
        return self.broken_contract is not None or any(
            result.breaks_contract for result in self.evaluator_results or ()
        )

    @property
    def compares_arms(self) -> bool:
        """Whether it says nothing of the answer alone."""
        return self.type == "pairwise_judge"


class StoredToolCount(_Stored, frozen=True):
    """Calls of one tool."""

    name: str
    count: int


class StoredTraceSummary(_Stored, frozen=True):
    """Counts of tool calls."""

    event_count: int
    tool_names: Texts
    tool_calls_by_name: tuple[StoredToolCount, ...]
    error_count: int


class StoredToolCall(_Stored, frozen=True):
    """A tool call."""

    tool: str
    input: str | None = None
    output: str | None = None

    def __post_init__(self) -> None:
        """Refuse texts that are not JSON."""
        for text in (self.input, self.output):
            if text is not None:
                _read_any(text)


class StoredOutputMessage(_Stored, frozen=True):
    """A message of an answer."""

    role: str
    content: str | None = None
    """Any other content is read by pydantic."""
    tool_calls: tuple[StoredToolCall, ...] = ()


class StoredInputMessage(_Stored, frozen=True):
    """A message of the question."""

    role: str
    content: str
    name: str | None = None


class StoredPrintedOutput(_Stored, frozen=True):
    """The output of a command."""

    stdout: str
    stderr: str


class StoredChange(_Stored, frozen=True):
    """A file of a workspace that changed."""

    path: Annotated[str, Meta(pattern=RELATIVE_PATH)]
    kind: Literal["added", "modified", "deleted"]
    mode: int = 0
    base64: str | None = None
    link: str | None = None


class StoredWorkspace(_Stored, frozen=True):
    """What an agent left behind."""

    isolation: Isolation
    network: Literal["on", "off"]
    changed: Texts = ()
    withheld: Texts = ()
    diff: str | None = None
    changes: tuple[StoredChange, ...] | None = None
    kept: str | None = None


class StoredSource(_Stored, frozen=True):
    """Position of the case."""

    path: str
    line: int


class StoredRow(_Stored, frozen=True, kw_only=True):
    """One trial of one case."""

    schema_version: Literal[1] = 1
    timestamp: str
    eval_id: Name
    dataset: str
    conversation_id: str | None = None
    suite: str
    target: str
    provider: str
    model: str | None = None
    trial: Number
    trials: Number = 1
    require: Require = "majority"
    stop_when: Literal["decided"] | None = None
    threshold: Share | None = None
    seed: int | None = None
    digest: str
    input_messages: tuple[StoredInputMessage, ...] | None = None
    expected_outcome: str | None = None
    reference_answer: str | None = None
    status: Literal["ok", "error", "skipped"]
    verdict: Verdict
    score: Share | None
    hits: Texts
    misses: Texts
    reasoning: str
    candidate_answer: str
    evaluator_results: tuple[StoredResult, ...]
    error: str | None = None
    error_kind: ErrorKind | None = None
    blame: Blame | None = None
    skip: str | None = None
    printed: StoredPrintedOutput | None = None
    finish_reason: str | None = None
    attempts: Count
    requests: Count
    duration_ms: Count
    usage: StoredUsage = StoredUsage()
    cost_usd: Dollars | None = None
    cached: bool = False
    judge_usage: StoredUsage | None = None
    judge_cost_usd: Dollars | None = None
    expenses: tuple[StoredExpense, ...] | None = None
    request: str = "{}"
    output_messages: tuple[StoredOutputMessage, ...] | None = None
    trace_summary: StoredTraceSummary | None = None
    source: StoredSource
    tags: Texts = ()
    metadata: str = "{}"
    workspace: StoredWorkspace | None = None
    arm: str | None = None
    worker: str | None = None
    settings_digest: str | None = None
    masked: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        """Refuse texts that are no objects."""
        for text in (self.request, self.metadata):
            if text != "{}":
                _read_object(text)

    @property
    def is_crash(self) -> bool:
        """Whether it has an error of the agent, so that the trial counts as failed with score 0."""
        return (
            self.verdict == "error"
            and (self.blame or blame_of(self.error_kind, self.provider)) == "agent"
        )

    @property
    def case_key(self) -> CaseKey:
        """The key of its case."""
        return self.suite, self.eval_id, self.arm or self.target


AnyRow = StoredRow | ResultRow
"""A row, however it was read."""
AnyResult = StoredResult | EvaluatorResult
AnyUsage = StoredUsage | Usage
