"""A result row: one trial of one case, one line of the JSONL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import (
    ErrorKind,
    EvaluatorVerdict,
    Items,
    JsonObject,
    JsonValue,
    Name,
    Recorded,
    Require,
    Share,
    Verdict,
)

RESULT_VERSION = 1

Dollars = Annotated[float, Field(ge=0)]

BORDERLINE = 0.6
"""Score from which an answer that did not pass is borderline."""
PRECISION = 12
"""Digits to which scores are compared, so that 0.1 + 0.7 is 0.8."""


class Usage(Recorded):
    """Tokens; null where the provider does not say."""

    input_tokens: int | None = Field(None, description="Tokens read, cached ones included.")
    output_tokens: int | None = Field(None, description="Tokens written, reasoning included.")
    total_tokens: int | None = Field(None, description="All tokens.")
    cached_tokens: int | None = Field(None, description="Tokens read from the provider's cache.")

    def plus(self, other: Usage | None) -> Usage:
        """Return the sum of both; null where neither provider says."""
        if other is None:
            return self
        return Usage(
            input_tokens=sum_of_known(self.input_tokens, other.input_tokens),
            output_tokens=sum_of_known(self.output_tokens, other.output_tokens),
            total_tokens=sum_of_known(self.total_tokens, other.total_tokens),
            cached_tokens=sum_of_known(self.cached_tokens, other.cached_tokens),
        )


def sum_of_known(one: int | None, two: int | None) -> int | None:
    """Return the sum of what is known; None when nothing is."""
    return one if two is None else (one or 0) + two


class EvaluatorResult(Recorded):
    """What one evaluator found."""

    name: Name = Field(description="The evaluator's name.")
    type: str = Field(description="The evaluator's type.")
    status: Literal["ok", "error", "skipped"] = Field(
        description="`error`: it could not score; `skipped`: the target does not give what it measures. "
        "Then its score is 0 and counts nowhere."
    )
    score: Share = Field(description="From 0 to 1.")
    weight: float = Field(description="Its share in the case's score.")
    required: bool = Field(description="Whether failing it fails the case.")
    verdict: EvaluatorVerdict = Field(
        description="The score against its pass line; `fail` too when a required part is missing."
    )
    hits: Items[str] = Field(description="What was right.")
    misses: Items[str] = Field(description="What was wrong.")
    reasoning: str = Field(description="Why.")
    raw_response: str | None = Field(None, description="What the judge replied, or what a script printed that broke.")
    stderr: str | None = Field(None, description="What its script wrote there; a long text without its middle.")
    evaluator_results: Items[EvaluatorResult] | None = Field(None, description="What its members found.")


class TraceSummary(Recorded):
    """The tool calls of an answer, counted."""

    event_count: int = Field(description="Number of calls.")
    tool_names: Items[str] = Field(description="Tools, sorted.")
    tool_calls_by_name: dict[str, int] = Field(description="Calls per tool.")
    error_count: int = Field(description="Calls that failed.")

    @classmethod
    def of(cls, tools: Iterable[str]) -> TraceSummary:
        """Count calls; `tools` names the tool of each."""
        counted = Counter(tools)
        return cls(
            event_count=counted.total(),
            tool_names=tuple(sorted(counted)),
            tool_calls_by_name=dict(sorted(counted.items())),
            error_count=0,
        )


class ToolCall(Recorded):
    """A tool call of an answer."""

    tool: str = Field(description="The tool's name.")
    input: JsonValue = Field(None, description="Its arguments.")
    output: JsonValue = Field(None, description="What it returned.")


class OutputMessage(Recorded):
    """A turn of an answer."""

    role: str = Field(description="Who speaks.")
    content: JsonValue = Field(None, description="What is said.")
    tool_calls: Items[ToolCall] = Field((), description="Tools called in this turn.")


class InputMessageRecord(Recorded):
    """A turn of the question."""

    role: str = Field(description="Who speaks.")
    name: str | None = Field(None, description="A name for the speaker.")
    content: str = Field(description="What is said; files are named, not shown.")


class PrintedOutput(Recorded):
    """What a command printed before it failed; long texts without their middle."""

    stdout: str = Field(description="Its standard output.")
    stderr: str = Field(description="Its standard error.")


class RowSource(Recorded):
    """Where the case stands."""

    path: str = Field(description="The eval file, relative to the repository.")
    line: int = Field(description="First line of the case.")


OutcomeKey = tuple[str, str, str]
"""Suite, case id and the name of the target that answers."""


class ResultRow(Recorded):
    """One trial of one case."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = Field(RESULT_VERSION, description="Version of this form.")
    timestamp: str = Field(description="When it ended: ISO 8601, UTC.")
    eval_id: Name = Field(description="The case's id.")
    dataset: str = Field(description="The suite's name.")
    conversation_id: str | None = Field(None, description="Groups cases of one conversation.")
    suite: str = Field(description="The eval file, relative to the repository.")
    target: str = Field(description="The target's name.")
    provider: str = Field(description="The target's provider.")
    model: str | None = Field(None, description="The model that answered, as the provider names it.")
    trial: Annotated[int, Field(ge=1)] = Field(description="Which trial, from 1.")
    trials: Annotated[int, Field(ge=1)] = Field(1, description="How many the case has at the most.")
    require: Require = Field("majority", description="How many of them must pass.")
    stop_when: Literal["decided"] | None = Field(
        None, description="Whether its trials end when the rest cannot change the verdict."
    )
    seed: int | None = Field(None, description="The trial's seed.")
    digest: str = Field(description="The case's digest in the plan.")
    input_messages: Items[InputMessageRecord] | None = Field(None, description="The question, as the author wrote it.")
    expected_outcome: str | None = Field(None, description="What a good answer achieves.")
    reference_answer: str | None = Field(None, description="A good answer.")
    status: Literal["ok", "error"] = Field(description="Whether there is a verdict.")
    verdict: Verdict = Field(description="`error` is neither pass nor fail.")
    score: Share = Field(description="From 0 to 1; of an errored row what could be scored, else 0.")
    hits: Items[str] = Field(description="What was right.")
    misses: Items[str] = Field(description="What was wrong.")
    reasoning: str = Field(description="Why, evaluator by evaluator.")
    candidate_answer: str = Field(description="The answer.")
    evaluator_results: Items[EvaluatorResult] = Field(description="What each evaluator found.")
    error: str | None = Field(None, description="Why there is no verdict.")
    error_kind: ErrorKind | None = Field(None, description="What failed.")
    printed: PrintedOutput | None = Field(None, description="What the target's command printed before it failed.")
    finish_reason: str | None = Field(None, description="Why the model stopped, in the API's own word.")
    attempts: Annotated[int, Field(ge=1)] = Field(description="Attempts of the engine.")
    requests: Annotated[int, Field(ge=0)] = Field(description="Tries over the wire, in all attempts.")
    duration_ms: Annotated[int, Field(ge=0)] = Field(description="Time of the last attempt's answer.")
    usage: Usage | None = Field(None, description="Tokens of the answer.")
    cost_usd: Dollars | None = Field(
        None, description="Cost of the answer: as the provider says, else by the price of its tokens."
    )
    cached: bool = Field(False, description="Whether the answer comes from the cache or a recording; then it is free.")
    judge_usage: Usage | None = Field(None, description="Tokens of the judges.")
    judge_cost_usd: Dollars | None = Field(
        None, description="Cost of the judges; absent when the price of one of them is not known."
    )
    request: JsonObject = Field(default_factory=dict, description="What was asked, free of secrets.")
    output_messages: Items[OutputMessage] | None = Field(None, description="The whole answer (--include-trace).")
    trace_summary: TraceSummary | None = Field(None, description="Tool calls, when the provider reports them.")
    source: RowSource = Field(description="The place of the case, for links and annotations.")
    metadata: JsonObject = Field(default_factory=dict, description="The author's own.")
    masked: bool = Field(False, description="Whether a secret stood in the answer and was taken out.")
    # The last field is always written: a row that was torn while it was written lacks it.
    dry_run: bool = Field(False, description="Whether the mock answered in place of the target.")

    @property
    def outcome_key(self) -> OutcomeKey:
        """What tells its case from all other cases of a run."""
        return self.suite, self.eval_id, self.target
