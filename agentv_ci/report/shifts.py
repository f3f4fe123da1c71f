"""Shifts in the health of an eval set, as the text of an issue."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agentv_ci.base.canonical import digest_of
from agentv_ci.base.text import counted, shortened
from agentv_ci.contracts.command_output import HealthFinding, HealthReport
from agentv_ci.report.health import name_of
from agentv_ci.report.inert_markdown import code, item, link
from agentv_ci.report.view import more_text

MAX_SHIFTS = 50
MAX_TEXT = 300
ID_DIGITS = 12


def shifts_in(report: HealthReport) -> Sequence[HealthFinding]:
    """Return the changes that are worth an issue.

    They are scores below those before the first fall, and judges that drift.
    """
    return list(filter(_is_shift, report.findings))


def _is_shift(finding: HealthFinding) -> bool:
    has_fallen = finding.kind == "drifting-provider" and finding.fell_from is not None
    return has_fallen or finding.kind == "drifting-judge"


def shift_id(finding: HealthFinding) -> str:
    """Return what recognises a shift from report to report.

    Shifts of the same case are the same if they began at the same time.
    """
    named = [finding.kind, finding.suite, finding.id, finding.target, finding.since]
    return digest_of(json.dumps(named))[:ID_DIGITS]


def issue_text(report: HealthReport, repository_url: str, run_url: str) -> str:
    """Return the shifts in Markdown; without any, that it is over.

    `repository_url` is that of links that are kept.
    """
    seen = f"{counted(report.runs, 'run')} of {code(report.source)}, [last one]({run_url})"
    if not (found := shifts_in(report)):
        return f"It is over: no shift is left in {seen}.\n"
    items = [_item(finding, repository_url) for finding in found[:MAX_SHIFTS]]
    items += map(item, more_text(len(found), MAX_SHIFTS))
    title = "Cases that were not changed have other results than before:"
    chance = f"A shift is chance in at most {report.false_alarms:.0%} of reports."
    return "\n".join([title, "", *items, "", f"{chance} {seen}", ""])


def _item(finding: HealthFinding, repository_url: str) -> str:
    sign = "⚖️" if finding.kind == "drifting-judge" else "📉"
    url = finding.run_url or ""
    is_own = re.fullmatch(rf"{re.escape(repository_url)}/actions/runs/[0-9]+", url) is not None
    first = ""
    if is_own:
        first = f" ({link('first run', url)})"
    about = f"{_short(name_of(finding))}: {_short(finding.message)}"
    return f"- {sign} {about}{first}\n  - {_short(finding.action)}"


def _short(text: str) -> str:
    return code(shortened(text, MAX_TEXT))
