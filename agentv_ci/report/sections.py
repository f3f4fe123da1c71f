"""Parts of what is printed at the end: lines for people, in 80 columns; colours are only named here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from agentv_ci.analysis.statistics import p_text
from agentv_ci.contracts.compared import Change, ComparedCase, Comparison, Figure
from agentv_ci.contracts.report import (
    WORST_FIRST,
    EvaluatorFigures,
    FailedValidation,
    Group,
    RepeatedCase,
    RunReport,
    ScenarioReport,
    Statistics,
)
from agentv_ci.contracts.results import Usage
from agentv_ci.report.words import SEVERITIES, rate_text
from agentv_ci.text import counted, on_one_line, printable, shortened

Style = Literal["good", "bad", "warn", "plain", "title", "strong", "faint", "bar"]

MAX_SHOWN = 10
BAR = 30
MAX_NOTES = 3
MAX_NAME = 60
MAX_MESSAGE = 200

_STYLES: dict[Change, Style] = {"regressed": "bad", "improved": "good", "flaky": "warn", "not enough evidence": "warn"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line and how it feels."""

    text: str
    style: Style = "plain"
    parts: tuple[tuple[str, Style], ...] = ()
    """The same text in pieces, each with a style of its own; empty: it has only one."""

    @classmethod
    def of(cls, *parts: tuple[str, Style]) -> Line:
        """Return a line of several styles."""
        return cls("".join(text for text, _ in parts).rstrip(), parts=parts)


def counts_text(report: RunReport) -> str:
    """Return how many cases there are, verdict by verdict."""
    counts = report.counts
    never_ran = counts.not_run if report.stopped else 0
    said = [f"{counts.passed} passed", f"{counts.failed} failed", counted(counts.errored - never_ran, "error")]
    said += [f"{never_ran} never ran"] if never_ran else []
    said += [f"{counts.flaky} flaky"] if counts.flaky else []
    lost = sum(each.trials - each.graded for each in report.repeated if each.verdict != "error")
    said += [f"{counted(lost, 'trial')} without a verdict"] if lost else []
    shard = f" in shard {report.shard.index}/{report.shard.total}" if report.shard is not None else ""
    return f"{counted(counts.cases, 'case')}{shard}: {', '.join(said)}"


def figure_lines(report: RunReport) -> Iterator[Line]:
    """Yield what the scores, tokens and costs come to."""
    yield from _statistics(report.statistics)
    yield from group_lines(report)
    yield from _usage(report.usage)
    yield from _cost(report)


def flaky_lines(cases: Sequence[RepeatedCase]) -> Iterator[Line]:
    """Yield the cases whose trials disagree, those that are least certain first."""
    flaky = sorted((each for each in cases if each.flaky), key=lambda each: abs(each.passed / each.graded - 0.5))
    if not flaky:
        return
    yield Line("flaky, trials disagree:", "title")
    for each in flaky[:MAX_SHOWN]:
        interval = f"95%: {each.pass_rate_low:.0%} to {each.pass_rate_high:.0%}"
        yield Line(f"  {each.passed} of {each.graded} passed ({interval})  {_name(each.id)}", "warn")
    yield from _more(len(flaky))
    yield Line("")


def group_lines(report: RunReport) -> Iterator[Line]:
    """Yield the figures by suite, target and evaluator, where there are several."""
    for title, groups in (("by suite", report.suites), ("by target", report.targets)):
        if len(groups) > 1:
            ordered = _cut_worst_first(groups)
            yield from _table(title, [(_name(each.name), _group(each)) for each in ordered])
    if len(report.evaluators) > 1:
        figures = _cut_worst_first(report.evaluators)
        rows = [(f"{_name(each.name)} ({printable(each.type)})", _evaluator(each)) for each in figures]
        yield from _table("by evaluator", rows)


