"""The result row: one trial of one case.

An agent's error is a failed trial with score 0, for everything that counts trials: an agent that
crashes must not look better than one that answers wrongly. An error of the infrastructure says
nothing of the agent: its trial is missing.

In JSON lines, free data is JSON text and lists, so that a column has one type in every run: readers
such as DuckDB infer the type of a map from its keys. In memory, in YAML and for scripts it stays as
it is.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, SerializationInfo, ValidationInfo

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
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.workspaces import Isolation, RelativePath

Blame = Literal["agent", "infrastructure"]

MODEL_APIS = frozenset(
    (
        *("azure-openai", "azure"),
        *("openai", "openai-compatible", "ollama", "vllm", "openrouter"),
        *("anthropic", "claude-api"),
        *("gemini", "google", "google-gemini"),
    )
)
"""Providers that ask the API of a model; all others run an agent: a command, a CLI, an editor, a
plugin.
"""


def blame_of(kind: ErrorKind | None, provider: str) -> Blame:
    """Return who is to blame for an error of this kind, from the provider of a row."""
    match kind:
        case "process":
            return "agent"
        case "timeout" | "malformed":
            return "infrastructure" if provider in MODEL_APIS else "agent"
        case _:
            return "infrastructure"


AS_TEXT = {"free_data": "text"}
"""The context of pydantic in which JSON lines are written and read."""


class ToolCount(Recorded):
    """Calls of one tool."""

    name: str = Field(description="Name of the tool.")
    count: int = Field(description="Number of calls.")


COUNT = {"name", "count"}


def _text(value: JsonValue, info: SerializationInfo) -> JsonValue:
    if value is None or info.context != AS_TEXT:
        return value
    return "{}" if value == {} else _ENCODER.encode(value)


def _data(written: object, info: ValidationInfo) -> object:
    if info.context != AS_TEXT or not isinstance(written, str):
        return written
    if written == "{}":
        return {}
    try:
        return _STRICT.decode(written)
    except ValueError:
        return written


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Made once: `json.dumps` and `json.loads` would make one for each text.
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_STRICT = json.JSONDecoder(parse_constant=_refuse)


def _counts(counts: Mapping[str, int], info: SerializationInfo) -> list[ToolCount] | dict[str, int]:
    if info.context != AS_TEXT:
        return dict(counts)
    return [ToolCount(name=name, count=count) for name, count in counts.items()]


def _by_name(written: object) -> object:
    if isinstance(written, list) and all(
        isinstance(each, dict) and each.keys() == COUNT and isinstance(each["name"], str)
        for each in written
    ):
        return {each["name"]: each["count"] for each in written}
    return written


class InLines(NamedTuple):
    """Annotates free data with the type that JSON lines have for it."""

    kind: Any
    data: type = object
    """What a text must hold."""


FreeValue = Annotated[
    JsonValue,
    BeforeValidator(_data),
    PlainSerializer(_text, JsonValue, "json"),
    InLines(str | None),
]
"""Any data, in JSON lines as JSON text."""
ObjectText = Annotated[str, Field(pattern=r"^\{")]
FreeObject = Annotated[
    JsonObject,
    BeforeValidator(_data),
    PlainSerializer(_text, ObjectText | JsonObject, "json"),
    InLines(str, dict),
]
"""An object, in JSON lines as JSON text."""
CountsByName = Annotated[
    dict[str, int],
    BeforeValidator(_by_name),
    PlainSerializer(_counts, list[ToolCount] | dict[str, int], "json"),
    InLines(Items[ToolCount]),
]
"""Name → count, in JSON lines as a list."""


N = TypeVar("N", int, float)

RESULT_VERSION = 1

Dollars = Annotated[float, Field(ge=0)]

BORDERLINE = 0.6
"""Minimum score of a borderline answer."""
PRECISION = 12
"""Digits for comparing scores, so that 0.1 + 0.7 is 0.8."""


def is_none(value: object) -> bool:
    """Whether a field has no value."""
    return value is None


def is_zero(value: object) -> bool:
    """Whether there is nothing to count."""
    return value == 0


def is_false(value: object) -> bool:
    """Whether a field says nothing."""
    return value is False


class Usage(Recorded):
    """Token counts; null if the provider does not report them."""

    input_tokens: int | None = Field(None, description="Input tokens, including cached ones.")
    output_tokens: int | None = Field(None, description="Output tokens, including reasoning.")
    total_tokens: int | None = Field(None, description="All tokens.")
    cached_tokens: int | None = Field(None, description="Input tokens from the provider's cache.")
    cache_write_tokens: int | None = Field(
        None,
        exclude_if=is_none,
        description="Input tokens that were written to the provider's cache.",
    )
    cache_write_1h_tokens: int | None = Field(
        None, exclude_if=is_none, description="Of these, tokens that are kept for an hour."
    )

    def plus(self, other: Self | None) -> Self:
        """Return the sum of both; null where both are unknown."""
        if other is None:
            return self
        return type(self)(
            input_tokens=sum_of_known(self.input_tokens, other.input_tokens),
            output_tokens=sum_of_known(self.output_tokens, other.output_tokens),
            total_tokens=sum_of_known(self.total_tokens, other.total_tokens),
            cached_tokens=sum_of_known(self.cached_tokens, other.cached_tokens),
            cache_write_tokens=sum_of_known(self.cache_write_tokens, other.cache_write_tokens),
            cache_write_1h_tokens=sum_of_known(
                self.cache_write_1h_tokens, other.cache_write_1h_tokens
            ),
        )


class Expense(Recorded):
    """What one request has used: one that failed, or the one that was answered after it."""

    attempt: Annotated[int, Field(ge=1)] = Field(1, description="Number of the attempt, from 1.")
    error_kind: ErrorKind | None = Field(None, description="Why it failed; null for the answer.")
    model: str | None = Field(None, description="Model, as reported by the provider.")
    usage: Usage = Field(default_factory=Usage, description="Its tokens.")
    cost_usd: Dollars | None = Field(None, description="Its cost; null if it is unknown.")
    is_judge: bool = Field(False, description="Whether judges used it, not the target.")
    is_earlier: bool = Field(
        False, description="Whether it was in an earlier run, which `--resume` continued."
    )


def total_usage(expenses: Iterable[Expense]) -> Usage:
    """Return the known tokens of expenses together."""
    total = Usage()
    for expense in expenses:
        total = total.plus(expense.usage)
    return total


def total_cost(expenses: Iterable[Expense]) -> float | None:
    """Return the known cost of expenses together; None if none is known."""
    known = [expense.cost_usd for expense in expenses if expense.cost_usd is not None]
    return round(math.fsum(known), PRECISION) if known else None


def sum_of_known(one: N | None, two: N | None) -> N | None:
    """Return the sum of the known numbers; None if both are unknown."""
    return one if two is None else (one or 0) + two


Choice = Literal["first", "second", "tie"]
"""Which of two answers is better, by the order in which a judge sees them."""
Outcome = Literal["win", "tie", "loss"]


class Preference(Recorded):
    """Which of the answers of two arms to the same trial a judge prefers, in both orders."""

    arm: Name = Field(description="The other arm.")
    own_answer: str = Field(description="SHA-256 of the answer of this row.")
    answer: str = Field(description="SHA-256 of that of the other arm.")
    own_first: Choice = Field(description="The better answer when that of this row is shown first.")
    other_first: Choice = Field(
        description="The better answer when that of the other arm is shown first."
    )

    @property
    def outcome(self) -> Outcome:
        """What the answer of this row achieves.

        It is better only if it is preferred in both orders.
        """
        match self.own_first, self.other_first:
            case "first", "second":
                return "win"
            case "second", "first":
                return "loss"
            case _:
                return "tie"

    @property
    def is_contradiction(self) -> bool:
        """Whether the order decides: the answer at the same place is better both times."""
        return self.own_first == self.other_first != "tie"


class EvaluatorResult(Recorded):
    """The result of one evaluator."""

    name: Name = Field(description="Name of the evaluator.")
    type: str = Field(description="Type of the evaluator.")
    status: Literal["ok", "error", "skipped"] = Field(
        description="`error`: it could not score; `skipped`: the target does not report what it "
        "measures, or the row of another arm has the result. In both cases the score is 0 and "
        "ignored."
    )
    score: Share = Field(description="From 0 to 1.")
    weight: float = Field(description="Weight in the score of the case.")
    required: bool = Field(description="Whether failing it fails the case.")
    verdict: EvaluatorVerdict = Field(
        description="Verdict by its minimum score; `fail` if a required part is missing."
    )
    hits: Items[str] = Field(description="Correct parts of the answer.")
    misses: Items[str] = Field(description="Wrong or missing parts of the answer.")
    reasoning: str = Field(description="Explanation of the score.")
    settings: str | None = Field(
        None, description="Its other settings, as JSON; long ones are shortened."
    )
    judge: str | None = Field(
        None,
        exclude_if=is_none,
        description="Model that judged, as reported by its provider, or else its target.",
    )
    judge_prompt: str | None = Field(
        None, description="Question to the judge, shortened (not with --no-trace)."
    )
    raw_response: str | None = Field(
        None, description="Reply of the judge, or output of a script that failed."
    )
    broken_contract: str | None = Field(
        None,
        exclude_if=is_none,
        description="How the judge's reply contradicts itself or leaves its scale; its first "
        "verdict counts, clamped. Absent otherwise.",
    )
    stderr: str | None = Field(
        None, description="Standard error of its script, shortened in the middle."
    )
    evaluator_results: Items["EvaluatorResult"] | None = Field(
        None, description="Results of its members."
    )
    preferences: Items[Preference] | None = Field(
        None,
        exclude_if=is_none,
        description="Of a `pairwise_judge`: the comparisons with arms that answered earlier.",
    )

    compared_masked: bool = Field(
        False,
        exclude_if=is_false,
        description="Whether it compared an answer in which a secret was masked; absent otherwise.",
    )

    @property
    def breaks_contract(self) -> bool:
        """Whether the reply of its judge, or of a member's, broke the contract."""
        return self.broken_contract is not None or any(
            result.breaks_contract for result in self.evaluator_results or ()
        )

    @property
    def is_unjudged(self) -> bool:
        """Whether a comparison with another arm failed."""
        return self.compares_arms and self.status == "error"

    @property
    def compares_arms(self) -> bool:
        """Whether it says nothing of the answer alone."""
        return self.type == "pairwise_judge"


