"""The HTML report.

It is one file that needs no server, sends no request, and does not trust what agents write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from jinja2 import Environment

from agentv_ci.analysis.cases.quarantine import gating
from agentv_ci.analysis.comparison.metric_texts import metric_name, values_text, verdict_text
from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.report import (
    CaseFigures,
    EvaluatorFigures,
    FailedValidation,
    RunReport,
    Validation,
)
from agentv_ci.report import view
from agentv_ci.report.lines import texts_of
from agentv_ci.report.proof import OF_ANOTHER_PLAN, facts, headline, is_of, shown_findings
from agentv_ci.report.quarantine import expired, expired_text
from agentv_ci.report.renderers.html.blocks import fitting_block
from agentv_ci.report.renderers.html.experiment import shown_experiment, tone_of
from agentv_ci.report.renderers.html.numbers import duration
from agentv_ci.report.renderers.html.page import (
    DATA,
    EARLY,
    TEMPLATES,
    environment,
    in_one_block,
    policy,
    template_text,
)
from agentv_ci.report.renderers.html.payload import Trials, case_lines, table_blocks
from agentv_ci.report.renderers.html.plots import BOTTOM, LEFT, RIGHT, TOP, columns, scatter
from agentv_ci.report.view import RunView

if TYPE_CHECKING:
    from agentv_ci.contracts.proof import Proof  # few runs have one

MAX_BYTES = 30_000_000
"""Of the whole file. Texts of passed cases are left out first, then of borderline and flaky ones,
then table rows.
"""

SCRIPTS = (
    "elements.js",
    "figures.js",
    "difference.js",
    "cells.js",
    "table.js",
    "evaluators.js",
    "case.js",
    "theme.js",
    "keys.js",
    "report.js",
)


def render(run: RunView) -> Iterable[bytes]:
    """Return the page, in pieces; the rows are read once."""
    trials = Trials.of(run, MAX_BYTES)
    before, after = _page(run, trials)
    guidelines: JsonObject = {guideline.path: guideline.text for guideline in run.report.guidelines}
    if guidelines:
        before += fitting_block("guidelines", guidelines, MAX_BYTES // 4)
    room = MAX_BYTES - len(before) - len(after)
    lines = case_lines(run, trials, room * 2 // 3)
    trials.texts.drop_other_cases(lines)
    trials.texts.shrink(room - len(table_blocks(run, trials, lines)))
    texts = (piece for _, _, piece in trials.texts.in_order())
    return [before, table_blocks(run, trials, lines), *texts, after]


def _page(run: RunView, trials: Trials) -> tuple[bytes, bytes]:
    """Return the page before and after its data."""
    style, early, script = template_text("report.css"), template_text(EARLY), joined_script()
    template = _environment().get_template("report.html")
    report = run.report
    text = template.render(
        run=run,
        report=report,
        links=run.links,
        numbers=trials.numbers,
        columns=columns(gating(run.outcomes)),
        plot=scatter(trials.points),
        remarks=list(_remarks(run)),
        judges_cost=view.judges_cost(report),
        proof=run.proof,
        proof_lines=_proof_lines(run.proof),
        proof_findings=shown_findings(run.proof) if run.proof is not None else [],
        experiment=shown_experiment(report.experiment) if report.experiment is not None else None,
        is_of_plan=run.proof is None or is_of(run.proof, report.plan_digest),
        when=when(trials.first, trials.last),
        commit=commit_of(run),
        models=sorted(set(chain.from_iterable(trials.models.values()))),
        validations=list(_validations(report)),
        style=style,
        early=early,
        script=script,
        policy=policy(style, [early, script]),
    )
    before, _, after = well_formed_text(text).partition(DATA)
    return before.encode(), after.encode()


@cache
def joined_script() -> str:
    """Return all scripts of the report."""
    return in_one_block(list(map(template_text, SCRIPTS)))


@cache
def _environment() -> Environment:
    made = environment(TEMPLATES)
    made.filters |= {
        "issues": view.issues_text,
        "metric_name": metric_name,
        "rate": view.rate_text,
        "statement": view.statement_text,
        "values": values_text,
        "verdict_text": verdict_text,
        "tone": tone_of,
        "worst_first": worst_first,
    }
    made.globals |= {
        "axes": (LEFT, RIGHT, TOP, BOTTOM),
        "dry_run": view.DRY_RUN,
        "of_another_plan": OF_ANOTHER_PLAN,
        "gate_titles": view.GATE,
        "severities": view.SEVERITIES,
        "stops": view.STOPS,
    }
    return made


def worst_first(
    figures: Iterable[CaseFigures | EvaluatorFigures],
) -> list[CaseFigures | EvaluatorFigures]:
    """Return the figures sorted by pass rate, lowest first."""
    return sorted(figures, key=view.badness)


def when(first: datetime | None, last: datetime | None) -> str:
    """Return when a run began and ended, and how long it took."""
    if first is None or last is None:
        return ""
    end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    took = round((last - first).total_seconds() * 1000)
    return f"{first:%Y-%m-%d %H:%M:%S} to {end} UTC ({duration(took)})"


def commit_of(run: RunView) -> tuple[str, str] | None:
    """Return the address and the short name of a run's commit.

    It is the commit that links point to, or the one that the run ran in.
    """
    repository, separator, linked = (run.links.base or "").partition("/blob/")
    if separator and linked:
        return f"{repository}/commit/{linked}", linked[:12]
    commit, dirty, _ = ((run.report.origin and run.report.origin.commit) or "").partition("-dirty")
    if not commit:
        return None
    return "", f"{commit[:12]} with changes" if dirty else commit[:12]


def _remarks(run: RunView) -> Iterator[str]:
    yield from map(expired_text, expired(run))
    yield from view.caveats(run.report)
    yield from view.cost_remarks(run.report)
    yield from filter(None, [view.cut_text(run.report), view.stored_text(run.report)])


def _proof_lines(proof: Proof | None) -> list[str]:
    """Return the headline and the facts of a proof; empty without one."""
    if proof is None:
        return []
    return texts_of([headline(proof), *facts(proof)])


def _validations(report: RunReport) -> Iterator[tuple[str, Validation | FailedValidation]]:
    """Yield each validation with the key of its scenario."""
    for scenario in report.scenario_reports:
        for validation in scenario.aggregates.validations:
            yield scenario.scenario_key, validation