def _statistics(figures: Statistics) -> Iterator[Line]:
    if figures.mean is None:
        return
    names = ("mean", "median", "min", "max", "stdev")
    yield Line("  ".join(f"{name} {getattr(figures, name):.3f}" for name in names))
    most = max(figures.histogram)
    for index, number in enumerate(figures.histogram):
        low, high = index / 5, (index + 1) / 5
        closing = "]" if index == len(figures.histogram) - 1 else ")"
        bar = "#" * -(-number * BAR // most) if number else ""
        yield Line.of((f"[{low:.1f}, {high:.1f}{closing}  {number:>5}  ", "plain"), (bar, "bar"))


def _usage(usage: Usage) -> Iterator[Line]:
    if usage.total_tokens is not None or usage.input_tokens is not None or usage.output_tokens is not None:
        yield Line(
            f"tokens: {usage.input_tokens or 0:,} in, {usage.output_tokens or 0:,} out, "
            f"{usage.total_tokens or 0:,} in all"
        )


def _cost(report: RunReport) -> Iterator[Line]:
    if report.cost_usd is not None:
        judges = [each.judge_cost_usd for each in report.suites if each.judge_cost_usd is not None]
        included = f", ${sum(judges):.4f} of it for judges" if judges else ""
        yield Line(f"cost: ${report.cost_usd:.4f}{included}")
    yield from (Line(each, "warn") for each in cost_remarks(report))


def cost_remarks(report: RunReport) -> Iterator[str]:
    """Yield what to know of costs and times: what they lack, and whether servers were asked too often."""
    if report.unpriced_models:
        names = ", ".join(printable(each) for each in report.unpriced_models)
        yield f"no price is known for {names}: the cost lacks it"
    lowered = sum(change.after < change.before for change in report.concurrency)
    if lowered:
        times = "once" if lowered == 1 else f"{lowered} times"
        yield f"asked too often for a server, and slowed down {times}; see the run report"


def scenario_lines(scenarios: Sequence[ScenarioReport]) -> Iterator[Line]:
    """Yield what validators found, errors first; what is only for information is counted."""
    for scenario in scenarios:
        about = f" of {printable(scenario.scenario_key)}" if len(scenarios) > 1 else ""
        for each in scenario.aggregates.validations:
            if isinstance(each, FailedValidation):
                text = shortened(on_one_line(each.error), MAX_MESSAGE)
                yield Line(f"validator {_name(each.validator)}{about} could not run: {text}", "warn")
                continue
            found = [counted(number, SEVERITIES[name]) for name in WORST_FIRST if (number := each.count(name))]
            # Notes alone may be all there is to say, such as that nothing could be compared.
            told = [issue for issue in each.worst_first if issue.severity != "info"]
            notes = [] if told else each.issues[:MAX_NOTES]
            style: Style = "bad" if each.errors else "warn" if told else "good"
            yield Line(f"validator {_name(each.validator)}{about}: {', '.join(found) or 'nothing found'}", style)
            for issue in [*told[:MAX_SHOWN], *notes]:
                yield Line(f"  {SEVERITIES[issue.severity]}: {shortened(on_one_line(issue.message), MAX_MESSAGE)}")
            yield from _more(each.count("error") + each.count("warning"))


def comparison_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield what has changed, worst first, and what the two runs come to as a whole."""
    shown = [each for each in comparison.cases if each.change not in ("new", "removed")]
    if shown:
        yield Line(f"{_name(comparison.base)} → {_name(comparison.head)}:", "title")
    for each in shown[:MAX_SHOWN]:
        yield Line(f"  {each.change:<19}  {_name(each.id)}: {change_text(each)}", _STYLES.get(each.change, "plain"))
    yield from _more(len(shown))
    counts = ", ".join(f"{number} {change}" for change, number in comparison.counts.items() if number)
    yield Line(f"against {_name(comparison.base)}: {counts or 'no case'}")
    yield from (Line(f"  {each}") for each in comparison_figures(comparison))
    yield from (Line(f"warning: {on_one_line(each)}", "warn") for each in comparison.warnings)


def comparison_figures(comparison: Comparison) -> Iterator[str]:
    """Yield what the cases on both sides come to together."""
    if comparison.pass_rate is not None and comparison.mean_score is not None:
        too_few = f"{counted(comparison.compared, 'case')} cannot show any drop"
        yield _figure("pass rate", comparison.pass_rate, ".1%", too_few)
        yield _figure("mean score", comparison.mean_score, ".3f", "")


def _figure(name: str, figure: Figure, form: str, otherwise: str) -> str:
    shows = otherwise if figure.detectable is None else f"shows drops of {figure.detectable:{form}} or more"
    said = f"{name} {figure.base:{form}} → {figure.head:{form}}, {p_text(figure.p_value)}"
    return f"{said}; {shows}" if shows else said


def change_text(case: ComparedCase) -> str:
    """Return what a case was and is, and how sure that is."""
    said = f"{rate_text(case.base)} → {rate_text(case.head)}"
    if case.low is not None and case.high is not None:
        said += f" (change {case.low:+.0%} to {case.high:+.0%})"
    notes = ["one trial a side, possibly noise"] if case.single and case.change != "unchanged" else []
    notes += ["the case or its target changed"] if case.stale else []
    return f"{said}; {', '.join(notes)}" if notes else said


def _group(group: Group) -> str:
    mean = "" if group.mean is None else f", mean {group.mean:.3f}"
    errors = f", {counted(group.errored, 'error')}" if group.errored else ""
    cost = "" if group.total_usd is None else f", ${group.total_usd:.4f}"
    return f"{group.passed}/{group.cases} passed{mean}{errors}{cost}"


def _evaluator(figures: EvaluatorFigures) -> str:
    mean = "" if figures.mean is None else f", mean {figures.mean:.3f}"
    said = f"{figures.passed}/{figures.scored} passed{mean}"
    said += f", {counted(figures.errors, 'error')}" if figures.errors else ""
    return said + (f", {figures.skipped} skipped" if figures.skipped else "")


def badness(figures: Group | EvaluatorFigures) -> tuple[float, int, str]:
    """Return an order in which what passes least often comes first."""
    seen = figures.cases if isinstance(figures, Group) else figures.scored + figures.errors
    return figures.passed / seen if seen else 1.0, -seen, figures.name


T = TypeVar("T", Group, EvaluatorFigures)


def _cut_worst_first(listed: Sequence[T]) -> Sequence[T]:
    """Return a list as it is, or, where not all of it is shown, what passes least often first."""
    return listed if len(listed) <= MAX_SHOWN else sorted(listed, key=badness)


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[Line]:
    width = max(len(name) for name, _ in rows[:MAX_SHOWN])
    yield Line(f"{title}:", "title")
    yield from (Line(f"  {name:<{width}}  {said}") for name, said in rows[:MAX_SHOWN])
    yield from _more(len(rows))


def _more(number: int) -> Iterator[Line]:
    if number > MAX_SHOWN:
        yield Line(f"  … and {number - MAX_SHOWN} more")


def _name(text: str) -> str:
    return shortened(on_one_line(text), MAX_NAME)
