"""Answers that are not from a target, to see what evaluators say of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import TypeVar

from msgspec import Struct

from agentv_ci.base.json_access import read_answer
from agentv_ci.base.json_values import is_same
from agentv_ci.contracts.answer_evaluators import EqualsEvaluator
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.gate import NullAgent, Operator
from agentv_ci.contracts.outcome_evaluators import FileEvaluator
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import (
    PlanCompositeEvaluator,
    PlanDiffEvaluator,
    PlanEvaluator,
    flat,
)
from agentv_ci.contracts.results import Change, OutputMessage, ToolCall, Usage
from agentv_ci.contracts.trace_evaluators import TokenUsageEvaluator, ToolTrajectoryEvaluator

T = TypeVar("T")

CHARACTERS_A_TOKEN = 4
MOST_CALLS = 1_000
"""Calls of a tool that are made because an evaluator asks for so many."""
_SENTENCE_END = re.compile(r"(?:(?<=[.!?])(?<!\b[Nn]o\.)|(?<=\b[Nn]o\.)(?!\s+\d))\s+(?=\S)|\n+")
_ABBREVIATION = re.compile(
    r"\b(?:[MD]r|Mrs|Ms|Messrs|Prof|Rev|Gen|Sen|St|Mt|Sr|Jr|vs|etc|cf|ca|approx|[Ff]ig|pp?"
    r"|Inc|Ltd|Corp|Co|e\.g|i\.e|[A-HJ-Z])\.\Z"
)
"""What ends in a full stop that is not the end of a sentence, such as the initial of a name."""


class WrittenAnswer(Struct, frozen=True):
    """The text of an answer, its tool calls, and what it leaves behind."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    changes: tuple[Change, ...] | None = ()
    """In the workspace; None if nothing says what would be right."""

    def is_like(self, other: WrittenAnswer) -> bool:
        """Whether both say the same, apart from white space; of JSON, if the values are equal."""
        if len(self.calls) != len(other.calls):
            return False
        if not all(map(_is_same_call, self.calls, other.calls)):
            return False
        if self.text.split() == other.text.split():
            return True
        value = structure_of(self.text)
        return value is not None and is_same(value, structure_of(other.text))


class Neighbours(Struct, frozen=True):
    """The reference answers of the cases of a suite."""

    answers: Sequence[WrittenAnswer] = ()
    texts: Mapping[str, Sequence[str]] = {}
    """Key → the texts that it has in those that are JSON."""


ALONE = Neighbours()


UNUSUAL = (
    WrittenAnswer("".join(map(chr, range(32, 127))) + "\n\tä€字🙂\n```\n<p>x</p>\n```"),
    WrittenAnswer("all work and no play\n" * 500),
)
"""Answers that break most constraints of form and length."""


class NullAnswer(Struct, frozen=True):
    """The answer of a null agent."""

    agent: NullAgent
    answer: WrittenAnswer


class Mutant(Struct, frozen=True):
    """A damaged reference answer."""

    operator: Operator
    change: str
    answer: WrittenAnswer
    diff: str | None = None
    """Of what it leaves behind; None if the mistake is in the answer."""


def reference_of(case: PlanCase) -> WrittenAnswer | None:
    """Return the reference answer of a case; None if none.

    If it has no tool calls, they are those that the evaluators expect.
    """
    calls = tuple(
        ToolCall(tool=call.tool, input=call.input, output=call.output)
        for call in case.reference_calls
    )
    if not case.reference_answer and not calls:
        return None
    return WrittenAnswer(case.reference_answer, calls or _expected_calls(case))


def _expected_calls(case: PlanCase) -> tuple[ToolCall, ...]:
    """Return the calls that the evaluators of a case expect together.

    Those in a given order come first.
    """
    trajectories = _of_type(case, ToolTrajectoryEvaluator)
    required = list(filter(_is_required, trajectories))
    required.sort(key=lambda trajectory: trajectory.mode not in ("exact", "in_order"))
    calls: list[ToolCall] = []
    for trajectory in required:
        missing = [*calls]
        for call in _calls_of(trajectory):
            same = next((known for known in missing if _is_same_call(known, call)), None)
            if same is None:
                calls.append(call)
            else:
                missing.remove(same)
    return tuple(calls)


def _is_required(trajectory: ToolTrajectoryEvaluator) -> bool:
    return not trajectory.negate and trajectory.mode != "subset"


def _of_type(case: PlanCase, kind: type[T]) -> Iterator[T]:
    """Yield the evaluators of one type, including members of composites."""
    for evaluator in flat(case.evaluators):
        if isinstance(evaluator, kind):
            yield evaluator


