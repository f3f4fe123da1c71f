"""What reports say of cases that do not gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.base.text import on_one_line
from agentv_ci.contracts.quarantine import last_day
from agentv_ci.report.lines import MAX_SHOWN, Line, more_line
from agentv_ci.report.view import RunView, score_text, trials_text
from agentv_ci.report.wrapping import clipped

if TYPE_CHECKING:
    from agentv_ci.contracts.quarantine import Quarantine

WIDTH = 80


def end_text(entry: Quarantine) -> str:
    """Return until when a quarantine lasts."""
    # Of a report, it may be any text.
    end = f"until {last_day(entry.expires) or 'an unknown day'}"
    if entry.state == "ending":
        return f"{end} (expires soon)"
    return end


def sentence(entry: Quarantine) -> str:
    """Return why cases do not gate, on one line."""
    return on_one_line(f"in quarantine {end_text(entry)} ({entry.owner}): {entry.reason}")


def result_text(outcome: CaseOutcome) -> str:
    """Return what became of a case in quarantine, which may have several trials."""
    trials = trials_text(outcome)
    score = score_text(outcome.verdict, outcome.score)
    return score if trials is None else f"{score}, {trials}"


def expired(run: RunView) -> Sequence[Quarantine]:
    """Return the entries whose cases gate again."""
    return [entry for entry in run.report.quarantine if entry.state == "expired"]


def quarantine_lines(run: RunView) -> Iterator[Line]:
    """Yield the cases that do not gate, and the entries that have expired."""
    outcomes = run.quarantined
    if outcomes:
        yield Line("in quarantine, not in the gate:", "title")
    for outcome in outcomes[:MAX_SHOWN]:
        assert outcome.quarantine is not None, "of cases in quarantine"
        source = outcome.case.source
        yield Line.of(
            (f"  {result_text(outcome)}  ", "faint"),
            (run.name(outcome.key), "strong"),
            (f"  ({on_one_line(source.path)}:{source.line})", "faint"),
        )
        yield Line(f"    {clipped(sentence(outcome.quarantine), WIDTH - 4)}", "faint")
    yield from more_line(len(outcomes))
    for entry in expired(run):
        yield Line(expired_text(entry), "warn")
    if outcomes:
        yield Line("")


def expired_text(entry: Quarantine) -> str:
    """Return that cases gate again, on one line."""
    return on_one_line(
        f"the quarantine of {entry.id} ({entry.owner}) expired on {entry.expires}: "
        "its cases gate again"
    )