class TraceSummary(Recorded):
    """Counts of the tool calls of an answer."""

    event_count: int = Field(description="Number of calls.")
    tool_names: Items[str] = Field(description="Names of the tools, sorted.")
    tool_calls_by_name: CountsByName = Field(
        description="Calls per tool; earlier versions: name → count."
    )
    error_count: int = Field(description="Calls that failed.")

    @classmethod
    def of(cls, tools: Iterable[str]) -> Self:
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

    tool: str = Field(description="Name of the tool.")
    input: FreeValue = Field(None, description="Arguments of the call, as JSON text.")
    output: FreeValue = Field(None, description="Result of the call, as JSON text.")


class OutputMessage(Recorded):
    """A message of an answer."""

    role: str = Field(description="Role of the speaker.")
    content: JsonValue = Field(None, description="Content of the message.")
    tool_calls: Items[ToolCall] = Field((), description="Tool calls in this message.")


class InputMessageRecord(Recorded):
    """A message of the question."""

    role: str = Field(description="Role of the speaker.")
    name: str | None = Field(None, description="Name of the speaker.")
    content: str = Field(description="Content, with paths instead of file contents.")


class PrintedOutput(Recorded):
    """The output of a command that failed, shortened in the middle."""

    stdout: str = Field(description="Standard output.")
    stderr: str = Field(description="Standard error.")


