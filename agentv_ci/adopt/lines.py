"""Any results with one JSON object per line, by a map of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentv_ci.adopt.values import amount, mapping, messages, share, slug, text, whole
from agentv_ci.contracts.adopted import AdoptedResult
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.json_access import value_at

FIELDS = (
    *("id", "passed", "score", "answer", "question", "expected", "outcome", "suite", "target"),
    *("model", "error", "skip", "duration_ms", "cost_usd", "input_tokens", "output_tokens", "metadata", "reasoning"),
)
"""Fields that a column can have."""
PASSES = frozenset({"pass", "passed", "true", "ok", "success", "correct", "yes", "1"})
"""Texts that are a pass."""


def results(lines: Sequence[JsonObject], columns: Mapping[str, str], threshold: float) -> Iterator[AdoptedResult]:
    """Yield a result for each line; `columns` has the path of the column of each field."""
    for number, line in enumerate(lines, 1):
        row = {name: value_at(line, *columns.get(name, name).split(".")) for name in FIELDS}
        yield _result(row, number, threshold)


def _result(row: Mapping[str, JsonValue], number: int, threshold: float) -> AdoptedResult:
    score = share(row["score"])
    error = text(row["error"]) or None
    skip = text(row["skip"]) or None
    passed = _passed(row["passed"])
    if passed is None and score is not None:
        passed = score >= threshold
    if passed is None and skip is None and error is None:
        error = "the line has neither a verdict nor a score"
    return AdoptedResult(
        id=slug(text(row["id"]) or f"line-{number}"),
        passed=None if error or skip else passed,
        score=score,
        answer=text(row["answer"]),
        question=messages(row["question"]),
        expected=text(row["expected"]) or None,
        outcome=text(row["outcome"]) or None,
        suite=text(row["suite"]) or None,
        line=1 if row["suite"] else number,
        target=slug(text(row["target"]) or "default"),
        model=text(row["model"]) or None,
        reasoning=text(row["reasoning"]),
        error=error,
        skip=skip,
        duration_ms=whole(row["duration_ms"]) or 0,
        cost_usd=amount(row["cost_usd"]),
        input_tokens=whole(row["input_tokens"]),
        output_tokens=whole(row["output_tokens"]),
        metadata=mapping(row["metadata"]),
    )


def _passed(value: JsonValue) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value > 0
    return value.strip().lower() in PASSES if isinstance(value, str) and value.strip() else None
