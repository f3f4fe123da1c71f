"""One HTML file that people open when a run surprised them: no server, no request, no trust in what agents say.

A policy in the page allows this file's own scripts and styles, by their hashes, and nothing else. What agents wrote is
data for those scripts, which build text of it and never markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agentv_ci.analysis.statistics import p_text
from agentv_ci.report.renderers.html.numbers import money, score, share, signed
from agentv_ci.report.renderers.html.overview import MAX_FOLDED, MAX_ISSUES, MAX_LISTED, line, overview_of
from agentv_ci.report.renderers.html.payload import Trials, case_lines, table_blocks
from agentv_ci.report.view import SEVERITIES, RunView, issues_text, rate_text
from agentv_ci.text import counted, well_formed_text

MAX_BYTES = 30_000_000
"""Of the whole file. Texts of passed cases are left out first, then of doubtful ones, then lines of the table."""

TEMPLATES = Path(__file__).parent / "templates"
EARLY = "early.js"
SCRIPTS = ("elements.js", "figures.js", "difference.js", "table.js", "case.js", "keys.js", "report.js")
_DATA = "<!-- data -->"


def render(run: RunView) -> Iterable[bytes]:
    """Return the page, in pieces; the rows are read once."""
    trials = Trials.of(run, MAX_BYTES)
    before, after = _page(run, trials)
    room = MAX_BYTES - len(before) - len(after)
    lines = case_lines(run, trials, room * 2 // 3)
    trials.texts.drop_other_cases(lines)
    trials.texts.shrink(room - len(table_blocks(run, trials, lines)))
    texts = (piece for _, _, piece in trials.texts.in_order())
    return [before, table_blocks(run, trials, lines), *texts, after]


def _page(run: RunView, trials: Trials) -> tuple[bytes, bytes]:
    """Return the page around its data."""
    style, early, script = _read("report.css"), _read(EARLY), joined_script()
    template = _environment().get_template("report.html")
    text = template.render(
        top=overview_of(run, trials),
        report=run.report,
        links=run.links,
        style=style,
        early=early,
        script=script,
        policy=policy(style, [early, script]),
    )
    before, _, after = well_formed_text(text).partition(_DATA)
    return before.encode(), after.encode()


@cache
def joined_script() -> str:
    """Return all scripts as one block, so that a page has none of their names."""
    strict = '"use strict";\n'
    parts = [_read(name).removeprefix(strict) for name in SCRIPTS]
    return f"{strict}{{\n{''.join(parts)}}}\n"


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
        "issues": issues_text,
        "line": line,
        "money": money,
        "p": p_text,
        "rate": rate_text,
        "score": score,
        "share": share,
        "signed": signed,
    }
    environment.globals |= {
        "max_folded": MAX_FOLDED,
        "max_issues": MAX_ISSUES,
        "max_listed": MAX_LISTED,
        "severities": SEVERITIES,
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
