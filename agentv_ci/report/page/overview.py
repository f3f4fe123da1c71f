"""The top of a page about a run, in words and figures: what the gate says, what is special, what validators found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agentv_ci.contracts.compared import ComparedCase
from agentv_ci.contracts.report import WORST_FIRST, FailedValidation, GateResult, Group, RunReport, ScenarioReport
from agentv_ci.outside import flowed, shortened
from agentv_ci.report.page.numbers import large, money
from agentv_ci.report.words import DRY_RUN, GATE, SEVERITIES, STOPS
from agentv_ci.suggestions import counted

MAX_LISTED = 12
"""Of a list at the top of the page."""
MAX_CHANGES = 7
MAX_ISSUES = 50
MAX_LINE = 600

_TONES = {"pass": "pass", "fail": "fail"}
"""How a gate's word looks; all others are neither."""
_MARKS = {"pass": "✓", "borderline": "△", "fail": "✗", "error": "!"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's word, for people."""

    word: str
    tone: str
    mark: str
    note: str
    """What else is to be known before the word is believed; empty when nothing is."""


@dataclass(frozen=True, slots=True)
class Told:
    """A figure with its name."""

    name: str
    value: str
    tone: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a validator says of a suite."""

    validator: str
    suite: str
    tone: str
    summary: str
    issues: tuple[tuple[str, str], ...] = ()
    """Severity and message, worst first."""
    more: int = 0


def gate_of(gate: GateResult) -> Verdict:
    """Return the gate's word."""
    word, tone = GATE[gate.verdict].capitalize(), _TONES.get(gate.verdict, "error")
    note = ""
    if gate.verdict == "dry-run":
        note = f"{DRY_RUN[:1].upper()}{DRY_RUN[1:]}, and no gate was applied."
    elif gate.verdict not in ("pass", "nothing") and gate.exit_code == 0:
        note = "Not enforced: agentv-ci report judges all shards together."
    return Verdict(word, tone, _MARKS[tone], note)


def labels(report: RunReport) -> list[str]:
    """Return what is special about a run."""
    found = ["dry run"] if report.dry_run else []
    if report.shard is not None:
        found.append(f"shard {report.shard.index} of {report.shard.total}")
    if report.stopped is not None:
        found.append(STOPS[report.stopped])
    return found


def warnings(report: RunReport) -> list[str]:
    """Return what is missing from a run besides verdicts."""
    found = [line(each) for each in report.incomplete[:MAX_LISTED]]
    if report.write_error:
        found.append(f"results are missing from the file: {line(report.write_error)}")
    if report.unrecorded:
        found.append(f"{counted(report.unrecorded, 'question')} of the replay had no recording")
    if report.unpriced_models:
        names = ", ".join(line(each) for each in report.unpriced_models[:MAX_LISTED])
        found.append(f"no price is known for {names}: the cost lacks it")
    lowered = sum(change.after < change.before for change in report.concurrency)
    if lowered:
        times = "once" if lowered == 1 else f"{lowered} times"
        found.append(f"a server was asked too often, and the run slowed down {times}")
    return found


def figures(report: RunReport) -> list[Told]:
    """Return the counts and sums of a run."""
    counts = report.counts
    never_ran = counts.not_run if report.stopped else 0
    told = [
        Told("cases", f"{counts.cases:,}", note=counted(counts.rows, "trial") if counts.rows != counts.cases else ""),
        Told("passed", f"{counts.passed:,}", "pass" if counts.passed else ""),
        Told("failed", f"{counts.failed:,}", "fail" if counts.failed else ""),
        Told("errored", f"{counts.errored - never_ran:,}", "error" if counts.errored - never_ran else ""),
        Told("flaky", f"{counts.flaky:,}", "borderline" if counts.flaky else ""),
    ]
    if never_ran:
        told.append(Told("never ran", f"{never_ran:,}", "error"))
    mean, stdev = report.statistics.mean, report.statistics.stdev
    told.append(
        Told("mean score", "–" if mean is None else f"{mean:.3f}", note="" if stdev is None else f"± {stdev:.3f}")
    )
    if report.cost_usd is not None:
        judges = [each.judge_cost_usd for each in report.suites if each.judge_cost_usd]
        told.append(Told("cost", money(report.cost_usd), note=f"{money(sum(judges))} judges" if judges else ""))
    usage = report.usage
    if usage.total_tokens is not None:
        told.append(Told("tokens", large(usage.total_tokens), note=f"{large(usage.output_tokens or 0)} out"))
    return told


def findings(scenarios: Sequence[ScenarioReport]) -> Iterator[Finding]:
    """Yield what validators say, suite by suite."""
    for scenario in scenarios:
        suite = line(scenario.scenario_key)
        for each in scenario.aggregates.validations:
            if isinstance(each, FailedValidation):
                yield Finding(line(each.validator), suite, "error", f"could not run: {line(each.error)}")
                continue
            said = [counted(number, SEVERITIES[name]) for name in WORST_FIRST if (number := each.count(name))]
            ordered = sorted(each.issues, key=lambda issue: WORST_FIRST.index(issue.severity))
            found = sum(each.count(name) for name in WORST_FIRST)
            yield Finding(
                line(each.validator),
                suite,
                "fail" if each.count("error") else "borderline" if each.count("warning") else "pass",
                ", ".join(said) or "nothing found",
                tuple((SEVERITIES[issue.severity], line(issue.message)) for issue in ordered[:MAX_ISSUES]),
                max(0, found - MAX_ISSUES),
            )


def listed(report: RunReport) -> list[ComparedCase]:
    """Return the changes that are named at the top, worst first."""
    shown = (each for each in (report.comparison.cases if report.comparison else ()) if each.change != "new")
    return list(islice(shown, MAX_CHANGES))


def cost_of(group: Group) -> float | None:
    """Return what answers and judges of a group cost."""
    known = [each for each in (group.cost_usd, group.judge_cost_usd) if each is not None]
    return sum(known) if known else None


def line(text: str) -> str:
    """Return a text in one line of bearable length, without characters that command a terminal or turn text round."""
    return shortened(flowed(text), MAX_LINE)