class OfCase(Recorded):
    """Figures of a case."""

    suite: str = Field(description="The eval file.")
    id: str = Field(description="The case's id.")
    target: str = Field(description="Name of the target; in a comparison, of the newer side.")

    @property
    def key(self) -> CaseKey:
        """The key of the case in a run."""
        return self.suite, self.id, self.target


class RowSource(Recorded):
    """Position of the case."""

    path: str = Field(description="The eval file, relative to the repository.")
    line: int = Field(description="First line of the case.")


class Change(Recorded):
    """A file of a workspace that an agent has added, modified or deleted."""

    path: RelativePath = Field(description="Its path.")
    kind: Literal["added", "modified", "deleted"] = Field(description="What has become of it.")
    mode: int = Field(0, description="Permission bits; of a deleted file 0.")
    base64: str | None = Field(
        None, description="Content of a file; null for a link and for a deleted file."
    )
    link: str | None = Field(None, description="Target of a symbolic link.")


class WorkspaceRecord(Recorded):
    """What an agent left behind in its workspace."""

    isolation: Isolation = Field(description="What separated the agent from the machine.")
    network: Literal["on", "off"] = Field(description="Whether it had a network.")
    changed: Items[str] = Field((), description="Paths that changed, sorted; at most 1,000.")
    withheld: Items[str] = Field(
        (), description="Changed paths that graders did not get, each with the reason."
    )
    diff: str | None = Field(None, description="The changes as a unified diff, shortened.")
    changes: Items[Change] | None = Field(
        None,
        description="The changes themselves, for `rescore`; null where they are large or contain a "
        "secret.",
    )
    kept: str | None = Field(None, description="Folder in which the workspace was kept.")


