"""The data of the page.

It has a table row for every case and the texts of its trials, as far as they fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from msgspec import Struct, field

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.spending import dollars, parts
from agentv_ci.contracts.base import JsonObject, JsonValue, Verdict
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.results import OutputMessage, ResultRow, sum_of_known
from agentv_ci.report.quarantine import sentence
from agentv_ci.report.renderers.html.blocks import block, encoded, fitting_block
from agentv_ci.report.renderers.html.bounded import BoundedPieces
from agentv_ci.report.view import RunView, started

PASSES, DOUBTFUL, FAILS = 2, 1, 0
"""What is dropped first; the largest goes first."""
MOST_MS = 10**15
"""The longest time that is drawn; rows are untrusted and may hold any number."""
MAX_TRIAL = 2_000_000
"""Bytes of one trial with all its texts, so that a long trace takes no room from others."""
MAX_BRIEF = 240
"""Characters of a question or an answer in the table."""
MAX_NAMES = 500
"""Tags and evaluators that the table filters by."""

_IN_TABLE = {
    "eval_id",
    "suite",
    "target",
    "source",
    "trial",
    "trials",
    "require",
    "status",
    "verdict",
    "score",
    "tags",
    "skip",
}
"""Fields of a row that the table of cases shows."""
_NOT_SHOWN = {"schema_version", "dataset", "dry_run", "stop_when"}
_AS_TEXT = {"seed", "metadata", "request", "output_messages"}

_ATTACHED = re.compile(r"<Attached: [^>\n]*>")
"""What stands for a guideline in a question."""
_OF_CHANGE = {"change", "base", "head", "low", "high", "single", "stale", "answer_before"}
"""Fields of a comparison in a row of the table."""


class Point(Struct, frozen=True):
    """A trial in the plot of time and cost."""

    case: int
    """The number of the case, from 0."""
    trial: int
    verdict: Verdict
    duration_ms: int
    cost: int | None
    """In parts of dollars; None: unknown."""
    score: float


class Brief(Struct):
    """What the table shows of the texts of a case."""

    question: str = ""
    answer: str = ""
    """That of the trial that explains the verdict."""
    tags: tuple[str, ...] = ()
    misses: set[str] = field(default_factory=set)
    """The evaluators that did not pass in all trials."""


class Trials(Struct):
    """What the page shows of the trials of a run."""

    texts: BoundedPieces
    numbers: dict[CaseKey, int]
    """The number of each case in the run."""
    shown: tuple[int | None, ...]
    """The trial that explains each verdict; None: it has none."""
    briefs: dict[int, Brief] = field(default_factory=dict)
    """By the number of the case."""
    models: dict[str, set[str]] = field(default_factory=dict)
    """The models that answered, by target."""
    points: list[Point] = field(default_factory=list)
    number: int = 0
    """The number of trials, including those whose texts were left out."""
    first: datetime | None = None
    """When the run began, according to its rows."""
    last: datetime | None = None
    """When it ended."""

    @classmethod
    def of(cls, run: RunView, limit: int) -> Trials:
        """Read the rows, once and in any order, and hold texts of about `limit` bytes at most."""
        numbers = {outcome.key: number for number, outcome in enumerate(run.outcomes)}
        trials = cls(BoundedPieces(limit), numbers, tuple(map(shown_trial, run.outcomes)))
        seen: set[tuple[int, int]] = set()
        for row in run.rows():
            number = trials.numbers.get(row.case_key)
            if number is None:
                continue
            trials._add(number, row)
            # If a trial occurs twice, the page can show only one of them.
            if row.verdict == "skipped":
                trials._note(number, row)
            elif (number, row.trial) not in seen:
                seen.add((number, row.trial))
                trials._note(number, row)
                piece = fitting_block(
                    f"trial-{number}-{row.trial}", details(row), min(limit // 3, MAX_TRIAL)
                )
                trials.texts.add(kind_of(run.outcomes[number]), number, row.trial, piece)
        trials.number = len(seen)
        trials.points.sort(
            key=lambda point: (point.case, point.trial, point.duration_ms, point.score)
        )
        return trials

    def _add(self, number: int, row: ResultRow) -> None:
        if row.verdict == "skipped":
            return
        duration_ms = min(row.duration_ms, MOST_MS)
        cost = sum_of_known(parts(row.cost_usd), parts(row.judge_cost_usd))
        self.points.append(
            Point(number, row.trial, row.verdict, duration_ms, cost, row.score or 0.0)
        )
        if (start := started(row)) is not None:
            end = start + timedelta(milliseconds=row.duration_ms)
            self.first = min(self.first or start, start)
            self.last = max(self.last or end, end)

    def _note(self, number: int, row: ResultRow) -> None:
        brief = self.briefs.setdefault(number, Brief())
        brief.misses |= {
            result.name
            for result in row.evaluator_results
            if result.verdict not in ("pass", "skipped")
        }
        if row.model:
            self.models.setdefault(row.arm or row.target, set()).add(row.model)
        if row.trial == self.shown[number]:
            brief.question = beginning(_ATTACHED.sub("", _question(row)))
            brief.answer = beginning(row.candidate_answer)
            brief.tags = row.tags

    def totals(self) -> dict[int, JsonObject]:
        """Return the mean time and the sum of costs of each case that has trials."""
        by_case = groupby(self.points, key=attrgetter("case"))
        return {case: _totals(list(points)) for case, points in by_case}


def _question(row: ResultRow) -> str:
    """Return the last message of the user; empty without one."""
    for message in reversed(row.input_messages or ()):
        if message.role == "user":
            return message.content
    return ""


def _totals(points: Sequence[Point]) -> JsonObject:
    milliseconds, trials = sum(point.duration_ms for point in points), len(points)
    costs = [point.cost for point in points if point.cost is not None]
    return {
        "ms": (2 * milliseconds + trials) // (2 * trials),
        "cost": dollars(sum(costs)) if costs else None,
    }


def shown_trial(outcome: CaseOutcome) -> int | None:
    """Return the number of the trial that explains a verdict: one that passed, or one that did not."""
    if outcome.verdict != "pass" and outcome.worst is not None:
        return outcome.worst.number
    passed = (trial.number for trial in outcome.trials if trial.verdict == "pass")
    return next(passed, outcome.trials[0].number if outcome.trials else None)


def beginning(text: str) -> str:
    """Return the beginning of a text, on one line."""
    words = " ".join(text[: 4 * MAX_BRIEF].split())
    if len(words) <= MAX_BRIEF:
        return words
    return f"{words[: MAX_BRIEF - 1]}…"


def kind_of(outcome: CaseOutcome) -> int:
    """Return the kind of a case's data, which decides what is dropped first."""
    if outcome.verdict in ("fail", "error"):
        return FAILS
    if outcome.verdict == "pass" and not outcome.flaky:
        return PASSES
    return DOUBTFUL


