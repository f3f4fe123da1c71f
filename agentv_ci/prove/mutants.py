"""Mutants: reference answers with one mistake."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise

from msgspec import Struct

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.gate import Operator
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanSchemaEvaluator, flat
from agentv_ci.contracts.results import ToolCall
from agentv_ci.prove.answers import (
    ALONE,
    Mutant,
    Neighbours,
    WrittenAnswer,
    number_of,
    reference_of,
    right_answers,
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
    """Return the mutants of a case's reference answer: a few of each operator, none that is right."""
    reference = reference_of(case)
    if reference is None:
        return []
    known = [*right_answers(case), WrittenAnswer("")]
    found: list[Mutant] = []
    for operator, damages in _damages(reference, question, others).items():
        if operator in accepted or _is_harmless(operator, case):
            continue
        begun = len(found)
        places = sorted(
            range(len(damages)), key=lambda place: number_of(f"{seed}:{operator}:{place}")
        )
        for damage in map(damages.__getitem__, places):
            answer = damage.write()
            if not any(map(answer.is_like, known)):
                known.append(answer)
                found.append(Mutant(operator, damage.change, answer))
            if len(found) - begun == MOST:
                break
    return found


def probes_of(case: PlanCase) -> list[WrittenAnswer]:
    """Return the reference answer without one of its words, fields or calls, for a few of them.

    They need not be wrong, and only show whether an evaluator notices what no other one does.
    """
    reference = reference_of(case)
    if reference is None:
        return []
    damages = _damages(reference)
    parts = [
        each.write
        for name in ("json-field-removed", "tool-dropped")
        for each in damages.get(name, ())
    ]
    if structure_of(reference.text) is None:
        parts += [
            partial(_without, word, reference)
            for word in dict.fromkeys(_WORD.findall(reference.text))
        ]
    step = max(1, math.ceil(len(parts) / MOST_PROBES))
    return [write() for write in parts[::step]]


def _without(word: str, reference: WrittenAnswer) -> WrittenAnswer:
    text = _WORD.sub(lambda each: "" if each[0] == word else each[0], reference.text)
    return WrittenAnswer(text, reference.calls)


def _is_harmless(operator: Operator, case: PlanCase) -> bool:
    """Whether a mistake may be none: another order of lines in YAML, or other calls if only evaluators name any."""
    if operator in ("tool-added", "tool-swapped", "tool-arguments"):
        return not case.reference_calls
    schemas = (each for each in flat(case.evaluators) if isinstance(each, PlanSchemaEvaluator))
    return operator == "sentence-order" and any(each.format == "yaml" for each in schemas)


def _damages(
    reference: WrittenAnswer, question: str = "", others: Neighbours = ALONE
) -> Mapping[Operator, Sequence[Damage]]:
    """Return everything that can be done to a reference answer, by operator."""
    is_text = structure_of(reference.text) is None
    edits = (
        text_edits(reference.text, question)
        if is_text
        else json_edits(reference.text, others.texts)
    )
    in_text = (
        Damage(each.operator, each.change, partial(_edited, each, reference)) for each in edits
    )
    damages: dict[Operator, list[Damage]] = {}
    for damage in chain(in_text, _damaged_calls(reference)):
        damages.setdefault(damage.operator, []).append(damage)
    return damages


def _edited(edit: Edit, reference: WrittenAnswer) -> WrittenAnswer:
    return WrittenAnswer(edit.of(reference.text), reference.calls)


def _damaged_calls(reference: WrittenAnswer) -> Iterator[Damage]:
    calls = reference.calls

    def damage(operator: Operator, change: str, *others: ToolCall) -> Damage:
        return Damage(operator, change, partial(WrittenAnswer, reference.text, others))

    for place, call in enumerate(calls):
        yield damage(
            "tool-dropped", f"'{call.tool}' is not called", *calls[:place], *calls[place + 1 :]
        )
    for place, (first, second) in enumerate(pairwise(calls)):
        if first.tool != second.tool:  # several calls of a tool are often independent
            change = f"'{second.tool}' is called before '{first.tool}'"
            yield damage("tool-swapped", change, *calls[:place], second, first, *calls[place + 2 :])
    if calls:
        yield damage("tool-added", f"'{UNWANTED}' is called, too", *calls, ToolCall(tool=UNWANTED))
    wrong = (each.model_copy(update={"input": each.input and _wrong(each.input)}) for each in calls)
    yield damage("tool-arguments", "all arguments are wrong", *wrong)


def _wrong(value: JsonValue) -> JsonValue:
    """Return arguments of the same form, in which every value is wrong."""
    match value:
        case dict():
            return {key: _wrong(each) for key, each in value.items()}
        case list():
            return [_wrong(each) for each in value] or ["nothing"]
        case bool():
            return not value
        case int() | float():
            return 2 * abs(value) + 1 if abs(value) < MOST_EXACT else 0
        case str():
            return f"not {value}"
        case None:
            return "nothing"