NO_OUTCOME = "the case is judged by what an agent leaves behind"
"""The error of rows that a dry run cannot score."""


class ResultRow(Recorded):
    """One trial of one case."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = Field(
        RESULT_VERSION, description="Version of this schema."
    )
    timestamp: str = Field(description="Time of its end: ISO 8601, UTC.")
    eval_id: Name = Field(description="Id of the case.")
    dataset: str = Field(description="Name of the suite.")
    conversation_id: str | None = Field(
        None, description="Id that groups the cases of one conversation."
    )
    suite: str = Field(description="The eval file, relative to the repository.")
    target: str = Field(description="Name of the target.")
    provider: str = Field(description="Provider of the target.")
    model: str | None = Field(None, description="Model that answered, as reported by the provider.")
    trial: Annotated[int, Field(ge=1)] = Field(description="Number of the trial, from 1.")
    trials: Annotated[int, Field(ge=1)] = Field(
        1, description="Maximum number of trials of the case."
    )
    require: Require = Field("majority", description="Trials that must pass.")
    stop_when: Literal["decided"] | None = Field(
        None,
        description="`decided`: the remaining trials are skipped when they cannot change whether "
        "the case passes.",
    )
    threshold: Share | None = Field(
        None,
        exclude_if=is_none,
        description="Minimum score to pass; absent in rows of earlier versions.",
    )
    seed: int | None = Field(None, description="Seed of the trial.")
    digest: str = Field(description="Digest of the case in the plan.")
    input_messages: Items[InputMessageRecord] | None = Field(
        None, description="Messages of the question."
    )
    expected_outcome: str | None = Field(None, description="What a good answer achieves.")
    reference_answer: str | None = Field(None, description="Reference answer.")
    status: Literal["ok", "error", "skipped"] = Field(description="Whether there is a verdict.")
    verdict: Verdict = Field(description="`error` and `skipped` are neither pass nor fail.")
    score: Share | None = Field(
        description="From 0 to 1; 0 if the verdict is `error`, null if it is `skipped`."
    )
    hits: Items[str] = Field(description="Correct parts of the answer.")
    misses: Items[str] = Field(description="Wrong or missing parts of the answer.")
    reasoning: str = Field(description="Explanations of all evaluators.")
    candidate_answer: str = Field(description="The answer.")
    evaluator_results: Items[EvaluatorResult] = Field(description="Results of the evaluators.")
    error: str | None = Field(None, description="Why there is no verdict.")
    error_kind: ErrorKind | None = Field(None, description="Kind of the error.")
    blame: Blame | None = Field(
        None,
        description="Who is to blame for the error. `agent`: it crashed, hung or broke its "
        "protocol, and the trial counts as failed with score 0; `infrastructure`: the trial is "
        "missing. Null without an error, and in rows of earlier versions, where it follows from "
        "`error_kind` and `provider`.",
    )
    skip: str | None = Field(None, description="Why the case was not run.")
    printed: PrintedOutput | None = Field(
        None, description="Output of the target's command, if it failed."
    )
    finish_reason: str | None = Field(
        None, description="Why the model stopped, as reported by the API."
    )
    attempts: Annotated[int, Field(ge=0)] = Field(
        description="Attempts of the trial; 0 if it is skipped."
    )
    requests: Annotated[int, Field(ge=0)] = Field(
        description="Requests in all attempts, including retries."
    )
    duration_ms: Annotated[int, Field(ge=0)] = Field(
        description="Duration of the last attempt's answer."
    )
    usage: Usage = Field(
        default_factory=Usage, description="Tokens of the answer, with those of failed attempts."
    )
    cost_usd: Dollars | None = Field(
        None,
        description="Cost of the answer and of failed attempts, as reported or by the price of "
        "their tokens; the known part if `expenses` has one without a cost.",
    )
    cached: bool = Field(
        False, description="Whether the answer comes from the cache or a recording, without cost."
    )
    judge_usage: Usage | None = Field(
        None, description="Tokens of the judges, with those of replies that failed."
    )
    judge_cost_usd: Dollars | None = Field(
        None,
        description="Cost of the judges; the known part if `expenses` has one of a judge without a "
        "cost, null if none is known.",
    )
    expenses: Items[Expense] | None = Field(
        None,
        exclude_if=is_none,
        description="What each request used, if one failed and still used tokens or money, or an "
        "earlier run did; of judges, what those with and those without a known price used, if "
        "there are both. The sums are in usage, cost_usd, judge_usage and judge_cost_usd.",
    )
    request: FreeObject = Field(
        default_factory=dict, description="Request as JSON text, without secrets."
    )
    output_messages: Items[OutputMessage] | None = Field(
        None, description="Messages of the answer, if more than its text."
    )
    trace_summary: TraceSummary | None = Field(
        None, description="Tool calls, if the provider reports them."
    )
    source: RowSource = Field(description="Position of the case, for links and annotations.")
    tags: Items[str] = Field((), description="Labels of the case.")
    metadata: FreeObject = Field(
        default_factory=dict, description="The author's data, as JSON text."
    )
    settings_digest: str | None = Field(
        None,
        exclude_if=is_none,
        description="Digest of the settings, except secrets, that the target and the judges take "
        "from the environment, such as a model; absent without any, in dry runs and in replays, "
        "which take nothing from it.",
    )
    workspace: WorkspaceRecord | None = Field(
        None,
        exclude_if=is_none,
        description="What the agent left behind; absent without a workspace.",
    )
    arm: str | None = Field(
        None, exclude_if=is_none, description="Arm of the experiment; absent without an experiment."
    )
    worker: str | None = Field(
        None,
        exclude_if=is_none,
        description="Worker of the cluster that ran the trial; absent without a cluster.",
    )
    masked: bool = Field(False, description="Whether a secret was redacted in the answer.")
    # The last field is always written: a torn row lacks it.
    dry_run: bool = Field(False, description="Whether a mock answer replaced that of the target.")

    @property
    def is_unknown(self) -> bool:
        """Whether a dry run had nothing to score."""
        return self.dry_run and self.error == NO_OUTCOME

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of all its messages, in order."""
        messages = self.output_messages or ()
        return tuple(chain.from_iterable(message.tool_calls for message in messages))

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