def _calls_of(trajectory: ToolTrajectoryEvaluator) -> Iterator[ToolCall]:
    for call in trajectory.expected or ():
        yield ToolCall(tool=call.tool, input=call.input)
    for tool, least in (trajectory.minimums or {}).items():
        yield from repeat(ToolCall(tool=tool), min(least, MOST_CALLS))


def right_answers(case: PlanCase) -> tuple[WrittenAnswer, ...]:
    """Return the answers that the author says are right: the reference, and texts of `equals`."""
    answers: list[WrittenAnswer] = []
    calls: tuple[ToolCall, ...] = ()
    if (reference := reference_of(case)) is not None:
        answers.append(reference)
        calls = reference.calls
    equals = _of_type(case, EqualsEvaluator)
    answers += (WrittenAnswer(text.value, calls) for text in equals if not text.negate)
    return tuple(answers)


def reads_answers(case: PlanCase) -> bool:
    """Whether an evaluator of a case scores more than what is left behind, and limits."""
    return any(map(_reads_answers, flat(case.evaluators)))


def _reads_answers(evaluator: PlanEvaluator) -> bool:
    if isinstance(evaluator, PlanCompositeEvaluator):
        return False
    return not evaluator.needs_workspace and not evaluator.is_limit


def golden_of(case: PlanCase) -> PlanDiffEvaluator | None:
    """Return the evaluator whose patch solves a case; None without one."""
    for evaluator in _of_type(case, PlanDiffEvaluator):
        if evaluator.golden is not None and not evaluator.negate:
            return evaluator
    return None


def leaves_all(case: PlanCase) -> bool:
    """Whether a right answer changes nothing: all evaluators of outcomes forbid changes."""
    of_outcomes = (evaluator for evaluator in flat(case.evaluators) if evaluator.needs_workspace)
    return all(map(_forbids_all, of_outcomes))


def _forbids_all(evaluator: PlanEvaluator) -> bool:
    if evaluator.negate:
        return False
    if isinstance(evaluator, FileEvaluator):
        return evaluator.unchanged is True
    if not isinstance(evaluator, PlanDiffEvaluator) or evaluator.must_change or evaluator.golden:
        return False
    return (
        0 in (evaluator.max_files, evaluator.max_lines)
        or evaluator.may_change == ()
        or bool(evaluator.must_not_change and evaluator.may_change is None)
    )


def response_of(answer: WrittenAnswer, *, least_tokens: int = 0) -> Response:
    """Return an answer as that of a target that reports everything, at once and free of charge."""
    message = OutputMessage(role="assistant", content=answer.text, tool_calls=answer.calls)
    tokens = max(least_tokens, -(-len(answer.text) // CHARACTERS_A_TOKEN))
    usage = Usage(input_tokens=0, output_tokens=tokens, total_tokens=tokens)
    return Response(
        answer.text, (message,), has_trace=True, usage=usage, duration_ms=0, cost_usd=0.0
    )


def least_tokens_of(case: PlanCase) -> int:
    """Return how many tokens an answer needs for the limits of its case."""
    least = 0
    for evaluator in _of_type(case, TokenUsageEvaluator):
        least = max(least, evaluator.min_output or 0)
    return least


def structure_of(text: str) -> JsonObject | list[JsonValue] | None:
    """Return the value of an answer that is a JSON object or list, without its code fence.

    None for any other.
    """
    if text.lstrip()[:1] not in ("{", "[", "`"):
        return None
    try:
        value = read_answer(text)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def texts_of(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each with its key."""
    if isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                yield key, item
            yield from texts_of(item)


def rotated(items: Sequence[T], key: str) -> Iterator[T]:
    """Yield all items, beginning at one that a key chooses."""
    first = number_of(key)
    for step in range(len(items)):
        yield items[(first + step) % len(items)]


def shuffled(items: Sequence[T], key: str) -> list[T]:
    """Return all items in an order that a key chooses."""
    order = sorted(range(len(items)), key=lambda index: number_of(f"{key}:{index}"))
    return list(map(items.__getitem__, order))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text; each line is at least one."""
    sentences: list[str] = []
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        if "\n" in end[0] or not _ABBREVIATION.search(text, begin, end.start()):
            sentences.append(text[begin : end.start()].strip())
            begin = end.end()
    sentences.append(text[begin:].strip())
    return list(filter(None, sentences))


def number_of(text: str) -> int:
    """Return a number that looks random, but is the same for a text on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _is_same_call(one: ToolCall, other: ToolCall) -> bool:
    return one.tool == other.tool and is_same(one.input, other.input)
