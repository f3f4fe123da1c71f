"""The pages of a ledger.

They are one HTML page, a badge and a JSON document. They need no server and send no request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.command_output import HealthFinding, HealthReport
from agentv_ci.contracts.ledger import Ledger, LedgerRun
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.contracts.report import quarantine_of
from agentv_ci.report.quarantine import end_text, expired_text
from agentv_ci.report.renderers.html.blocks import block
from agentv_ci.report.renderers.html.page import (
    DATA,
    EARLY,
    environment,
    in_one_block,
    policy,
    template_text,
)
from agentv_ci.report.site.badge import badge, message_of
from agentv_ci.report.site.payload import (
    case_block,
    interval_block,
    run_block,
    series_block,
    tracks,
)
from agentv_ci.report.site.series import Point, Series, by_suite, by_target, overall

if TYPE_CHECKING:
    from jinja2 import Template  # imported by what all pages share

FOLDER = Path(__file__).parent / "templates"
SHARED_SCRIPTS = ("elements.js", "figures.js", "theme.js")
SCRIPTS = ("chart.js", "cases.js", "case.js", "site.js")
GENERATED = '<meta name="generator" content="agentv-ci">'
"""What every page has near its beginning."""
QUARANTINED = "quarantine"
"""The mark of a case that does not gate."""
MOST_CELLS = 1_000_000
"""Most figures of cases in runs; of a larger ledger, the newest runs are shown. A browser opens
them in two seconds.
"""


class SiteView(Struct, frozen=True):
    """A ledger, and what is known of its cases besides."""

    ledger: Ledger
    health: HealthReport | None = None
    quarantine: tuple[Quarantine, ...] = ()
    """The entries that have cases in the ledger."""


class Shown(Struct, frozen=True):
    """The part of a ledger that is shown."""

    runs: tuple[LedgerRun, ...]
    left_out: int
    """Older runs that are not."""

    @classmethod
    def of(cls, runs: Sequence[LedgerRun]) -> Shown:
        """Return the newest runs, as many as fit."""
        keys: set[CaseKey] = set()
        for taken, run in enumerate(reversed(runs)):
            keys.update(case.key for case in run.cases)
            if taken and (taken + 1) * len(keys) > MOST_CELLS:
                return cls(tuple(runs[-taken:]), len(runs) - taken)
        return cls(tuple(runs), 0)


def render(site: SiteView) -> Mapping[str, bytes]:
    """Return the name and content of each file."""
    shown = Shown.of(site.ledger.runs)
    everything = overall(shown.runs)
    newest = everything.points[-1] if everything.points else None
    return {
        "index.html": _page(site, shown, everything),
        "badge.svg": badge(newest).encode(),
        "status.json": (
            json.dumps(status(site.ledger, newest), indent=2, ensure_ascii=False) + "\n"
        ).encode("utf-8", "replace"),
        # Pages of GitHub are built with Jekyll unless this file exists.
        ".nojekyll": b"",
    }


def status(ledger: Ledger, newest: Point | None) -> JsonObject:
    """Return the figures of the newest run, for programs; null where there is none."""
    head = None
    if ledger.runs:
        head = ledger.runs[-1].head
    return {
        "message": message_of(newest),
        "runs": len(ledger.runs),
        **_fields(head, "time", "commit", "run_url"),
        **_fields(newest, "cases", "passed", "graded", "rate", "score", "cost_usd"),
    }


def _fields(source: object, *names: str) -> JsonObject:
    """Return some fields of an object; those that it does not have are null."""
    return {name: getattr(source, name, None) for name in names}


def _page(site: SiteView, shown: Shown, everything: Series) -> bytes:
    named = {"Target": by_target(shown.runs), "Suite": by_suite(shown.runs)}
    # A single group is all cases.
    groups = list(chain.from_iterable(group for group in named.values() if len(group) > 1))
    style = template_text("report.css") + template_text("site.css", FOLDER)
    early, script = template_text(EARLY), _script()
    newest = everything.points[-1] if everything.points else None
    text = _template().render(
        ledger=site.ledger,
        shown=shown,
        newest=newest,
        message=message_of(newest),
        groups=named,
        health=site.health,
        quarantine=[(entry, _end_of(entry)) for entry in site.quarantine],
        style=style,
        early=early,
        script=script,
        policy=policy(style, [early, script]),
    )
    before, _, after = well_formed_text(text).partition(DATA)
    known = tracks(shown.runs)
    marks = _marks(site, known)
    cases: list[JsonValue] = [
        case_block(key, track, marks.get(key, ())) for key, track in known.items()
    ]
    blocks = (
        block("runs", run_block(shown.runs)),
        block("trends", list(map(series_block, (everything, *groups)))),
        block("intervals", interval_block(known.values())),
        block("cases", cases),
    )
    return b"".join((before.encode(), *blocks, after.encode()))


def _end_of(entry: Quarantine) -> str:
    if entry.state == "expired":
        return expired_text(entry)
    return end_text(entry)


def _marks(site: SiteView, cases: Iterable[CaseKey]) -> dict[CaseKey, list[str]]:
    """Return what is to know of each case.

    That is the kinds of its findings, and that it is in quarantine.
    """
    marks: dict[CaseKey, list[str]] = {}
    if site.health is not None:
        for finding in site.health.findings:
            if (key := _key(finding)) is not None:
                marks.setdefault(key, []).append(finding.kind)
    if site.quarantine:
        for case in cases:
            if quarantine_of(site.quarantine, case) is not None:
                marks.setdefault(case, []).append(QUARANTINED)
    return marks


def _key(finding: HealthFinding) -> CaseKey | None:
    if finding.suite and finding.id:
        return (finding.suite, finding.id, finding.target)
    return None


@cache
def _script() -> str:
    shared = list(map(template_text, SHARED_SCRIPTS))
    return in_one_block([*shared, *(template_text(name, FOLDER) for name in SCRIPTS)])


@cache
def _template() -> Template:
    made = environment(FOLDER)
    made.filters |= {"percent": percent, "when": when}
    return made.get_template("site.html")


def percent(share: float) -> str:
    """Return a share as a percentage without decimal places."""
    return f"{share:.0%}"


def when(time: str) -> str:
    """Return the time of a run for people."""
    return f"{time[:10]} {time[11:16]} UTC"
