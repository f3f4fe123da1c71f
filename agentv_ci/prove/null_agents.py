"""Null agents: agents that do nothing for the question, and still answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice

from agentv_ci.contracts.answer_evaluators import FieldAccuracyEvaluator, IsJsonEvaluator
from agentv_ci.contracts.exchange import Request
from agentv_ci.contracts.plan import PlanCase, outcomes_of
from agentv_ci.contracts.plan_evaluators import PlanEvaluator, PlanSchemaEvaluator, flat
from agentv_ci.contracts.proof import LeftOut
from agentv_ci.prove.answers import (
    NullAnswer,
    WrittenAnswer,
    leaves_all,
    reads_answers,
    reference_of,
    right_answers,
    rotated,
    structure_of,
)

REFUSAL = "I'm sorry, but I can't help with that request."
DONT_KNOW = "I don't know."
MOST_OTHERS = 3
"""Reference answers of other cases."""
OF_JSON = (IsJsonEvaluator, FieldAccuracyEvaluator, PlanSchemaEvaluator)

_DECLINES = re.compile(
    r"\b(?:I|we)(?:['’]m| am|['’]re| are)? "
    r"(?:can['’]t|cannot|can not|won['’]t|will not|not able|unable"
    r"|(?:don['’]t|do not) (?:know|have))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_SHOULD_DECLINE = re.compile(
    r"\b(?:refuses?|refusal|declines?|abstains?)\b|\b(?:not|n't) know\b", re.IGNORECASE
)


def null_answers(
    case: PlanCase,
    request: Request,
    others: Sequence[WrittenAnswer],
    seed: str,
    accepted: Collection[str] = (),
) -> tuple[list[NullAnswer], list[LeftOut]]:
    """Return the answers of null agents to a case, and the agents whose answer may be right.

    `others` are the reference answers of the cases of its suite, its own among them; `accepted` are
    agents that the author accepts.
    """
    right = right_answers(case)
    tried, left_out = list[NullAnswer](), list[LeftOut]()
    for answer in _answers(case, request, others, right, seed):
        if answer.agent in accepted:
            continue
        reason = _why_left_out(answer, case, right)
        if reason is None:
            tried.append(answer)
        else:
            left_out.append(LeftOut(name=answer.agent, reason=reason))
    return tried, left_out


def _answers(
    case: PlanCase,
    request: Request,
    others: Sequence[WrittenAnswer],
    right: Sequence[WrittenAnswer],
    seed: str,
) -> Iterator[NullAnswer]:
    if reads_answers(case):
        yield from _of_any_case(request, case)
        yield from _of_others(others, right, seed)
    yield from _of_workspaces(case)


def _why_left_out(answer: NullAnswer, case: PlanCase, right: Sequence[WrittenAnswer]) -> str | None:
    """Return why the answer of a null agent may be right; None if it is wrong."""
    if answer.agent == "changes-nothing":
        return "nothing is to change" if leaves_all(case) else None
    if answer.agent in ("refusal", "dont-know") and _is_to_decline(case):
        return "the expected outcome or the reference answer seems to be a refusal"
    if any(map(answer.answer.is_like, right)):
        return "the answer is right"
    return None


def _of_any_case(request: Request, case: PlanCase) -> Iterator[NullAnswer]:
    yield NullAnswer("empty", WrittenAnswer(""))
    yield NullAnswer("echo-prompt", WrittenAnswer(request.prompt))
    questions = (message for message in reversed(request.chat) if message.role == "user")
    if (last := next(questions, None)) is not None:
        yield NullAnswer("echo-last-message", WrittenAnswer(last.content))
    yield NullAnswer("refusal", WrittenAnswer(REFUSAL))
    yield NullAnswer("dont-know", WrittenAnswer(DONT_KNOW))
    is_of_json = any(map(_asks_for_json, flat(case.evaluators)))
    if is_of_json or structure_of(case.reference_answer) is not None:
        yield NullAnswer("empty-object", WrittenAnswer("{}"))
        yield NullAnswer("empty-array", WrittenAnswer("[]"))


def _asks_for_json(evaluator: PlanEvaluator) -> bool:
    return isinstance(evaluator, OF_JSON) and not evaluator.negate


def _of_workspaces(case: PlanCase) -> Iterator[NullAnswer]:
    """Yield the answer of an agent that only says that it has done its work."""
    if outcomes_of(case):
        yield NullAnswer("changes-nothing", reference_of(case) or WrittenAnswer(""))


def _is_to_decline(case: PlanCase) -> bool:
    """Whether a good answer is a refusal, or says that the agent does not know."""
    return bool(
        _DECLINES.search(case.reference_answer) or _SHOULD_DECLINE.search(case.expected_outcome)
    )


def _of_others(
    others: Sequence[WrittenAnswer], right: Sequence[WrittenAnswer], seed: str
) -> Iterator[NullAnswer]:
    """Yield reference answers of other cases that are wrong for this one.

    One that says the same in more words is not.
    """

    def is_wrong(other: WrittenAnswer) -> bool:
        return not any(map(partial(_says_the_same, other), right))

    wrong = filter(is_wrong, rotated(others, f"{seed}:other"))
    for answer in islice(wrong, MOST_OTHERS):
        yield NullAnswer("other-reference", answer)


def _says_the_same(one: WrittenAnswer, other: WrittenAnswer) -> bool:
    """Whether two answers are alike, or all words of one are in the other."""
    words, more = _words(one.text), _words(other.text)
    is_part = bool(words and more) and (words <= more or more <= words)
    return one.is_like(other) or (is_part and not one.calls and not other.calls)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
