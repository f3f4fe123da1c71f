"""What reports say of cases that do not gate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.report.inert_markdown import SIGNS, code, folded, link
from agentv_ci.report.lines import MAX_SHOWN, Line, more_line
from agentv_ci.report.view import Links, RunView, more_text, score_text, trials_text
from agentv_ci.report.wrapping import clipped
from agentv_ci.text import counted, on_one_line, shortened

if TYPE_CHECKING:
    from agentv_ci.contracts.quarantine import Quarantine

WIDTH = 80
MAX_TEXT = 200
MAX_ENTRIES = 50


def end_text(entry: Quarantine) -> str:
    """Return until when a quarantine lasts."""
    return f"until {entry.expires}" + (" (expires soon)" if entry.state == "ending" else "")


def sentence(entry: Quarantine) -> str:
    """Return why cases do not gate, on one line."""
    return on_one_line(f"in quarantine {end_text(entry)} ({entry.owner}): {entry.reason}")


def result_text(outcome: CaseOutcome) -> str:
    """Return what became of a case in quarantine, which may have several trials."""
    trials = trials_text(outcome)
    return score_text(outcome.verdict, outcome.score) + (f", {trials}" if trials is not None else "")


def expired(run: RunView) -> Sequence[Quarantine]:
    """Return the entries whose cases gate again."""
    return [each for each in run.report.quarantine if each.state == "expired"]


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
    yield from (Line(expired_text(each), "warn") for each in expired(run))
    if outcomes:
        yield Line("")


def expired_text(entry: Quarantine) -> str:
    """Return that cases gate again, on one line."""
    return on_one_line(f"the quarantine of {entry.id} ({entry.owner}) expired on {entry.expires}: its cases gate again")


def quarantine_section(run: RunView) -> str | None:
    """Return a list of the cases that do not gate, and what is about to expire or has, in Markdown; None for none."""
    items = [_item(each, each.quarantine, run) for each in run.quarantined if each.quarantine is not None]
    ended = [f"- ⏰ {code(shortened(expired_text(each), MAX_TEXT))}" for each in expired(run)]
    if not items and not ended:
        return None
    ending = sum(each.state == "ending" for each in run.report.quarantine)
    title = [f"{counted(len(items), 'case')} in quarantine, not in the gate"] if items else []
    title += [f"{counted(ending, 'entry expires', 'entries expire')} soon"] if ending else []
    title += [f"{counted(len(ended), 'entry has', 'entries have')} expired"] if ended else []
    listed = [*ended, *items[:MAX_ENTRIES], *(f"- {more}" for more in more_text(len(items), MAX_ENTRIES))]
    return folded(f"🔒 {'; '.join(title)}", "\n".join(listed))


def _issue(address: str, links: Links) -> str:
    """Return an address, as a link if it is an issue or pull request of the run's own repository."""
    repository = (links.base or "").partition("/blob/")[0]
    found = re.fullmatch(rf"{re.escape(repository)}/(?:issues|pull)/([0-9]+)", address)
    return link(f"#{found[1]}", address) if found and repository else code(shortened(address, MAX_TEXT))


def _item(outcome: CaseOutcome, entry: Quarantine, run: RunView) -> str:
    name, owner = (code(shortened(each, MAX_TEXT)) for each in (run.name(outcome.key), entry.owner))
    issue = f" · {_issue(entry.issue, run.links)}" if entry.issue is not None else ""
    soon = "⏰ " if entry.state == "ending" else ""
    reason = code(shortened(entry.reason, MAX_TEXT))
    return (
        f"- {SIGNS[outcome.verdict]} {name} {result_text(outcome)} · {soon}{end_text(entry)} · {owner}: {reason}{issue}"
    )
