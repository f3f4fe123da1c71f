"""Reports of pydantic-evals, as JSON: `TypeAdapter(EvaluationReport).dump_json(report)`."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.adopt.values import mapping, messages, share, slug, text
from agentv_ci.contracts.adopted import AdoptedCheck, AdoptedResult
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.json_access import amount_at, objects_at, text_at


def results(data: JsonValue, threshold: float) -> Iterator[AdoptedResult]:
    """Yield the cases of a report; one passes if its assertions hold and, without any, its scores reach `threshold`."""
    target = slug(text_at(data, "name") or "default")
    for each in objects_at(data, "cases"):
        yield _result(each, target, threshold)
    for each in objects_at(data, "failures"):
        error = text(each.get("error_message")) or "the task failed"
        yield AdoptedResult(
            id=slug(text(each.get("name"))),
            passed=None,
            question=messages(each.get("inputs")),
            expected=text(each.get("expected_output")) or None,
            target=target,
            error=error,
        )


def _result(case: JsonObject, target: str, threshold: float) -> AdoptedResult:
    asserted = tuple(_checks(case, "assertions", threshold))
    scored = tuple(_checks(case, "scores", threshold))
    deciding = asserted or scored
    failures = [text(each.get("error_message")) for each in objects_at(case, "evaluator_failures")]
    error = "; ".join(failures) or (None if deciding else "the case has no assertions and no scores")
    checks = asserted + scored
    return AdoptedResult(
        id=slug(text(case.get("name"))),
        passed=None if error else all(check.passed for check in deciding),
        score=sum(check.score for check in checks) / len(checks) if checks else None,
        answer=text(case.get("output")),
        question=messages(case.get("inputs")),
        expected=text(case.get("expected_output")) or None,
        target=target,
        checks=checks,
        error=error,
        duration_ms=round((amount_at(case, "task_duration") or 0) * 1000),
        metadata=mapping(case.get("metadata")),
    )


def _checks(case: JsonObject, key: str, threshold: float) -> Iterator[AdoptedCheck]:
    for name, given in mapping(case.get(key)).items():
        value = mapping(given).get("value")
        score = float(value) if isinstance(value, bool) else share(value)
        if score is not None:
            yield AdoptedCheck(name, key[:-1], score, score >= threshold, text(mapping(given).get("reason")))
