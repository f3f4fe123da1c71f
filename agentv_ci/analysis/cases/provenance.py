"""What the results of a case come from, as far as its rows say.

These are the task, the models that answered, and the judges.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import EvaluatorResult, ResultRow

DIGEST_BYTES = 16


class Makeup(Struct, frozen=True, gc=False):
    """What the results of a case come from."""

    task: str = ""
    """A digest of the question and of how answers are scored, without texts of files and judges;
    empty: unknown.
    """
    models: tuple[str, ...] = ()
    """Models that answered, as reported by the provider."""
    judges: tuple[str, ...] = ()
    """Models that judged, or else their targets."""

    def plus(self, other: Makeup) -> Makeup:
        """Return the makeup of the trials of both, in any order."""
        if other == self:
            return self
        models, judges = {*self.models, *other.models}, {*self.judges, *other.judges}
        return Makeup(max(self.task, other.task), tuple(sorted(models)), tuple(sorted(judges)))


NO_MAKEUP = Makeup()


def makeup_of(row: ResultRow) -> Makeup:
    """Return the makeup of a trial that is graded."""
    judges = tuple(sorted({*_judges(row.evaluator_results)}))
    models = (row.model,) if row.model is not None else ()
    return Makeup(_task(row), models, judges)


def _judges(results: Sequence[EvaluatorResult]) -> Iterator[str]:
    for result in results:
        if result.judge is not None and not result.compares_arms:
            yield result.judge
        yield from _judges(result.evaluator_results or ())


def _task(row: ResultRow) -> str:
    messages = row.input_messages or ()
    question = [[message.role, message.name, message.content] for message in messages]
    task = [
        question,
        row.expected_outcome,
        row.reference_answer,
        *map(_scoring, row.evaluator_results),
    ]
    text = json.dumps(task, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).hexdigest()


def _scoring(result: EvaluatorResult) -> JsonValue:
    return [
        result.name,
        result.type,
        result.weight,
        result.required,
        _without_judge(result.settings),
        list(map(_scoring, result.evaluator_results or ())),
    ]


def _without_judge(settings: str | None) -> JsonValue:
    """Return settings of an evaluator without its judge and its files.

    Long ones are shortened, and stay a text.
    """
    if settings is None:
        return None
    try:
        given = json.loads(settings)
    except ValueError:
        return settings
    if not isinstance(given, dict):
        return settings
    for part in (given, given.get("aggregator")):
        if isinstance(part, dict):
            part.pop("target", None)
    return _without_files(given)


def _without_files(value: JsonValue) -> JsonValue:
    """Return settings without references to files, whose names and texts may change."""
    if isinstance(value, list):
        return [_without_files(item) for item in value if not _is_file(item)]
    if isinstance(value, dict):
        return {name: _without_files(item) for name, item in value.items() if not _is_file(item)}
    return value


def _is_file(value: JsonValue) -> bool:
    return isinstance(value, dict) and {"path", "sha256"} <= value.keys()
