"""The data of the page: a table row for every case and the texts of its trials, as far as they fit.

The data is encoded so that no text can close its element.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.spending import dollars, parts
from agentv_ci.contracts.base import JsonObject, JsonValue, Verdict
from agentv_ci.contracts.results import OutcomeKey, OutputMessage, ResultRow, sum_of_known
from agentv_ci.json_access import well_formed
from agentv_ci.report.view import RunView, rerun_command, started
from agentv_ci.text import well_formed_text

PASSES, DOUBTFUL, FAILS = 2, 1, 0
"""What is dropped first; the largest goes first."""
MOST_MS = 10**15
"""The longest time that is drawn; rows are untrusted and may hold any number."""
MAX_TEXT = 100_000
"""Characters kept of one text."""
MAX_TRIAL = 2_000_000
"""Bytes of one trial with all its texts, so that a long trace takes no room from others."""

_IN_TABLE = {"eval_id", "suite", "target", "source", "trial", "trials", "require", "status", "verdict", "score"}
"""Fields of a row that the table of cases shows."""
_NOT_SHOWN = {"schema_version", "dataset", "dry_run", "stop_when"}
_AS_TEXT = {"seed", "metadata", "request", "output_messages"}

_OF_CHANGE = {"change", "base", "head", "low", "high", "single", "stale"}
"""Fields of a comparison in a row of the table."""

Rank = tuple[int, int, int, int]
"""Kind, size, case and trial of a piece; the largest rank is dropped first."""


class BoundedPieces:
    """Pieces of a file that together fit into a limit.

    Pieces are dropped by rank, so the order in which they are added does not matter.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._size = 0
        self._pieces: list[tuple[Rank, bytes]] = []
        self._gone_from: Rank | None = None

    def add(self, kind: int, case: int, trial: int, piece: bytes) -> None:
        """Add a piece; pieces of the largest `kind` are dropped first."""
        rank = (kind, len(piece), case, trial)
        if len(piece) > self.limit or (self._gone_from is not None and rank >= self._gone_from):
            return
        self._pieces.append((rank, piece))
        self._size += len(piece)
        # Sorting now and then is cheaper than keeping order.
        if self._size > self.limit * 5 // 4:
            self.shrink(self.limit)

    def shrink(self, limit: int) -> None:
        """Drop pieces until the rest fits into a limit."""
        self._pieces.sort()
        while self._size > max(limit, 0):
            self._gone_from, piece = self._pieces.pop()
            self._size -= len(piece)

    def drop_other_cases(self, cases: Container[int]) -> None:
        """Drop the pieces of all other cases."""
        self._pieces = [(rank, piece) for rank, piece in self._pieces if rank[2] in cases]
        self._size = sum(len(piece) for _, piece in self._pieces)

    def in_order(self) -> list[tuple[int, int, bytes]]:
        """Return case, trial and piece of all pieces that fit."""
        self.shrink(self.limit)
        return sorted((case, trial, piece) for (_, _, case, trial), piece in self._pieces)


@dataclass(frozen=True, slots=True)
class Point:
    """A trial in the plot of time and cost."""

    case: int
    """The number of the case, from 0."""
    trial: int
    verdict: Verdict
    duration_ms: int
    cost: int | None
    """In parts of dollars; None: unknown."""
    score: float


