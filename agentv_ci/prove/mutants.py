"""Mutants: reference answers with one mistake."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, pairwise

from msgspec import Struct

from agentv_ci.base.mappings import grouped
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.gate import Operator
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanEvaluator, PlanSchemaEvaluator, flat
from agentv_ci.contracts.results import ToolCall
from agentv_ci.prove.answers import (
    ALONE,
    Mutant,
    Neighbours,
    WrittenAnswer,
    reference_of,
    right_answers,
    shuffled,
    structure_of,
)
from agentv_ci.prove.damaged_json import json_edits
from agentv_ci.prove.damaged_text import text_edits
from agentv_ci.prove.edits import Edit

MOST = 3
"""Mutants of one operator for each case."""
MOST_PROBES = 24
UNWANTED = "delete_everything"
"""A tool that no case asks for."""
MOST_EXACT = 2**53
"""Above it, floats are not exact."""
_WORD = re.compile(r"\S+")


class Damage(Struct, frozen=True):
    """One mistake in an answer."""

    operator: Operator
    change: str
    """What is done, in a few words."""
    write: Callable[[], WrittenAnswer]
    """Return the answer with the mistake: of a long one only a few are written."""


def mutants_of(
    case: PlanCase,
    question: str,
    seed: str,
    others: Neighbours = ALONE,
    accepted: Collection[str] = (),
) -> list[Mutant]:
    """Return mutants of a case's reference answer: a few of each operator, none that is right."""
    reference = reference_of(case)
    if reference is None:
        return []
    known = [*right_answers(case), WrittenAnswer("")]
    mutants: list[Mutant] = []
    for operator, damages in _damages(reference, question, others).items():
        if operator not in accepted and not _is_harmless(operator, case):
            mutants += islice(_unlike(known, shuffled(damages, f"{seed}:{operator}")), MOST)
    return mutants


def _unlike(known: list[WrittenAnswer], damages: Iterable[Damage]) -> Iterator[Mutant]:
    """Yield the mutants that say something new, each of which is known from then on."""
    for damage in damages:
        answer = damage.write()
        if not any(map(answer.is_like, known)):
            known.append(answer)
            yield Mutant(damage.operator, damage.change, answer)


def probes_of(case: PlanCase) -> list[WrittenAnswer]:
    """Return the reference answer without one of its words, fields or calls, for a few of them.

    They need not be wrong, and only show whether an evaluator notices what no other one does.
    """
    reference = reference_of(case)
    if reference is None:
        return []
    damages = _damages(reference)
    removals = chain(damages.get("json-field-removed", ()), damages.get("tool-dropped", ()))
    writers = [damage.write for damage in removals]
    if structure_of(reference.text) is None:
        words = dict.fromkeys(_WORD.findall(reference.text))
        writers += (partial(_without, word, reference) for word in words)
    step = max(1, math.ceil(len(writers) / MOST_PROBES))
    return [write() for write in writers[::step]]


def _without(word: str, reference: WrittenAnswer) -> WrittenAnswer:
    text = _WORD.sub(lambda match: "" if match[0] == word else match[0], reference.text)
    return WrittenAnswer(text, reference.calls)


def _is_harmless(operator: Operator, case: PlanCase) -> bool:
    """Whether a mistake may be none.

    Such is another order of lines in YAML, and such are other calls if only evaluators name any.
    """
    if operator in ("tool-added", "tool-swapped", "tool-arguments"):
        return not case.reference_calls
    return operator == "sentence-order" and any(map(_is_of_yaml, flat(case.evaluators)))


def _is_of_yaml(evaluator: PlanEvaluator) -> bool:
    return isinstance(evaluator, PlanSchemaEvaluator) and evaluator.format == "yaml"


def _damages(
    reference: WrittenAnswer, question: str = "", others: Neighbours = ALONE
) -> Mapping[Operator, Sequence[Damage]]:
    """Return everything that can be done to a reference answer, by operator."""
    if structure_of(reference.text) is None:
        edits = text_edits(reference.text, question)
    else:
        edits = json_edits(reference.text, others.texts)
    damages = chain(_edited(reference, edits), _damaged_calls(reference))
    return grouped(damages, lambda damage: damage.operator)


def _edited(reference: WrittenAnswer, edits: Iterable[Edit]) -> Iterator[Damage]:
    for edit in edits:
        yield Damage(edit.operator, edit.change, partial(_with, edit, reference))


def _with(edit: Edit, reference: WrittenAnswer) -> WrittenAnswer:
    return WrittenAnswer(edit.of(reference.text), reference.calls)


def _damaged_calls(reference: WrittenAnswer) -> Iterator[Damage]:
    calls = reference.calls

    def damage(operator: Operator, change: str, *others: ToolCall) -> Damage:
        return Damage(operator, change, partial(WrittenAnswer, reference.text, others))

    for index, call in enumerate(calls):
        others = (*calls[:index], *calls[index + 1 :])
        yield damage("tool-dropped", f"'{call.tool}' is not called", *others)
    for index, (first, second) in enumerate(pairwise(calls)):
        if first.tool != second.tool:  # several calls of a tool are often independent
            change = f"'{second.tool}' is called before '{first.tool}'"
            yield damage("tool-swapped", change, *calls[:index], second, first, *calls[index + 2 :])
    if calls:
        yield damage("tool-added", f"'{UNWANTED}' is called, too", *calls, ToolCall(tool=UNWANTED))
    yield damage("tool-arguments", "all arguments are wrong", *map(_with_wrong_arguments, calls))


def _with_wrong_arguments(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"input": call.input and _wrong(call.input)})


def _wrong(value: JsonValue) -> JsonValue:
    """Return arguments of the same form, in which every value is wrong."""
    match value:
        case dict():
            return {key: _wrong(item) for key, item in value.items()}
        case list():
            return list(map(_wrong, value)) or ["nothing"]
        case bool():
            return not value
        case int() | float():
            return 2 * abs(value) + 1 if abs(value) < MOST_EXACT else 0
        case str():
            return f"not {value}"
        case None:
            return "nothing"
