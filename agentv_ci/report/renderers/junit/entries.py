"""What stands in a JUnit file: a test for every trial, and one for what is left of a case that was not run.

A file is meant to stay below a size. Where it would not, answers are shortened, those of trials that passed first; no
test is ever left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from agentv_ci.analysis.outcomes import CaseOutcome, key_of
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers.junit.xml_text import Excerpt, attribute_size, line
from agentv_ci.report.view import STOPS, RunView

MARKUP = 1_000
"""Bytes that the tags of a test take, and its names in them, where they are short."""

Kind = Literal["failure", "error", "skipped"]
"""The element that says so."""
Share = Literal["passed", "others", "reasons"]
"""Answers that passed, other answers, and why these did not pass."""
CUTS: tuple[tuple[Share, int], ...] = (
    *(("passed", limit) for limit in (3_000, 1_000, 300, 100, 0)),
    *(("others", limit) for limit in (3_000, 1_000, 300, 100, 0)),
    *(("reasons", limit) for limit in (3_000, 1_000, 300)),
)
"""What is shortened one after the other, until the file is small enough."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Why a test is not green."""

    kind: Kind
    type: str
    message: str
    """One line."""
    text: Excerpt

    @classmethod
    def of(cls, kind: Kind, name: str, said: Iterable[str], *, otherwise: str = "no verdict") -> Blame:
        """Return the blame for what is said; `otherwise` is said where that has no readable word."""
        lines = list(said)
        message = line("; ".join(lines))
        return cls(kind, name, message or otherwise, Excerpt("\n".join(lines) if message else otherwise))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A test, with no more of its row than the file needs."""

    suite: str
    id: str
    target: str = ""
    trial: int = 1
    path: str = ""
    line: int | None = None
    milliseconds: int = 0
    start: datetime | None = None
    blame: Blame | None = None
    answer: Excerpt = field(default_factory=lambda: Excerpt(""))
    remark: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called among those of its suite."""
        return f"{self.id} [{self.target}]{f' #{self.trial}' if self.trial > 1 else ''}" if self.target else self.id

    @property
    def order(self) -> tuple[str, int, str, str, int]:
        """Where it stands: the order of rows is that in which answers came."""
        return self.suite, self.line or 0, self.id, self.target, self.trial

    @property
    def size(self) -> int:
        """How many bytes it takes, more or less."""
        names = sum(map(attribute_size, (self.suite, self.id, self.target, self.path)))
        reasons = 0 if self.blame is None else attribute_size(self.blame.message) + self.blame.text.size
        return MARKUP + names + reasons + self.answer.size

    def cut(self, share: Share, limit: int) -> None:
        """Shorten one of its texts."""
        if share == "reasons":
            if self.blame is not None:
                self.blame.text.cut(limit)
        elif (share == "passed") == (self.blame is None):
            self.answer.cut(limit)


def entries_of(run: RunView, max_bytes: int) -> list[Entry]:
    """Return the entries of a run, in their order, about `max_bytes` large; raises what reading the rows raises."""
    made_up_for = {each.key for each in run.outcomes if each.verdict == "pass" and each.flaky}
    found = _Entries(max_bytes)
    for row in run.rows():
        found.add(_of_row(row, is_made_up_for=key_of(row) in made_up_for))
    for outcome in run.outcomes:
        if outcome.missing > 0:
            found.add(_of_missing(outcome, run.report))
    return sorted(found, key=lambda entry: entry.order)


class _Entries:
    """Entries, shortened as more of them come."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: list[Entry] = []
        self._left = max_bytes
        self._cuts = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def add(self, entry: Entry) -> None:
        for share, limit in CUTS[: self._cuts]:
            entry.cut(share, limit)
        self._entries.append(entry)
        self._left -= entry.size
        while self._left < 0 and self._cuts < len(CUTS):
            self._cut()

    def _cut(self) -> None:
        share, limit = CUTS[self._cuts]
        self._cuts += 1
        for entry in self._entries:
            before = entry.size
            entry.cut(share, limit)
            self._left += before - entry.size


def _of_row(row: ResultRow, *, is_made_up_for: bool) -> Entry:
    remark = ""
    if is_made_up_for and row.verdict in ("fail", "borderline"):
        remark = f"{row.verdict}, score {row.score:.3f}; other trials make up for it"
    return Entry(
        suite=row.suite,
        id=row.eval_id,
        target=row.target,
        trial=row.trial,
        path=row.source.path,
        line=row.source.line,
        # Consumers take a time of zero for one that is not known.
        milliseconds=max(row.duration_ms, 1),
        start=_start(row),
        blame=None if remark else _blame(row),
        answer=Excerpt(row.candidate_answer),
        remark=remark,
        properties={
            "score": f"{row.score:.3f}",
            "verdict": row.verdict,
            **_properties(row.target, row.trial, row.digest, dry_run=row.dry_run),
        },
    )


def _of_missing(outcome: CaseOutcome, report: RunReport) -> Entry:
    """One test for all trials that are missing: of many cases with many trials, a test for each could be millions."""
    case = outcome.case
    there = {each.number for each in outcome.trials}
    first = next(number for number in range(1, case.trials + 1) if number not in there)
    which = f"{outcome.missing} of {case.trials} trials" if case.trials > 1 else "it"
    if report.stopped is not None and report.write_error is None:
        said = f"{which} never ran: {STOPS[report.stopped]}"
    else:
        said = f"{which} {'have' if case.trials > 1 else 'has'} no result"
    return Entry(
        suite=case.suite,
        id=case.id,
        target=outcome.target,
        trial=first,
        path=case.source.path,
        line=case.source.line,
        blame=Blame.of("skipped", "skipped", [said]),
        properties=_properties(outcome.target, first, case.digest, dry_run=report.dry_run),
    )


def _blame(row: ResultRow) -> Blame | None:
    if row.verdict == "pass":
        return None
    if row.verdict == "error":
        return Blame.of("error", row.error_kind or "error", [row.error or ""])
    return Blame.of("failure", row.verdict, [f"score {row.score:.3f}", *(row.misses or filter(None, [row.reasoning]))])


def _properties(target: str, trial: int, digest: str, *, dry_run: bool) -> dict[str, str]:
    values = {"target": target, "trial": str(trial), "digest": digest, "dry_run": str(dry_run).lower()}
    return {name: line(value) for name, value in values.items()}


def _start(row: ResultRow) -> datetime | None:
    """When the answer was asked for; None: the row does not say it in the right words."""
    try:
        ended = datetime.fromisoformat(row.timestamp)
        return (ended if ended.tzinfo else ended.replace(tzinfo=UTC)).astimezone(UTC) - timedelta(
            milliseconds=row.duration_ms
        )
    except (ValueError, OverflowError):
        return None
