"""Turn the rows of a run into the lines of a ledger.

They have no answers, no reasons, and nothing of what was asked.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from operator import itemgetter
from statistics import fmean

from msgspec import Struct, field

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.base.canonical import digest_of
from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.ledger import CaseLine, JudgedAnswer
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, sum_of_known

ASKS_A_JUDGE = frozenset({"llm_judge", "rubric"})
DECIMALS = 4
DOLLAR_DIGITS = 3
ANSWER_DIGITS = 8
"""Of 77,000 different answers to a case, two are as likely as not to begin alike."""


class _Seen(Struct):
    """What the rows of a case say beside its outcome."""

    models: dict[str, None] = field(default_factory=dict)
    durations: list[int] = field(default_factory=list)
    """Of answers that were asked for."""
    cost_usd: float | None = None
    judged: list[tuple[int, JudgedAnswer]] = field(default_factory=list)
    """With the number of the trial."""
    is_cached: bool = True


class Recording:
    """Collects the rows of a run."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._seen: defaultdict[CaseKey, _Seen] = defaultdict(_Seen)
        self.ended = ""
        """Time of the last answer."""

    def add(self, row: ResultRow) -> None:
        """Add a row."""
        self._tally.add(row)
        self.ended = max(self.ended, row.timestamp, key=_moment)
        seen = self._seen[row.case_key]
        seen.is_cached = seen.is_cached and row.cached
        seen.cost_usd = sum_of_known(sum_of_known(seen.cost_usd, row.cost_usd), row.judge_cost_usd)
        if row.model is not None:
            seen.models[row.model] = None
        if row.status == "ok" and not row.cached:
            seen.durations.append(row.duration_ms)
        if row.status == "ok" and (scores := [*_judged(row.evaluator_results)]):
            answer = digest_of(well_formed_text(row.candidate_answer))[:ANSWER_DIGITS]
            seen.judged.append((row.trial, JudgedAnswer(answer, round(fmean(scores), DECIMALS))))

    def lines(self) -> list[CaseLine]:
        """Return a line for each case that ran to its end, by suite and position."""
        return [
            _line(outcome, self._seen[outcome.key])
            for outcome in self._tally.outcomes()
            if outcome.verdict != "skipped" and not outcome.missing
        ]


def _moment(timestamp: str) -> tuple[bool, float | str]:
    """Return what orders times.

    Those that are none, or lack a time zone, come last, to be refused.
    """
    if not timestamp:
        return False, -math.inf
    try:
        time = datetime.fromisoformat(timestamp)
    except ValueError:
        return True, timestamp
    if time.tzinfo is None:
        return True, timestamp
    return False, time.timestamp()


def _judged(results: Iterable[EvaluatorResult]) -> Iterator[float]:
    """Yield the scores that judges gave.

    That of a composite which a judge aggregates counts for its members.
    """
    for result in results:
        members = result.evaluator_results or ()
        is_aggregated = bool(members) and result.raw_response is not None
        if result.status == "ok" and (result.type in ASKS_A_JUDGE or is_aggregated):
            yield result.score
        else:
            yield from _judged(members)


def _line(outcome: CaseOutcome, seen: _Seen) -> CaseLine:
    suite, case_id, target = map(well_formed_text, outcome.key)
    cost = None
    if not seen.is_cached and seen.cost_usd is not None:
        cost = float(f"{seen.cost_usd:.{DOLLAR_DIGITS}g}")
    assert outcome.verdict != "skipped", "skipped cases have no line"
    return CaseLine(
        suite,
        case_id,
        target,
        outcome.case.digest,
        len(outcome.trials),
        len(outcome.graded),
        outcome.passed,
        outcome.verdict,
        model=well_formed_text(", ".join(sorted(seen.models))) or None,
        cached=seen.is_cached,
        crashed=outcome.crashed,
        score=round(outcome.score, DECIMALS) if outcome.graded else None,
        cost_usd=cost,
        duration_ms=round(fmean(seen.durations)) if seen.durations else None,
        judged=tuple(judged for _, judged in sorted(seen.judged, key=itemgetter(0))),
    )
