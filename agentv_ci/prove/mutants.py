"""Mutants: reference answers with one mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter

from agentv_ci.contracts.plan import PlanCase, PlanSchemaEvaluator, flat
from agentv_ci.contracts.proof import Operator
from agentv_ci.contracts.results import ToolCall
from agentv_ci.prove.answers import Mutant, WrittenAnswer, number_of, reference_of, right_answers, structure_of
from agentv_ci.prove.damaged_json import json_damages
from agentv_ci.prove.damaged_text import text_damages

MOST = 3
"""Mutants of one operator for each case."""
MOST_PROBES = 24
_WORD = re.compile(r"\S+")

Damaged = tuple[str, Callable[[], WrittenAnswer]]
"""The change in a few words, and the answer: of a long one only a few are written."""


def mutants_of(case: PlanCase, question: str, seed: str) -> list[Mutant]:
    """Return the mutants of a case's reference answer: a few of each operator, none that is right."""
    reference = reference_of(case)
    if reference is None:
        return []
    known = [*right_answers(case), WrittenAnswer("")]
    found: list[Mutant] = []
    for operator, damages in _damages(reference, question).items():
        if _is_harmless(operator, case):
            continue
        begun = len(found)
        order = {number_of(f"{seed}:{operator}:{place}"): each for place, each in enumerate(damages)}
        for _, (change, write) in sorted(order.items(), key=itemgetter(0)):
            answer = write()
            if not any(map(answer.is_like, known)):
                known.append(answer)
                found.append(Mutant(operator, change, answer))
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
    parts = [write for _, write in (*damages.get("json-field-removed", ()), *damages.get("tool-dropped", ()))]
    if structure_of(reference.text) is None:
        parts += [partial(_without, word, reference) for word in dict.fromkeys(_WORD.findall(reference.text))]
    return [write() for write in parts[:: -(-len(parts) // MOST_PROBES) or 1]]


def _without(word: str, reference: WrittenAnswer) -> WrittenAnswer:
    text = _WORD.sub(lambda each: "" if each[0] == word else each[0], reference.text)
    return WrittenAnswer(text, reference.calls)


def _is_harmless(operator: Operator, case: PlanCase) -> bool:
    """Whether the order does not matter: of lines in YAML, of tool calls that only evaluators name."""
    if operator == "tool-swapped":
        return not case.reference_calls
    schemas = (each for each in flat(case.evaluators) if isinstance(each, PlanSchemaEvaluator))
    return operator == "sentence-order" and any(each.format == "yaml" for each in schemas)


def _damages(reference: WrittenAnswer, question: str = "") -> Mapping[Operator, Sequence[Damaged]]:
    """Return everything that can be done to a reference answer, by operator."""
    value = structure_of(reference.text)
    texts = json_damages(reference.text, value) if value is not None else text_damages(reference.text, question)
    damages: dict[Operator, list[Damaged]] = {}
    for operator, change, write in texts:
        damages.setdefault(operator, []).append((change, partial(_with_calls, write, reference.calls)))
    for tool_operator, change, calls in _damaged_calls(reference.calls):
        damages.setdefault(tool_operator, []).append((change, partial(WrittenAnswer, reference.text, calls)))
    return damages


def _with_calls(write: Callable[[], str], calls: tuple[ToolCall, ...]) -> WrittenAnswer:
    return WrittenAnswer(write(), calls)


def _damaged_calls(calls: tuple[ToolCall, ...]) -> Iterator[tuple[Operator, str, tuple[ToolCall, ...]]]:
    for place, call in enumerate(calls):
        yield "tool-dropped", f"'{call.tool}' is not called", calls[:place] + calls[place + 1 :]
    for place in range(len(calls) - 1):
        first, second = calls[place : place + 2]
        swapped = (*calls[:place], second, first, *calls[place + 2 :])
        yield "tool-swapped", f"'{second.tool}' is called before '{first.tool}'", swapped
