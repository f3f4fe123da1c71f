"""The top of a page about a run, in words and figures: what the gate says, what is special, what validators found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.contracts.comparison import ComparedCase, Comparison
from agentv_ci.contracts.report import (
    GateResult,
    RunReport,
)
from agentv_ci.contracts.results import OutcomeKey
from agentv_ci.report.links import Links
from agentv_ci.report.renderers.html.numbers import duration, large, money, score
from agentv_ci.report.renderers.html.payload import Trials
from agentv_ci.report.renderers.html.plots import histogram, scatter
from agentv_ci.report.view import (
    DRY_RUN,
    GATE,
    STOPS,
    RunView,
    badness,
    cost_remarks,
    judges_cost,
    never_ran,
)
from agentv_ci.text import counted, on_one_line, shortened

MAX_LISTED = 12
"""Of a list at the top of the page; the rest is folded."""
MAX_FOLDED = 500
MAX_CHANGES = 7
MAX_ISSUES = 50
MAX_LINE = 600

_TONES = {"pass": "pass", "fail": "fail"}
"""How a gate's word looks; all others are neither."""
_MARKS = {"pass": "✓", "borderline": "△", "fail": "✗", "error": "!"}


@dataclass(frozen=True, slots=True)
class NamedFigure:
    """A figure with its name."""

    name: str
    value: str
    tone: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of cases since the baseline, worst first."""

    named: tuple[tuple[int | None, ComparedCase], ...]
    """Each with the number of the case in this run; None: it is not in this run."""
    in_table: int
    """How many more there are in the table of cases."""
    removed: tuple[str, ...]
    """Ids of those that are in no table, and not named."""


def overview_of(run: RunView, trials: Trials) -> dict[str, object]:
    """Return what the top of the page says of a run, for the templates."""
    report = run.report
    reasons = [line(each) for each in report.gate.reasons]
    scenarios = report.scenario_reports
    tone = _TONES.get(report.gate.verdict, "error")
    return {
        "word": GATE[report.gate.verdict].capitalize(),
        "tone": tone,
        "mark": _MARKS[tone],
        "note": gate_note(report.gate),
        "reasons": reasons,
        "labels": list(labels(report)),
        "when": when(trials.first, trials.last),
        "commit": commit_of(run.links),
        "figures": list(figures(run)),
        "warnings": list(warnings(report, reasons)),
        "changes": None if report.comparison is None else changes_of(report.comparison, run.outcomes),
        "scores": histogram(run.outcomes),
        "trials": scatter(trials.points, run.outcomes),
        "evaluators": sorted(report.evaluators, key=badness),
        "suites": sorted(report.suites, key=badness),
        "targets": sorted(report.targets, key=badness),
        "validations": [(suite.scenario_key, each) for suite in scenarios for each in suite.aggregates.validations],
        "not_passed": [*run.errors, *run.failures],
        "every_case_passed": report.counts.cases > 0 and report.counts.passed == report.counts.cases,
    }


def gate_note(gate: GateResult) -> str:
    """Return what is to be known before the gate's word is believed; empty when nothing is."""
    if gate.verdict == "dry-run":
        return f"{DRY_RUN.capitalize()}, and no gate was applied."
    if gate.verdict not in ("pass", "nothing") and gate.exit_code == 0:
        return "Not enforced: agentv-ci report judges all shards together."
    return ""


def labels(report: RunReport) -> Iterator[str]:
    """Yield what is special about a run."""
    if report.dry_run:
        yield "dry run"
    if report.shard is not None:
        yield f"shard {report.shard.index} of {report.shard.total}"
    if report.stopped is not None:
        yield STOPS[report.stopped]


def when(first: datetime | None, last: datetime | None) -> str:
    """Return when a run took place, and how long it took."""
    if first is None or last is None:
        return ""
    end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    took = round((last - first).total_seconds() * 1000)
    return f"{first:%Y-%m-%d %H:%M:%S} to {end} UTC ({duration(took)})"


def commit_of(links: Links) -> tuple[str, str] | None:
    """Return the address and the name of the commit to which a run's links lead; None when they lead nowhere."""
    repository, separator, commit = (links.base or "").partition("/blob/")
    return (f"{repository}/commit/{commit}", commit[:12]) if separator and commit else None


def warnings(report: RunReport, reasons: Sequence[str]) -> Iterator[str]:
    """Yield what is missing from a run and is not among the gate's reasons."""
    yield from (text for each in report.incomplete[:MAX_LISTED] if (text := line(each)) not in reasons)
    yield from map(line, cost_remarks(report))


def figures(run: RunView) -> Iterator[NamedFigure]:
    """Yield the counts and sums of a run."""
    report, counts = run.report, run.report.counts
    unstarted, lost = never_ran(report), len(run.lost_trials)
    errored = counts.errored - unstarted
    yield NamedFigure(
        "cases", f"{counts.cases:,}", note=counted(counts.rows, "trial") if counts.rows != counts.cases else ""
    )
    yield NamedFigure("passed", f"{counts.passed:,}", "pass" if counts.passed else "")
    yield NamedFigure("failed", f"{counts.failed:,}", "fail" if counts.failed else "")
    note = f"{'and ' if errored else ''}{counted(lost, 'trial')} without a verdict" if lost else ""
    yield NamedFigure("errored", f"{errored:,}", "error" if errored else "", note)
    yield NamedFigure("flaky", f"{counts.flaky:,}", "borderline" if counts.flaky else "")
    if unstarted:
        yield NamedFigure("never ran", f"{unstarted:,}", "error")
    mean, stdev = report.statistics.mean, report.statistics.stdev
    yield NamedFigure("mean score", score(mean), note="" if stdev is None else f"± {score(stdev)}")
    if report.cost_usd is not None:
        judges = judges_cost(report)
        yield NamedFigure("cost", money(report.cost_usd), note=f"{money(judges)} judges" if judges else "")
    usage = report.usage
    if usage.total_tokens is not None:
        yield NamedFigure("tokens", large(usage.total_tokens), note=f"{large(usage.output_tokens or 0)} out")


def changes_of(comparison: Comparison, outcomes: Sequence[CaseOutcome]) -> Changes:
    """Return the changes that are named at the top, and how many are not."""
    numbers: dict[OutcomeKey, int] = {outcome.key: number for number, outcome in enumerate(outcomes)}
    changed = [(numbers.get(each.key), each) for each in comparison.cases if each.change != "new"]
    named, others = changed[:MAX_CHANGES], changed[MAX_CHANGES:]
    removed = [line(each.id) for _, each in others if each.change == "removed"]
    return Changes(tuple(named), len(others) - len(removed), tuple(removed[:MAX_FOLDED]))


def line(text: str) -> str:
    """Return a text in one line of bearable length, without characters that command a terminal or turn text round."""
    return shortened(on_one_line(text), MAX_LINE)