def case_lines(run: RunView, trials: Trials, limit: int) -> dict[int, bytes]:
    """Return a line of JSON for every case, by its number.

    Beyond `limit` bytes, passed cases are left out first.
    """
    suites, targets = numbered_names(run.outcomes)
    tags, evaluators = filter_names(trials)
    comparison = run.report.comparison
    compared: dict[CaseKey, JsonObject] = {}
    unchanged: JsonObject = {}
    if comparison is not None:
        compared = {case.key: case.model_dump(include=_OF_CHANGE) for case in comparison.cases}
        unchanged = {"change": "unchanged"}
    intervals = {
        case.key: [case.pass_rate_low, case.pass_rate_high]
        for case in run.report.repeated
        if case.graded
    }
    totals = trials.totals()
    lines = BoundedPieces(limit)
    for number, outcome in enumerate(run.outcomes):
        source = outcome.case.source
        brief = trials.briefs.get(number, Brief())
        entry: JsonObject = {
            "n": number,
            "id": outcome.case.id,
            "suite": suites[outcome.case.suite],
            "target": targets[outcome.target],
            **_verdict(outcome),
            "path": source.path if source.path != outcome.case.suite else None,
            "line": source.line,
            "link": run.links.to(source.path, source.line),
            "rerun": run.again(outcome),
            "question": brief.question or None,
            "answer": brief.answer or None,
            "shown": trials.shown[number],
            "tags": [tags[tag] for tag in brief.tags if tag in tags] or None,
            "misses": [evaluators[miss] for miss in sorted(brief.misses) if miss in evaluators]
            or None,
            **totals.get(number, {}),
            "interval": [*intervals.get(outcome.key, ())] or None,
            **compared.get(outcome.key, unchanged if outcome.quarantine is None else {}),
        }
        line = encoded(_without_blanks(entry))
        lines.add(kind_of(outcome), number, 0, f"{line},\n".encode())
    return {number: piece.removesuffix(b",\n") for number, _, piece in lines.in_order()}


