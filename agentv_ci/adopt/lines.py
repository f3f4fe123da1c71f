"""Any results with one JSON object per line, by a map of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentv_ci.adopt.scores import WORDS, Given, Scores, UnknownScore
from agentv_ci.adopt.values import amount, mapping, messages, text, whole
from agentv_ci.contracts.adopted import AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.json_access import value_at

FIELDS = (
    *("id", "passed", "score", "answer", "question", "expected", "outcome", "suite", "target"),
    *("model", "error", "skip", "duration_ms", "cost_usd", "input_tokens", "output_tokens", "metadata", "reasoning"),
)
"""Fields that a column can have."""
NO = frozenset({"", "false", "no", "none", "null", "0"})
"""Texts that say that a result has no error, or was not skipped."""


def results(lines: Sequence[JsonObject], how: HowToRead) -> AdoptedFile:
    """Return a result for each line."""
    paths = {name: how.columns.get(name, name).split(".") for name in FIELDS}
    rows = [{name: value_at(line, *path) for name, path in paths.items()} for line in lines]
    scores = Scores(how, (Given("score", row["score"]) for row in rows))
    return AdoptedFile(tuple(_result(row, number, scores, how) for number, row in enumerate(rows, 1)))


def _result(row: Mapping[str, JsonValue], number: int, scores: Scores, how: HowToRead) -> AdoptedResult:
    error, skip = _reason(row["error"], "error"), _reason(row["skip"], "skipped")
    passed, score = None, None
    if error is None and skip is None:
        try:
            passed, score = _verdict(row, scores, how)
        except UnknownScore as unknown:
            error = str(unknown)
    name, model = text(row["id"]), text(row["model"])
    return AdoptedResult(
        name=name or f"line-{number}",
        distinctions=(text(row["question"]), text(row["expected"]), text(row["outcome"]), model),
        passed=passed,
        score=score,
        answer=text(row["answer"]),
        question=messages(row["question"]),
        expected=text(row["expected"]) or None,
        outcome=text(row["outcome"]) or None,
        suite=text(row["suite"]) or None,
        line=1 if row["suite"] else number,
        target=text(row["target"]) or model or "default",
        model=model or None,
        reasoning=text(row["reasoning"]),
        error=error,
        skip=None if error else skip,
        duration_ms=whole(row["duration_ms"]) or 0,
        cost_usd=amount(row["cost_usd"]),
        input_tokens=whole(row["input_tokens"]),
        output_tokens=whole(row["output_tokens"]),
        metadata=mapping(row["metadata"]),
    )


def _reason(value: JsonValue, default: str) -> str | None:
    """Return why there is an error or a result was skipped; None for a value that says that it is not so."""
    if value is True:
        return default
    if not value or (isinstance(value, str) and value.strip().lower() in NO):
        return None
    return text(value)


def _verdict(row: Mapping[str, JsonValue], scores: Scores, how: HowToRead) -> tuple[bool, float | None]:
    """Return whether a result passed, and its score; raises UnknownScore."""
    score = None
    if row["score"] not in (None, "") and "score" not in how.ignored:
        score = scores.score(Given("score", row["score"]))
    if row["passed"] not in (None, ""):
        return _passed(row["passed"], scores, how), score
    if score is None:
        raise UnknownScore("the line has neither a verdict nor a score")
    return scores.passes(row["score"], score), score


def _passed(value: JsonValue, scores: Scores, how: HowToRead) -> bool:
    """Return a verdict; raises UnknownScore for a value that is none."""
    if isinstance(value, bool) or (isinstance(value, (int, float)) and value in (0, 1)):
        return bool(value)
    written = text(value).strip()
    known = how.grades.get(written, WORDS.get(written.lower(), {"1": 1.0, "0": 0.0}.get(written)))
    if known is None:
        raise UnknownScore(f"'passed' is {written}: say what it is worth with --map '{written}=SCORE'")
    return known > 0 and scores.passes(written, known)
