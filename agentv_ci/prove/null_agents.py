"""Null agents: agents that do nothing for the question, and still answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evaluators import FieldAccuracyEvaluator, IsJsonEvaluator
from agentv_ci.contracts.exchange import Request
from agentv_ci.contracts.plan import PlanCase, PlanSchemaEvaluator, flat
from agentv_ci.prove.answers import (
    NullAnswer,
    WrittenAnswer,
    number_of,
    reference_of,
    right_answers,
    sentences_of,
    structure_of,
)

REFUSAL = "I'm sorry, but I can't help with that request."
DONT_KNOW = "I don't know."
OF_JSON = (IsJsonEvaluator, FieldAccuracyEvaluator, PlanSchemaEvaluator)

_DECLINES = re.compile(
    r"\b(?:I|we)(?:['’]m| am|['’]re| are)? "
    r"(?:can['’]t|cannot|can not|won['’]t|will not|not able|unable|(?:don['’]t|do not) (?:know|have))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_SHOULD_DECLINE = re.compile(r"\b(?:refus|declin|abstain)|\b(?:not|n't) know\b", re.IGNORECASE)


def null_answers(case: PlanCase, request: Request, others: Sequence[WrittenAnswer], seed: str) -> list[NullAnswer]:
    """Return the answers of all null agents to a case, but for those that are right.

    `others` are the reference answers of the cases of its suite, its own among them.
    """
    right = right_answers(case)
    made = (*_of_any_case(request, case), *_of_others(others, right, seed), *_of_reference(case))
    return [each for each in made if not any(each.answer.is_like(known) for known in right)]


def _of_any_case(request: Request, case: PlanCase) -> Iterator[NullAnswer]:
    yield NullAnswer("empty", WrittenAnswer(""))
    yield NullAnswer("echo-prompt", WrittenAnswer(request.prompt))
    last = next((each.content for each in reversed(request.chat) if each.role == "user"), None)
    if last is not None:
        yield NullAnswer("echo-last-message", WrittenAnswer(last))
    if not _is_to_decline(case):
        yield NullAnswer("refusal", WrittenAnswer(REFUSAL))
        yield NullAnswer("dont-know", WrittenAnswer(DONT_KNOW))
    is_of_json = any(isinstance(each, OF_JSON) and not each.negate for each in flat(case.evaluators))
    if is_of_json or structure_of(case.reference_answer) is not None:
        yield NullAnswer("empty-object", WrittenAnswer("{}"))
        yield NullAnswer("empty-array", WrittenAnswer("[]"))


def _is_to_decline(case: PlanCase) -> bool:
    """Whether a good answer is a refusal, or says that the agent does not know."""
    return bool(_DECLINES.search(case.reference_answer) or _SHOULD_DECLINE.search(case.expected_outcome))


def _of_others(others: Sequence[WrittenAnswer], right: Sequence[WrittenAnswer], seed: str) -> Iterator[NullAnswer]:
    """Yield the reference answer of another case that is wrong for this one, and not the same in more words."""
    first = number_of(f"{seed}:other") % max(1, len(others))
    for other in (*others[first:], *others[:first]):
        if not any(_says_the_same(other, known) for known in right):
            yield NullAnswer("other-reference", other)
            return


def _says_the_same(one: WrittenAnswer, other: WrittenAnswer) -> bool:
    """Whether two answers are alike, or all words of one are in the other."""
    words, more = _words(one.text), _words(other.text)
    is_part = bool(words and more) and (words <= more or more <= words)
    return one.is_like(other) or (is_part and not one.calls and not other.calls)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _of_reference(case: PlanCase) -> Iterator[NullAnswer]:
    """Yield what is left of the reference answer without what matters."""
    reference = reference_of(case)
    if reference is None:
        return
    sentences = sentences_of(reference.text)
    if len(sentences) > 1 and structure_of(reference.text) is None:
        yield NullAnswer("first-sentence", WrittenAnswer(sentences[0], reference.calls))
    if not reference.calls:
        return
    yield NullAnswer("no-tools", WrittenAnswer(reference.text))
    if not case.reference_calls:
        return  # the author says neither order nor arguments
    yield NullAnswer("wrong-order", WrittenAnswer(reference.text, reference.calls[::-1]))
    calls = tuple(call.model_copy(update={"input": _wrong(call.input)}) for call in reference.calls)
    yield NullAnswer("wrong-arguments", WrittenAnswer(reference.text, calls))


def _wrong(value: JsonValue) -> JsonValue:
    """Return arguments of the same form, in which every value is wrong."""
    match value:
        case dict():
            return {key: "nothing" if each is None else _wrong(each) for key, each in value.items()}
        case list():
            return [_wrong(each) for each in value] or ["nothing"]
        case bool():
            return not value
        case int() | float():
            return 2 * value + 1
        case str():
            return f"not {value}"
        case None:
            return None
