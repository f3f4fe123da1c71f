"""The data of the pages, for their scripts.

It has runs, figures of groups, and what every case did in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct, field

from agentv_ci.analysis.statistics.inference import rate_interval
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.ledger import CaseLine, LedgerRun
from agentv_ci.report.site.series import CONFIDENCE, Series

LETTERS: Mapping[str, str] = {"pass": "p", "borderline": "b", "fail": "f", "error": "e"}
NONE = "."
"""What stands for a run without the case."""


def run_block(runs: Sequence[LedgerRun]) -> JsonValue:
    """Return time, commit and address of each run."""
    return [[run.head.time, run.head.commit, run.head.run_url] for run in runs]


def series_block(series: Series) -> JsonObject:
    """Return the figures of a group, each as a list over all runs."""

    def figure(name: str) -> list[JsonValue]:
        return [_rounded(getattr(point, name, None)) for point in series.points]

    return {
        "name": series.name,
        "rate": figure("rate"),
        "low": figure("low"),
        "high": figure("high"),
        "score": figure("score"),
        "cost": figure("cost_usd"),
        "ms": figure("duration_ms"),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


class Track(Struct):
    """What one case did in every run."""

    runs: int
    lines: dict[int, CaseLine] = field(default_factory=dict)
    """Number of the run → what it did there."""

    def verdicts(self) -> str:
        """Return a letter for each run."""
        return "".join(
            LETTERS[self.lines[n].verdict] if n in self.lines else NONE for n in range(self.runs)
        )

    def values(self, name: str) -> list[JsonValue] | None:
        """Return a figure of every run; None if there is none at all."""
        found = [getattr(self.lines.get(number), name, None) for number in range(self.runs)]
        return None if found.count(None) == self.runs else found

    def changes(self, name: str) -> list[JsonValue]:
        """Return the runs in which a text is another one than before, each with the text."""
        changes: list[JsonValue] = []
        before: object = None
        for number, line in sorted(self.lines.items()):
            value = getattr(line, name)
            if value is not None and value != before:
                changes.append([number, value])
                before = value
        return changes


def tracks(runs: Sequence[LedgerRun]) -> dict[CaseKey, Track]:
    """Return what every case did, in the order of their keys."""
    found: dict[CaseKey, Track] = {}
    for number, run in enumerate(runs):
        for case in run.cases:
            found.setdefault(case.key, Track(len(runs))).lines[number] = case
    return dict(sorted(found.items()))


def case_block(key: CaseKey, track: Track, marks: Iterable[str]) -> JsonObject:
    """Return what a case did; absent fields have no values."""
    suite, case_id, target = key
    has_trials = any(line.trials > 1 for line in track.lines.values())
    fields: JsonObject = {
        "id": case_id,
        "suite": suite,
        "target": target,
        "verdicts": track.verdicts(),
        "passed": track.values("passed") if has_trials else None,
        "graded": track.values("graded") if has_trials else None,
        "score": track.values("score"),
        "cost": track.values("cost_usd"),
        "ms": track.values("duration_ms"),
        "models": track.changes("model"),
        "edits": [change[0] for change in track.changes("digest")[1:] if isinstance(change, list)],
        "marks": [*marks],
    }
    return {name: value for name, value in fields.items() if value}


def interval_block(all_tracks: Iterable[Track]) -> JsonObject:
    """Return the interval of the pass rate for each passed and graded number of trials.

    The numbers are those that occur in any run.
    """
    lines = chain.from_iterable(track.lines.values() for track in all_tracks)
    counts = sorted({(line.passed, line.graded) for line in lines if line.graded > 1})
    return {
        f"{passed}/{graded}": [*rate_interval(passed, graded, CONFIDENCE)]
        for passed, graded in counts
    }