@dataclass(slots=True)
class Trials:
    """What the page shows of the trials of a run."""

    texts: BoundedPieces
    numbers: dict[OutcomeKey, int]
    """The number of each case in the run."""
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
        trials = cls(BoundedPieces(limit), {outcome.key: number for number, outcome in enumerate(run.outcomes)})
        seen: set[tuple[int, int]] = set()
        for row in run.rows():
            number = trials.numbers.get(row.outcome_key)
            if number is None:
                continue
            trials._add(number, row)
            # If a trial occurs twice, the page can show only one of them.
            if (number, row.trial) not in seen:
                seen.add((number, row.trial))
                piece = fitting_block(f"trial-{number}-{row.trial}", details(row), min(limit // 3, MAX_TRIAL))
                trials.texts.add(kind_of(run.outcomes[number]), number, row.trial, piece)
        trials.number = len(seen)
        trials.points.sort(key=lambda point: (point.case, point.trial, point.duration_ms, point.score))
        return trials

    def _add(self, number: int, row: ResultRow) -> None:
        duration_ms = min(row.duration_ms, MOST_MS)
        cost = sum_of_known(parts(row.cost_usd), parts(row.judge_cost_usd))
        self.points.append(Point(number, row.trial, row.verdict, duration_ms, cost, row.score))
        if (start := started(row)) is not None:
            end = start + timedelta(milliseconds=row.duration_ms)
            self.first = min(self.first or start, start)
            self.last = max(self.last or end, end)

    def totals(self) -> dict[int, JsonObject]:
        """Return the mean time and the sum of costs of each case that has trials."""
        by_case = {case: list(points) for case, points in groupby(self.points, key=attrgetter("case"))}
        return {case: _totals(points) for case, points in by_case.items()}


def _totals(points: Sequence[Point]) -> JsonObject:
    milliseconds, trials = sum(each.duration_ms for each in points), len(points)
    costs = [each.cost for each in points if each.cost is not None]
    return {"ms": (2 * milliseconds + trials) // (2 * trials), "cost": dollars(sum(costs)) if costs else None}


def kind_of(outcome: CaseOutcome) -> int:
    """Return the kind of a case's data, which decides what is dropped first."""
    if outcome.verdict in ("fail", "error"):
        return FAILS
    return PASSES if outcome.verdict == "pass" and not outcome.flaky else DOUBTFUL


def case_lines(run: RunView, trials: Trials, limit: int) -> dict[int, bytes]:
    """Return a line of JSON for every case, by its number; beyond `limit` bytes, passed cases are left out first."""
    suites, targets = numbered_names(run.outcomes)
    comparison = run.report.comparison
    compared = {each.key: each.model_dump(include=_OF_CHANGE) for each in (comparison.cases if comparison else ())}
    unchanged: JsonObject = {"change": "unchanged"} if comparison else {}
    intervals = {each.key: [each.pass_rate_low, each.pass_rate_high] for each in run.report.repeated if each.graded}
    totals = trials.totals()
    lines = BoundedPieces(limit)
    for number, outcome in enumerate(run.outcomes):
        source = outcome.case.source
        entry: JsonObject = {
            "n": number,
            "id": outcome.case.id,
            "suite": suites[outcome.case.suite],
            "target": targets[outcome.target],
            **_verdict(outcome),
            "path": source.path if source.path != outcome.case.suite else None,
            "line": source.line,
            "link": run.links.to(source.path, source.line),
            "rerun": rerun_command(*outcome.key),
            **totals.get(number, {}),
            "interval": [*intervals.get(outcome.key, ())] or None,
            **compared.get(outcome.key, unchanged),
        }
        line = encoded({name: value for name, value in entry.items() if value is not None and value is not False})
        lines.add(kind_of(outcome), number, 0, f"{line},\n".encode())
    return {number: piece.removesuffix(b",\n") for number, _, piece in lines.in_order()}


def table_blocks(run: RunView, trials: Trials, lines: dict[int, bytes]) -> bytes:
    """Return the data of the table of cases, and the names that its rows refer to."""
    comparison = run.report.comparison
    suites, targets = numbered_names(run.outcomes)
    facts: JsonObject = {
        "suites": list(suites),
        "targets": list(targets),
        "confidence": comparison.confidence if comparison else None,
        "cases": len(run.outcomes),
        "trials": trials.number,
        "texts": len(trials.texts.in_order()),
    }
    table = b",\n".join(lines.values())
    return block("run", facts) + b'<script type="application/json" id="cases">[' + table + b"]</script>\n"


def numbered_names(outcomes: Sequence[CaseOutcome]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the suites and the targets, each with its number."""
    suites = sorted({each.case.suite for each in outcomes})
    targets = sorted({each.target for each in outcomes})
    return {name: number for number, name in enumerate(suites)}, {name: number for number, name in enumerate(targets)}


def _verdict(outcome: CaseOutcome) -> JsonObject:
    several = outcome.case.trials > 1 or len(outcome.trials) > 1
    is_first = [each.number for each in outcome.trials] in ([], [1])
    trials: list[JsonValue] = [[each.number, each.verdict, each.score, each.summary] for each in outcome.trials]
    return {
        "verdict": outcome.verdict,
        "score": outcome.score if outcome.graded else None,
        "why": outcome.summary or None,
        "flaky": outcome.flaky,
        "trials": trials if several or not is_first else None,
        "missing": outcome.missing or None,
        "require": outcome.case.require if several else None,
        "idle": not outcome.trials,
    }


def details(row: ResultRow) -> JsonObject:
    """Return the texts and figures of a row under its own field names, without those that are empty."""
    said_by_evaluators = {"hits", "misses", "reasoning"} if row.evaluator_results else set[str]()
    return _known(
        {
            **row.model_dump(exclude=_IN_TABLE | _NOT_SHOWN | _AS_TEXT | said_by_evaluators),
            # JavaScript would round a large number.
            "seed": None if row.seed is None else str(row.seed),
            "metadata": _pretty(row.metadata or None),
            "request": _pretty(row.request or None),
            "output_messages": [_turn(each) for each in row.output_messages or ()],
        }
    )


def _turn(turn: OutputMessage) -> JsonObject:
    calls: list[JsonValue] = [
        {"tool": each.tool, "input": _pretty(each.input), "output": _pretty(each.output)} for each in turn.tool_calls
    ]
    return {"role": turn.role, "content": _pretty(turn.content), "tool_calls": calls}


def _known(value: JsonObject) -> JsonObject:
    """Return an object without empty values, at any depth."""
    known = ((key, _known_parts(each)) for key, each in value.items())
    return {key: each for key, each in known if each not in (None, "", [], {}) and each is not False}


def _known_parts(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return _known(value)
        case list() | tuple():
            return [_known_parts(each) for each in value]
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


def fitting_block(name: str, value: JsonObject, limit: int) -> bytes:
    """Return a block of at most about `limit` bytes; if its texts are too long, only their beginnings are kept."""
    pieces = (block(name, _beginnings(value, longest)) for longest in (MAX_TEXT, 20_000, 4_000, 800))
    fitting = (piece for piece in pieces if len(piece) <= limit)
    return next(fitting, None) or block(name, _beginnings(value, 100))


def _beginnings(value: JsonValue, longest: int) -> JsonValue:
    """Return a copy in which longer texts are cut to their beginning and carry their full length."""
    match value:
        case str() if len(value) > longest:
            return {"text": value[:longest], "length": len(value)}
        case dict():
            return {key: _beginnings(each, longest) for key, each in value.items()}
        case list():
            return [_beginnings(each, longest) for each in value]
        case _:
            return value


def block(name: str, value: JsonValue) -> bytes:
    """Return an element that holds a value as data; scripts find it by its name, which needs no escaping."""
    return f'<script type="application/json" id="{name}">{encoded(value)}</script>\n'.encode()


def encoded(value: JsonValue) -> str:
    """Return JSON that is safe anywhere in a page, with U+FFFD for lone surrogates and null for NaN."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(well_formed(value), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return well_formed_text(text)