def table_blocks(run: RunView, trials: Trials, lines: dict[int, bytes]) -> bytes:
    """Return the data of the table of cases, and the names that its rows refer to."""
    comparison = run.report.comparison
    suites, targets = numbered_names(run.outcomes)
    tags, evaluators = filter_names(trials)
    facts: JsonObject = {
        "suites": list(suites),
        "targets": list(targets),
        "models": [", ".join(sorted(trials.models.get(target, ()))) for target in targets],
        "tags": list(tags),
        "evaluators": list(evaluators),
        "confidence": comparison.confidence if comparison else None,
        "cases": len(run.outcomes),
        "trials": trials.number,
        "missing": "not run" if run.report.leaves_cases else "without a result",
        "texts": len(trials.texts.in_order()),
    }
    rows = b",\n".join(lines.values())
    table = b'<script type="application/json" id="cases">[' + rows + b"]</script>\n"
    return block("run", facts) + table


def numbered_names(outcomes: Sequence[CaseOutcome]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the suites and the targets, each with its number.

    Suites are sorted; targets are in the order of the author.
    """
    suites = sorted({outcome.case.suite for outcome in outcomes})
    return numbered(suites), numbered(dict.fromkeys(outcome.target for outcome in outcomes))


def filter_names(trials: Trials) -> tuple[dict[str, int], dict[str, int]]:
    """Return tags of cases and evaluators that did not always pass, each with its number."""
    tags: set[str] = set()
    misses: set[str] = set()
    for brief in trials.briefs.values():
        tags.update(brief.tags)
        misses |= brief.misses
    return numbered(sorted(tags)[:MAX_NAMES]), numbered(sorted(misses)[:MAX_NAMES])


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Return the names in their order, each with its number."""
    return {name: number for number, name in enumerate(names)}


def _without_blanks(entry: JsonObject) -> JsonObject:
    """Return an entry without values that are null or false."""
    return {
        name: value for name, value in entry.items() if value is not None and value is not False
    }


def _verdict(outcome: CaseOutcome) -> JsonObject:
    several = outcome.case.trials > 1 or len(outcome.trials) > 1
    is_first = [trial.number for trial in outcome.trials] in ([], [1])
    trials: list[JsonValue] = [
        [trial.number, trial.verdict, trial.score, trial.summary] for trial in outcome.trials
    ]
    return {
        "verdict": "not run" if outcome.not_run else outcome.verdict,
        "score": outcome.score if outcome.graded else None,
        "why": None if outcome.not_run else outcome.summary or None,
        "flaky": outcome.flaky,
        "quarantine": sentence(outcome.quarantine) if outcome.quarantine is not None else None,
        "trials": trials if several or not is_first else None,
        "missing": outcome.missing or None,
        "require": outcome.case.require if several else None,
        "idle": not outcome.trials,
    }


def details(row: ResultRow) -> JsonObject:
    """Return the texts and figures of a row under its own field names.

    Those that are empty are left out.
    """
    said_by_evaluators = set[str]()
    if row.evaluator_results:
        said_by_evaluators = {"hits", "misses", "reasoning"}
    return _known(
        {
            **row.model_dump(exclude=_IN_TABLE | _NOT_SHOWN | _AS_TEXT | said_by_evaluators),
            # JavaScript would round a large number.
            "seed": None if row.seed is None else str(row.seed),
            "metadata": _pretty(row.metadata or None),
            "request": _pretty(row.request or None),
            "output_messages": list(map(_turn, row.output_messages or ())),
        }
    )


def _turn(turn: OutputMessage) -> JsonObject:
    calls: list[JsonValue] = [
        {"tool": call.tool, "input": _pretty(call.input), "output": _pretty(call.output)}
        for call in turn.tool_calls
    ]
    return {"role": turn.role, "content": _pretty(turn.content), "tool_calls": calls}


def _known(value: JsonObject) -> JsonObject:
    """Return an object without empty values, at any depth."""
    known = ((key, _known_parts(item)) for key, item in value.items())
    return {
        key: item for key, item in known if item not in (None, "", [], {}) and item is not False
    }


def _known_parts(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return _known(value)
        case list() | tuple():
            return list(map(_known_parts, value))
        case _:
            return value


def _pretty(value: JsonValue) -> str | None:
    """Return indented JSON; a string stays as it is, null becomes None."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return "nested too deeply to be shown"
