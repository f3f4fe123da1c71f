"""Which cases of a run gate, and which are in quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.contracts.report import RunReport, quarantine_of


def in_quarantine(
    outcomes: Sequence[CaseOutcome], entries: tuple[Quarantine, ...]
) -> tuple[CaseOutcome, ...]:
    """Return outcomes with a mark on those that do not gate; a case that did not run needs none."""
    if not entries:
        return tuple(outcomes)
    return tuple(_marked(outcome, entries) for outcome in outcomes)


def _marked(outcome: CaseOutcome, entries: tuple[Quarantine, ...]) -> CaseOutcome:
    entry = quarantine_of(entries, outcome.key)
    if entry is None or outcome.verdict == "skipped" or outcome.not_run:
        return outcome
    return replace(outcome.in_full, quarantine=entry)


def gating(outcomes: Iterable[CaseOutcome]) -> list[CaseOutcome]:
    """Return the outcomes that are not in quarantine."""
    return [outcome for outcome in outcomes if outcome.quarantine is None]


def quarantine_in(reports: Iterable[RunReport]) -> tuple[Quarantine, ...]:
    """Return the entries of several runs.

    Of the same entry on several days, that of the first run.
    """
    entries: dict[str, Quarantine] = {}
    for report in reports:
        for entry in report.quarantine:
            entries.setdefault(entry.model_dump_json(exclude={"state"}), entry)
    return tuple(entries.values())
