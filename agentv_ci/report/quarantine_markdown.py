"""The cases in quarantine, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.base.text import counted, shortened
from agentv_ci.report.inert_markdown import SIGNS, code, first_items, folded, item, link
from agentv_ci.report.quarantine import end_text, expired, expired_text, result_text
from agentv_ci.report.view import Links, RunView

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
    ended = [item(f"⏰ {_short(expired_text(entry))}") for entry in expired(run)]
    if not items and not ended:
        return None
    ending = sum(entry.state == "ending" for entry in run.report.quarantine)
    title = "; ".join(_counts(len(items), ending, len(ended)))
    return folded(f"🔒 {title}", "\n".join([*ended, *first_items(items, MAX_ENTRIES)]))


def _counts(cases: int, ending: int, ended: int) -> Iterator[str]:
    if cases:
        yield f"{counted(cases, 'case')} in quarantine, not in the gate"
    if ending:
        yield f"{counted(ending, 'entry expires', 'entries expire')} soon"
    if ended:
        yield f"{counted(ended, 'entry has', 'entries have')} expired"


def _issue(address: str, links: Links) -> str:
    """Return an address, as a link where that is safe.

    It becomes one if it is an issue or pull request of the run's own repository.
    """
    repository = (links.base or "").partition("/blob/")[0]
    found = re.fullmatch(rf"{re.escape(repository)}/(?:issues|pull)/([0-9]+)", address)
    if found and repository:
        return link(f"#{found[1]}", address)
    return _short(address)


def _short(text: str) -> str:
    return code(shortened(text, MAX_TEXT))


def _item(outcome: CaseOutcome, entry: Quarantine, run: RunView) -> str:
    issue = ""
    if entry.issue is not None:
        issue = f" · {_issue(entry.issue, run.links)}"
    soon = "⏰ " if entry.state == "ending" else ""
    return item(
        f"{SIGNS[outcome.verdict]} {_short(run.name(outcome.key))} {result_text(outcome)} · "
        f"{soon}{end_text(entry)} · {_short(entry.owner)}: {_short(entry.reason)}{issue}"
    )
