"""The cases of a page: a line for each, and the texts of their trials, as far as a file has room for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agentv_ci.analysis.outcomes import CaseOutcome, OutcomeKey, key_of
from agentv_ci.analysis.spending import PARTS
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.compared import Change, ComparedCase, Comparison, Rate
from agentv_ci.contracts.exchange import Verdict
from agentv_ci.contracts.report import RepeatedCase
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.links import Links
from agentv_ci.report.renderers.html.details import details
from agentv_ci.report.renderers.html.embedding import beginnings, block, encoded
from agentv_ci.report.renderers.html.keeping import Keeper
from agentv_ci.report.view import RunView, rerun_command

PASSES, DOUBTFUL, FAILS = 2, 1, 0
"""How little the texts of a case will be missed."""


MAX_TRIAL = 2_000_000
"""Bytes of one trial, however many texts it has: a long trace takes the place of nobody else."""


@dataclass(frozen=True, slots=True)
class Point:
    """A trial in the plot of time and money."""

    case: int
    """Which case, counted from 0."""
    trial: int
    verdict: Verdict
    duration_ms: int
    cost_usd: float | None
    score: float


@dataclass(slots=True)
class Spent:
    """What the trials of a case took; sums of whole numbers, the same in any order."""

    trials: int = 0
    duration_ms: int = 0
    cost: int | None = None
    """In parts of dollars; None: nothing is known."""

    def add(self, row: ResultRow) -> None:
        """Take in a trial."""
        self.trials += 1
        self.duration_ms += row.duration_ms
        for cost in (row.cost_usd, row.judge_cost_usd):
            if cost is not None:
                self.cost = (self.cost or 0) + round(cost * PARTS)

    def figures(self) -> JsonObject:
        """Return the mean time and the sum of costs."""
        return {
            "ms": (2 * self.duration_ms + self.trials) // (2 * self.trials) if self.trials else None,
            "cost": None if self.cost is None else self.cost / PARTS,
        }


@dataclass(slots=True)
class Period:
    """When a run took place, as far as its rows know."""

    first: datetime | None = None
    last: datetime | None = None

    def add(self, row: ResultRow) -> None:
        """Take in a trial, from its beginning to its end."""
        try:
            end = datetime.fromisoformat(row.timestamp).astimezone(UTC)
            start = end - timedelta(milliseconds=row.duration_ms)
        except (ValueError, OverflowError):
            return
        self.first = start if self.first is None else min(self.first, start)
        self.last = end if self.last is None else max(self.last, end)


@dataclass(slots=True)
class Casebook:
    """What a page has of every case."""

    outcomes: Sequence[CaseOutcome]
    spent: list[Spent]
    points: list[Point]
    texts: Keeper
    trials: int
    """Trials whose texts there are, before any was left out."""
    period: Period

    @classmethod
    def of(cls, run: RunView, limit: int) -> Casebook:
        """Read the rows, once and in any order, and hold texts of at most `limit` bytes."""
        book = cls(run.outcomes, [Spent() for _ in run.outcomes], [], Keeper(limit), 0, Period())
        numbers = {outcome.key: number for number, outcome in enumerate(run.outcomes)}
        seen: set[tuple[int, int]] = set()
        for row in run.rows():
            number = numbers.get(key_of(row))
            if number is not None:
                # Of a trial that is there twice, one text can be found.
                book._add(number, row, has_texts=(number, row.trial) not in seen)
                seen.add((number, row.trial))
        book.points.sort(key=lambda point: (point.case, point.trial, point.duration_ms, point.score))
        return book

    def _add(self, number: int, row: ResultRow, *, has_texts: bool) -> None:
        self.spent[number].add(row)
        self.period.add(row)
        costs = [each for each in (row.cost_usd, row.judge_cost_usd) if each is not None]
        cost = sum(costs) if costs else None
        self.points.append(Point(number, row.trial, row.verdict, row.duration_ms, cost, row.score))
        if not has_texts:
            return
        self.trials += 1
        piece = _fitting_block(f"trial-{number}-{row.trial}", details(row), min(self.texts.limit // 3, MAX_TRIAL))
        self.texts.add(kind_of(self.outcomes[number]), number, row.trial, piece)


def _fitting_block(name: str, value: JsonObject, limit: int) -> bytes:
    """Return a block of at most about `limit` bytes: of texts too long together only beginnings are left."""
    piece = block(name, value)
    for longest in (20_000, 4_000, 800, 100):
        if len(piece) <= limit:
            break
        piece = block(name, {key: beginnings(each, longest) for key, each in value.items()})
    return piece


def kind_of(outcome: CaseOutcome) -> int:
    """Return how little the texts of a case will be missed."""
    match outcome.verdict:
        case "pass":
            return DOUBTFUL if outcome.flaky else PASSES
        case "borderline":
            return DOUBTFUL
        case _:
            return FAILS


@dataclass(frozen=True, slots=True)
class TableLines:
    """The lines of a table of cases, as JSON texts."""

    kept: list[tuple[int, str]]
    """Number of the case, and its line; in order."""
    cases: int
    """How many there would be."""

    def blocks(self, run: JsonObject) -> bytes:
        """Return the data of the table; `run` is what its lines refer to."""
        lines = "[" + ",\n".join(line for _, line in self.kept) + "]"
        table = f'<script type="application/json" id="cases">{lines}</script>\n'
        return block("run", run) + table.encode()


def table_lines(run: RunView, book: Casebook, limit: int) -> TableLines:
    """Return the lines of all cases; where they take more than `limit` bytes, passed cases go first."""
    suites, targets = names_of(run.outcomes)
    compared = _changes(run.report.comparison)
    intervals = {each.key: each for each in run.report.repeated}
    lines: list[tuple[int, str]] = []
    for number, outcome in enumerate(run.outcomes):
        key = outcome.key
        entry: JsonObject = {
            "n": number,
            "id": outcome.case.id,
            "suite": suites[outcome.case.suite],
            "target": targets[outcome.target],
            **_verdict(outcome),
            **_place(outcome, run.links),
            **book.spent[number].figures(),
            **_repeated(intervals.get(key)),
            **_compared(compared.get(key), run.report.comparison),
        }
        kept: JsonObject = {name: value for name, value in entry.items() if value is not None and value is not False}
        lines.append((number, encoded(kept)))
    return TableLines(_fitting(run.outcomes, lines, limit), len(lines))


def _fitting(outcomes: Sequence[CaseOutcome], lines: Sequence[tuple[int, str]], limit: int) -> list[tuple[int, str]]:
    if sum(len(line.encode()) + 2 for _, line in lines) <= limit:
        return list(lines)
    keeper = Keeper(limit)
    for number, line in lines:
        keeper.add(kind_of(outcomes[number]), number, 0, f"{line},\n".encode())
    return [(number, piece.decode().removesuffix(",\n")) for number, _, piece in keeper.kept]


def names_of(outcomes: Sequence[CaseOutcome]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the suites and the targets, numbered in their order."""
    suites = sorted({each.case.suite for each in outcomes})
    targets = sorted({each.target for each in outcomes})
    return {name: number for number, name in enumerate(suites)}, {name: number for number, name in enumerate(targets)}


def _changes(comparison: Comparison | None) -> dict[OutcomeKey, ComparedCase]:
    """Return what became of the cases that changed."""
    return {each.key: each for each in (comparison.cases if comparison else ())}


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


def _place(outcome: CaseOutcome, links: Links) -> JsonObject:
    case = outcome.case
    return {
        "path": case.source.path if case.source.path != case.suite else None,
        "line": case.source.line,
        "link": links.to(case.source.path, case.source.line),
        "rerun": rerun_command(*outcome.key),
    }


def _repeated(case: RepeatedCase | None) -> JsonObject:
    return {"interval": [case.pass_rate_low, case.pass_rate_high]} if case is not None and case.graded else {}


def _compared(case: ComparedCase | None, comparison: Comparison | None) -> JsonObject:
    if comparison is None:
        return {}
    if case is None:
        unchanged: Change = "unchanged"
        return {"change": unchanged}
    return {
        "change": case.change,
        "base": _rate(case.base),
        "head": _rate(case.head),
        "low": case.low,
        "high": case.high,
        "single": case.single,
        "stale": case.stale,
    }


def _rate(rate: Rate | None) -> JsonValue:
    return None if rate is None else [rate.verdict, rate.passed, rate.graded, rate.mean]
