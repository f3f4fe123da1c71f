"""One HTML file that people open when a run surprised them: no server, no request, no trust in what agents say.

A policy in the page allows this file's own scripts and styles, by their hashes, and nothing else. What agents wrote is
data for those scripts, which build text of it and never markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agentv_ci.contracts.base import JsonObject
from agentv_ci.outside import well_formed_text
from agentv_ci.report.outcomes import not_passed
from agentv_ci.report.page import overview, plots
from agentv_ci.report.page.casebook import Casebook, Entries, entries, names_of
from agentv_ci.report.page.numbers import duration, large, money, share, signed
from agentv_ci.report.reported import ReportedRun
from agentv_ci.report.statistics import p_text
from agentv_ci.report.words import rate_text
from agentv_ci.suggestions import counted

MAX_BYTES = 30_000_000
"""Of the whole file. Texts of passed cases are left out first, then of doubtful ones, then lines of the table."""

TEMPLATES = Path(__file__).parent.parent / "page" / "templates"
EARLY = "early.js"
SCRIPTS = ("elements.js", "figures.js", "difference.js", "table.js", "case.js", "report.js")
_DATA = "<!-- data -->"


def render(run: ReportedRun) -> Iterable[bytes]:
    """Return the page, in pieces; the rows are read once."""
    book = Casebook.of(run, MAX_BYTES)
    before, after = _page(run, book)
    room = MAX_BYTES - len(before) - len(after)
    table = entries(run, book, room * 2 // 3)
    book.texts.shrink(room - len(table.blocks(_run(run, book, table))))
    data = table.blocks(_run(run, book, table))
    return _pieces(before, data, book, after)


def _pieces(before: bytes, data: bytes, book: Casebook, after: bytes) -> Iterator[bytes]:
    yield before
    yield data
    for _, _, piece in book.texts.kept:
        yield piece
    yield after


def _run(run: ReportedRun, book: Casebook, table: Entries) -> JsonObject:
    """Return what the table and the pages of cases refer to."""
    comparison = run.report.comparison
    suites, targets = names_of(run.outcomes)
    return {
        "suites": list(suites),
        "targets": list(targets),
        "base": comparison.base if comparison else None,
        "confidence": comparison.confidence if comparison else None,
        "cases": table.cases,
        "trials": book.trials,
        "texts": len(book.texts.kept),
        "dry_run": run.report.dry_run,
    }


def _page(run: ReportedRun, book: Casebook) -> tuple[bytes, bytes]:
    """Return the page around its data."""
    errors, failed = not_passed(run.outcomes, is_stopped=run.report.stopped is not None)
    style = _read("report.css")
    early, *scripts = (_read(name) for name in (EARLY, *SCRIPTS))
    text = (
        _environment()
        .get_template("report.html")
        .render(
            report=run.report,
            outcomes=run.outcomes,
            not_passed=[*errors, *failed],
            links=run.links,
            overview=overview,
            gate=overview.gate_of(run.report.gate),
            histogram=plots.histogram(run.outcomes),
            scatter=plots.scatter(book.points, run.outcomes),
            style=style,
            early=early,
            scripts=scripts,
            policy=policy(style, [early, *scripts]),
        )
    )
    before, _, after = well_formed_text(text).partition(_DATA)
    return before.encode(), after.encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "duration": duration,
        "large": large,
        "line": overview.line,
        "money": money,
        "p": p_text,
        "rate": rate_text,
        "share": share,
        "signed": signed,
    }
    return environment


def policy(style: str, scripts: Iterable[str]) -> str:
    """Return the content security policy that allows these and nothing else."""
    allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
