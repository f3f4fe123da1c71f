"""Any results with one JSON object per line, by a map of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from agentv_ci.base.canonical import canonical
from agentv_ci.base.json_access import found_at, value_at
from agentv_ci.base.text import did_you_mean
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.other_tools.adopt.scores import WORDS, Given, Scores, UnknownScore
from agentv_ci.other_tools.adopt.values import amount, mapping, messages, text, whole

FIELDS = (
    *("id", "passed", "score", "answer", "question", "expected", "outcome", "suite", "target"),
    *(
        "model",
        "error",
        "skip",
        "duration_ms",
        "cost_usd",
        "input_tokens",
        "output_tokens",
        "metadata",
        "reasoning",
    ),
)
"""Fields that a column can have."""
NO = frozenset(
    {
        "",
        "-",
        "false",
        "no",
        "n",
        "off",
        "none",
        "null",
        "nil",
        "nan",
        "<na>",
        "n/a",
        "na",
        "0",
        "0.0",
    }
)
"""Texts that say that a result has no error, or was not skipped; tables write empty cells in many
ways.
"""
OF_THE_RESULT = (
    *("passed", "score", "answer", "error", "skip", "reasoning"),
    *("duration_ms", "cost_usd", "input_tokens", "output_tokens"),
)
"""Fields that differ between trials of one case."""
OF_THE_RUN = frozenset(
    {
        *(
            "trial",
            "trials",
            "repeat",
            "repetition",
            "attempt",
            "iteration",
            "epoch",
            "seed",
            "line",
        ),
        *("run", "run_id", "trace_id", "request_id", "session_id", "uuid"),
        *(
            "time",
            "timestamp",
            "date",
            "created",
            "created_at",
            "started_at",
            "finished_at",
            "completed_at",
        ),
        *(
            "duration",
            "duration_s",
            "latency",
            "latency_ms",
            "elapsed",
            "cost",
            "usage",
            "tokens",
            "total_tokens",
        ),
    }
)
"""Columns, and keys in them, that do so too."""

Path = tuple[str, ...]


def results(lines: Sequence[JsonObject], how: HowToRead) -> AdoptedFile:
    """Return a result for each line."""
    columns_of_lines = frozenset(chain.from_iterable(lines))

    def path_of(name: str) -> Path:
        """Return where a name leads; a column may have a dot in its name."""
        if name in columns_of_lines:
            return (name,)
        return tuple(name.split("."))

    paths = {name: path_of(how.columns.get(name, name)) for name in FIELDS}
    ignored = {name: path_of(name) for name in how.ignored}
    _require_columns(lines, {name: (path, path_of(path)) for name, path in how.columns.items()})
    rows = [{name: value_at(line, *path) for name, path in paths.items()} for line in lines]
    scores = Scores(how, (Given("score", row["score"]) for row in rows if row["score"] is not None))
    left_out = {*(paths[name] for name in OF_THE_RESULT), *ignored.values()}
    definitions = [mapping(_defining(line, left_out)) for line in lines]
    columns = [*dict.fromkeys(chain.from_iterable(definitions))]
    found = (
        _result(row, number, (*_plainest(row), *_distinctions(definition, columns)), scores, how)
        for number, (row, definition) in enumerate(zip(rows, definitions, strict=True), 1)
    )
    ignorable = frozenset(
        name for name, path in ignored.items() if any(found_at(line, *path) for line in lines)
    )
    return AdoptedFile(tuple(found), scores=scores.names, columns=ignorable)


def _require_columns(lines: Sequence[JsonObject], named: Mapping[str, tuple[str, Path]]) -> None:
    """Raise ValueError for a column that the user names for a field and no line has."""
    for field, (name, path) in named.items():
        if lines and not any(found_at(line, *path) for line in lines):
            near = did_you_mean(name, [*dict.fromkeys(chain.from_iterable(lines))])
            raise ValueError(f"no line has '{name}', which --map {field}={name} names{near}")


def _defining(value: JsonValue, left_out: AbstractSet[Path], path: Path = ()) -> JsonValue:
    """Return what a line says about its test: without what differs between trials."""
    if not isinstance(value, dict):
        return value
    inner = {name: (*path, name) for name, item in value.items() if item is not None}
    return {
        name: _defining(value[name], left_out, place)
        for name, place in inner.items()
        if place not in left_out and name.lower() not in OF_THE_RUN
    }


def _plainest(row: Mapping[str, JsonValue]) -> Iterator[str]:
    for name in ("question", "expected", "outcome", "model"):
        yield text(row[name])


def _distinctions(definition: JsonObject, columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        yield text(definition.get(name))
    yield canonical(definition)


def _result(
    row: Mapping[str, JsonValue],
    number: int,
    distinctions: tuple[str, ...],
    scores: Scores,
    how: HowToRead,
) -> AdoptedResult:
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
        distinctions=distinctions,
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
    """Return why there is an error or a result was skipped.

    None for a value that says that it is not so.
    """
    if value is True:
        return default
    if not value or (isinstance(value, str) and value.strip().lower() in NO):
        return None
    return text(value)


def _verdict(
    row: Mapping[str, JsonValue], scores: Scores, how: HowToRead
) -> tuple[bool, float | None]:
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
        raise UnknownScore(
            f"'passed' is {written}: say what it is worth with --map '{written}=SCORE'"
        )
    return known > 0 and scores.passes(written, known)
