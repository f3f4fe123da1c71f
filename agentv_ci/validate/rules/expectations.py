"""Evaluators that compare with the expected answer of their case."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EvalCase, EvalDocument
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    FieldAccuracyEvaluator,
    SimilarityEvaluator,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.json_access import read_answer
from agentv_ci.json_values import unfit_reference
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.walk import evaluators_of, flat


def check(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV320 for evaluators that have nothing to compare with, case by case."""
    for index, case in enumerate(document.evalcases):
        for pointer, evaluator in evaluators_of(document, index):
            for place, each in flat(pointer, evaluator):
                yield from _check(place, each, case, ("evalcases", index, "expected_messages"), find)


def _check(
    pointer: Pointer, evaluator: AuthoredEvaluator, case: EvalCase, expected: Pointer, find: Finder
) -> Iterator[Diagnostic]:
    if not isinstance(evaluator, (FieldAccuracyEvaluator, SimilarityEvaluator)) or find.lost_something(pointer):
        return
    if isinstance(evaluator, FieldAccuracyEvaluator) and evaluator.reference is not None:
        yield from _check_paths(pointer, evaluator, evaluator.reference, "'reference'", find)
        return
    if (
        evaluator.reference is not None
        or find.lost_something(expected[:-1])
        or find.lost_something(expected, deep=True)
    ):
        return
    answer = _expected_answer(case)
    hint = f"give 'reference' to evaluator '{evaluator.name}', or an expected message of the assistant"
    if answer is None:
        message = f"evaluator '{evaluator.name}' compares with the expected answer, and there is none"
        yield find.at("AV320", message, expected, key=True, hint=hint)
    elif isinstance(evaluator, FieldAccuracyEvaluator) and not isinstance(answer, list):
        try:
            reference = read_answer(answer) if isinstance(answer, str) else answer
        except ValueError:
            message = f"evaluator '{evaluator.name}' compares with the expected answer, which is not JSON"
            yield find.at("AV320", message, expected, key=True, hint=hint)
            return
        yield from _check_paths(pointer, evaluator, reference, f"the expected answer of case '{case.id}'", find)


def _check_paths(
    pointer: Pointer, evaluator: FieldAccuracyEvaluator, reference: JsonValue, where: str, find: Finder
) -> Iterator[Diagnostic]:
    for number, field in enumerate(evaluator.fields):
        if reason := unfit_reference(field, reference):
            yield find.at("AV320", f"{where} {reason}", (*pointer, "fields", number, "path"))


def _expected_answer(case: EvalCase) -> JsonValue:
    """Return the last expected assistant message that says something; a list when files have to be read for it."""
    for message in reversed(case.expected_messages):
        if message.role != "assistant":
            continue
        if isinstance(message.content, dict):
            return message.content
        if isinstance(message.content, tuple) and message.content:
            return [each if isinstance(each, str) else each.value for each in message.content]
        if isinstance(message.content, str):
            return message.content.strip() or None
    return None
