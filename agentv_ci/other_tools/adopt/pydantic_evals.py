"""Reports of pydantic-evals, as JSON: `TypeAdapter(EvaluationReport).dump_json(report)`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from agentv_ci.base.canonical import exact
from agentv_ci.base.json_access import amount_at, text_at, value_at
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import AdoptedCheck, AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.other_tools.adopt.scores import Given, Scores, UnknownScore, all_passed, mean_score
from agentv_ci.other_tools.adopt.values import mapping, messages, objects, text, whole


def results(report: JsonValue, how: HowToRead) -> AdoptedFile:
    """Return the cases of a report.

    One passes if its assertions hold and, without any, by its scores.
    """
    target = text_at(report, "name") or "default"
    cases = objects(value_at(report, "cases"), "case")
    scores = Scores(how, chain.from_iterable(_given(case, "scores") for case in cases))
    failures = objects(value_at(report, "failures"), "failure")
    broken = objects(value_at(report, "report_evaluator_failures"), "failure of an evaluator")
    found = chain(
        (_result(case, target, scores) for case in cases),
        (_failed(case, target) for case in failures),
    )
    lost = (
        f"evaluator '{text(failure.get('name'))}' of the report: "
        f"{text(failure.get('error_message'))}"
        for failure in broken
    )
    return AdoptedFile(tuple(found), tuple(lost), scores.names)


def _failed(case: JsonObject, target: str) -> AdoptedResult:
    return AdoptedResult(
        name=_name(case),
        distinctions=_distinctions(case),
        passed=None,
        question=messages(case.get("inputs")),
        expected=text(case.get("expected_output")) or None,
        target=target,
        error=text(case.get("error_message")) or "the task failed",
        error_kind="process",
    )


def _result(case: JsonObject, target: str, scores: Scores) -> AdoptedResult:
    asserted: tuple[AdoptedCheck, ...] = ()
    scored: tuple[AdoptedCheck, ...] = ()
    unread = ""
    failures = objects(case.get("evaluator_failures"), "failure")
    reasons = (text(failure.get("error_message")) or "an evaluator failed" for failure in failures)
    error = "; ".join(reasons) or None
    try:
        asserted = tuple(scores.checks(_given(case, "assertions"), "assertion"))
        scored, unread = _scored(case, scores, are_needed=not asserted)
    except UnknownScore as unknown:
        error = error or str(unknown)
    deciding, checks = asserted or scored, asserted + scored
    if error is None and not deciding:
        error = "the case has no assertions and no scores"
    return AdoptedResult(
        name=_name(case),
        distinctions=_distinctions(case),
        passed=all_passed(deciding, error),
        score=mean_score(checks),
        answer=text(case.get("output")),
        question=messages(case.get("inputs")),
        expected=text(case.get("expected_output")) or None,
        target=target,
        checks=checks,
        reasoning=unread,
        error=error,
        duration_ms=whole((amount_at(case, "task_duration") or 0) * 1000) or 0,
        metadata=mapping(case.get("metadata")),
    )


def _scored(
    case: JsonObject, scores: Scores, *, are_needed: bool
) -> tuple[tuple[AdoptedCheck, ...], str]:
    """Return the checks of scores, and why others are none.

    Raises UnknownScore for one that is needed.
    """
    checks: list[AdoptedCheck] = []
    unread: list[str] = []
    for given in _given(case, "scores"):
        try:
            checks += scores.checks([given], "score")
        except UnknownScore as unknown:
            if are_needed:
                raise
            unread.append(str(unknown))
    return tuple(checks), "; ".join(unread)


def _name(case: JsonObject) -> str:
    """Return the name of a case, which repetitions share."""
    return text(case.get("source_case_name")) or text(case.get("name")) or "case"


def _distinctions(case: JsonObject) -> tuple[str, ...]:
    """Return what defines a case: all that does not come from the run."""
    definition = list(map(case.get, ("inputs", "expected_output", "metadata")))
    return (*map(text, definition), exact(definition))


def _given(case: JsonObject, key: str) -> Iterator[Given]:
    for name, result in mapping(case.get(key)).items():
        yield Given(name, mapping(result).get("value"), text(mapping(result).get("reason")))
