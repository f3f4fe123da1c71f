"""The cases in quarantine, in Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.base.text import counted, shortened
from agentv_ci.report.inert_markdown import SIGNS, code, folded, link
from agentv_ci.report.quarantine import end_text, expired, expired_text, result_text
from agentv_ci.report.view import Links, RunView, more_text

if TYPE_CHECKING:
    from agentv_ci.contracts.quarantine import Quarantine

MAX_TEXT = 200
MAX_ENTRIES = 50


def quarantine_section(run: RunView) -> str | None:
    """Return the cases that do not gate, and what is about to expire or has, as Markdown.

    None if there is neither.
    """
    items = [
        _item(entry, entry.quarantine, run)
        for entry in run.quarantined
        if entry.quarantine is not None
    ]
    ended = [f"- ⏰ {code(shortened(expired_text(entry), MAX_TEXT))}" for entry in expired(run)]
    if not items and not ended:
        return None
    ending = sum(entry.state == "ending" for entry in run.report.quarantine)
    title = []
    if items:
        title = [f"{counted(len(items), 'case')} in quarantine, not in the gate"]
    if ending:
        title += [f"{counted(ending, 'entry expires', 'entries expire')} soon"]
    if ended:
        title += [f"{counted(len(ended), 'entry has', 'entries have')} expired"]
    listed = [
        *ended,
        *items[:MAX_ENTRIES],
        *(f"- {more}" for more in more_text(len(items), MAX_ENTRIES)),
    ]
    return folded(f"🔒 {'; '.join(title)}", "\n".join(listed))


def _issue(address: str, links: Links) -> str:
    """Return an address, as a link where that is safe.

    It becomes one if it is an issue or pull request of the run's own repository.
    """
    repository = (links.base or "").partition("/blob/")[0]
    found = re.fullmatch(rf"{re.escape(repository)}/(?:issues|pull)/([0-9]+)", address)
    if found and repository:
        return link(f"#{found[1]}", address)
    return code(shortened(address, MAX_TEXT))


def _item(outcome: CaseOutcome, entry: Quarantine, run: RunView) -> str:
    name, owner = (code(shortened(text, MAX_TEXT)) for text in (run.name(outcome.key), entry.owner))
    issue = ""
    if entry.issue is not None:
        issue = f" · {_issue(entry.issue, run.links)}"
    soon = "⏰ " if entry.state == "ending" else ""
    reason = code(shortened(entry.reason, MAX_TEXT))
    return (
        f"- {SIGNS[outcome.verdict]} {name} {result_text(outcome)} · {soon}{end_text(entry)} · "
        f"{owner}: {reason}{issue}"
    )
