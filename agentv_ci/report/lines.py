"""Lines of the summary for 80 columns, with styles that the terminal maps to colors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct

from agentv_ci.analysis.comparison.metric_texts import metric_text, verdict_text
from agentv_ci.base.text import counted, dollars, on_one_line, shortened
from agentv_ci.contracts.report import (
    CaseFigures,
    EvaluatorFigures,
    FailedValidation,
    Group,
    RepeatedCase,
    RunReport,
    ScenarioReport,
    Statistics,
    Validation,
)
from agentv_ci.contracts.results import Usage
from agentv_ci.report import view
from agentv_ci.report.matrix import MatrixCase

if TYPE_CHECKING:
    from agentv_ci.contracts.comparison import Change, Comparison

Style = Literal["good", "bad", "warn", "plain", "title", "strong", "faint", "bar"]

MAX_SHOWN = 10
BAR = 30
MAX_NOTES = 3
MAX_NAME = 60
MAX_MESSAGE = 200
MAX_WITH_ANSWERS = 3
HIGH_CORRELATION = 0.05
"""Of the trials of one run: with more, the level of a comparison no longer holds."""
WORTH_A_TIME_S = 1.0

STYLES: dict[str, Style] = {"pass": "good", "borderline": "warn", "fail": "bad", "error": "bad"}
"""The style of a verdict."""
_STYLES: dict[Change, Style] = {
    "regressed": "bad",
    "improved": "good",
    "flaky": "warn",
    "not enough evidence": "warn",
}

_OF_METRIC: dict[str, Style] = {"worse": "bad", "better": "good"}


class Line(Struct, frozen=True):
    """A line and its style."""

    text: str
    style: Style = "plain"
    parts: tuple[tuple[str, Style], ...] = ()
    """The same text in pieces with a style each; empty: the whole line has one style."""

    @classmethod
    def of(cls, *parts: tuple[str, Style]) -> Line:
        """Return a line with several styles."""
        return cls("".join(text for text, _ in parts).rstrip(), parts=parts)


def texts_of(lines: Iterable[Line]) -> list[str]:
    """Return the texts of lines, without their styles."""
    return [line.text for line in lines]


def figure_lines(report: RunReport) -> Iterator[Line]:
    """Yield scores, tokens and costs."""
    yield from _statistics(report.statistics)
    yield from group_lines(report)
    for caveat in view.caveats(report):
        yield Line(caveat, "warn")
    yield from _usage(report.usage)
    yield from _cost(report)


def flaky_lines(run: view.RunView) -> Iterator[Line]:
    """Yield the cases whose trials disagree, the least certain first."""
    flaky = sorted(_flaky(run), key=lambda case: abs(case.passed / case.graded - 0.5))
    if not flaky:
        return
    yield Line("flaky, trials disagree:", "title")
    for case in flaky[:MAX_SHOWN]:
        interval = f"95%: {case.pass_rate_low:.0%} to {case.pass_rate_high:.0%}"
        yield Line(
            f"  {case.passed} of {case.graded} passed ({interval})  {_name(run.name(case.key))}",
            "warn",
        )
    yield from more_line(len(flaky))
    yield Line("")


def _flaky(run: view.RunView) -> Iterator[RepeatedCase]:
    quarantined = {outcome.key for outcome in run.quarantined}
    for case in run.report.repeated:
        # Rows of other programs may be flaky without a graded trial.
        if case.flaky and case.graded and case.key not in quarantined:
            yield case


def matrix_lines(cases: Sequence[MatrixCase]) -> Iterator[Line]:
    """Yield the cases whose targets have different verdicts."""
    differing = [case for case in cases if case.differs]
    if not cases:
        return
    yield Line(
        f"verdicts of targets differ in {len(differing)} of {counted(len(cases), 'case')}", "strong"
    )
    for case in differing[:MAX_SHOWN]:
        verdicts = (
            f"{_name(target)} {view.score_text(outcome.verdict, outcome.score)}"
            for target, outcome in case.outcomes.items()
        )
        yield Line(f"  {_name(case.first.case.id)}: {', '.join(verdicts)}")
    yield from more_line(len(differing))


def group_lines(report: RunReport) -> Iterator[Line]:
    """Yield the figures by suite, by target, by tag and by evaluator, if there are several."""
    parts: tuple[tuple[str, Sequence[CaseFigures]], ...] = (
        ("by suite", report.suites),
        ("by target", report.targets),
        ("by tag", report.tags),
    )
    for title, groups in parts:
        if len(groups) > 1:
            ordered = _cut_worst_first(groups)
            yield from _table(
                title, [(_name(group.name), _group(group, report)) for group in ordered]
            )
    if len(report.evaluators) > 1:
        yield from _evaluators(report.evaluators)


def _evaluators(evaluators: Sequence[EvaluatorFigures]) -> Iterator[Line]:
    """Yield a line for each evaluator that does not always pass, and one for all others."""
    always = list(filter(_always_passed, evaluators))
    others = list(filterfalse(_always_passed, evaluators))
    rows = [
        (f"{_name(evaluator.name)} ({on_one_line(evaluator.type)})", _evaluator(evaluator))
        for evaluator in _cut_worst_first(others)
    ]
    if others:
        yield from _table("by evaluator", rows)
    if always:
        names = view.first_names([_name(evaluator.name) for evaluator in always], MAX_SHOWN)
        yield Line(f"{'  ' if others else 'evaluators: '}always passed: {names}")


def _always_passed(figures: EvaluatorFigures) -> bool:
    return 0 < figures.scored == figures.passed and not (figures.errors or figures.skipped)


def _statistics(figures: Statistics) -> Iterator[Line]:
    if figures.mean is None:
        return
    values = {name: getattr(figures, name) for name in ("mean", "median", "min", "max", "stdev")}
    yield Line(
        "  ".join(f"{name} {value:.3f}" for name, value in values.items() if value is not None)
    )
    most = max(figures.histogram)
    for index, number in enumerate(figures.histogram):
        low, high = index / 5, (index + 1) / 5
        closing = "]" if index == len(figures.histogram) - 1 else ")"
        bar = "#" * -(-number * BAR // most) if number else ""
        yield Line.of((f"[{low:.1f}, {high:.1f}{closing}  {number:>5}  ", "plain"), (bar, "bar"))


def _usage(usage: Usage) -> Iterator[Line]:
    if (
        usage.total_tokens is not None
        or usage.input_tokens is not None
        or usage.output_tokens is not None
    ):
        yield Line(
            f"tokens: {usage.input_tokens or 0:,} in, {usage.output_tokens or 0:,} out, "
            f"{usage.total_tokens or 0:,} total"
        )


def _cost(report: RunReport) -> Iterator[Line]:
    if (cost := view.cost_text(report, report)) is not None:
        judges = view.judges_cost(report)
        included = ""
        if judges is not None:
            included = f", including {dollars(judges)} for judges"
        yield Line(f"cost: {cost}{included}")
    for remark in view.cost_remarks(report):
        yield Line(remark, "warn")


def scenario_lines(scenarios: Sequence[ScenarioReport]) -> Iterator[Line]:
    """Yield what validators found, errors first; notes are only counted."""
    for scenario in scenarios:
        about = ""
        if len(scenarios) > 1:
            about = f" of {on_one_line(scenario.scenario_key)}"
        for validation in scenario.aggregates.validations:
            name = f"validator {_name(validation.validator)}{about}"
            if isinstance(validation, FailedValidation):
                yield Line(f"{name} could not run: {_message(validation.error)}", "warn")
            else:
                yield from _validation(name, validation)


def _validation(name: str, validation: Validation) -> Iterator[Line]:
    # A validator may have notes alone, such as that nothing could be compared.
    problems = [issue for issue in validation.worst_first if issue.severity != "info"]
    notes = [] if problems else validation.issues[:MAX_NOTES]
    style: Style = "warn" if problems else "good"
    if validation.errors:
        style = "bad"
    yield Line(f"{name}: {view.issues_text(validation)}", style)
    for issue in [*problems[:MAX_SHOWN], *notes]:
        yield Line(f"  {view.SEVERITIES[issue.severity]}: {_message(issue.message)}")
    yield from more_line(validation.count("error") + validation.count("warning"))


def _message(text: str) -> str:
    return shortened(on_one_line(text), MAX_MESSAGE)


def comparison_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield what is stated of both runs, and what changed, worst first."""
    yield from statement_lines(comparison)
    changed = [case for case in comparison.cases if case.change not in ("new", "removed")]
    if changed:
        yield Line(f"{_name(comparison.base)} → {_name(comparison.head)}:", "title")
    for number, case in enumerate(changed[:MAX_SHOWN], 1):
        text = f"{_name(view.compared_name(case, comparison))}: {view.change_text(case)}"
        yield Line(f"  {case.change:<19}  {text}", _STYLES.get(case.change, "plain"))
        for side, answer in view.answers_text(case) if number <= MAX_WITH_ANSWERS else ():
            yield Line(f"    {side + ':':<7} {shortened(on_one_line(answer), MAX_MESSAGE)}")
    yield from more_line(len(changed))
    yield Line(f"cases: {view.changes_text(comparison)}")
    for name in view.one_sided(comparison):
        yield Line(f"  {name}")
    for warning in comparison.warnings:
        yield Line(f"warning: {on_one_line(warning)}", "warn")
    if comparison.trial_correlation is not None:
        yield correlation_line(comparison.trial_correlation)


def correlation_line(correlation: float) -> Line:
    """Return how alike the trials of one run are, and what that says of comparisons."""
    text = f"correlation of the trials of one run: {correlation:.2f}"
    if correlation < HIGH_CORRELATION:
        return Line(text)
    return Line(
        f"{text}; comparisons of runs are wrong in more than 5%: interleave base and head", "warn"
    )


def statement_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield what a comparison rests on; its verdict is that of the command."""
    if (statement := comparison.statement) is None or not (statement.cases or statement.withheld):
        return
    yield Line(f"against {_name(comparison.base)}, {counted(statement.cases, 'case')}:", "title")
    for change in statement.metrics:
        text = on_one_line(metric_text(change))
        yield Line(f"  {verdict_text(change):<15}  {text}", _OF_METRIC.get(change.verdict, "plain"))


def _group(group: CaseFigures, report: RunReport) -> str:
    mean = ""
    if group.mean is not None:
        mean = f", mean {group.mean:.3f}"
    errors = f", {counted(group.errored, 'error')}" if group.errored else ""
    if group.crashed:
        errors += f", {counted(group.crashed, 'crashed trial')}"
    left = f", {group.not_run} not run" if group.not_run else ""
    if group.skipped:
        left += f", {group.skipped} skipped"
    if group.quarantined:
        left += f", {group.quarantined} in quarantine"
    spent, seconds = None, 0.0
    if isinstance(group, Group):
        spent, seconds = view.cost_text(report, group), group.duration_s or 0.0
    cost = f", {spent}" if spent is not None else ""
    time = ""
    if seconds >= WORTH_A_TIME_S:
        time = f", {view.duration_text(seconds)}"
    return f"{group.passed}/{group.counting} passed{mean}{errors}{left}{cost}{time}"


def _evaluator(figures: EvaluatorFigures) -> str:
    mean = ""
    if figures.mean is not None:
        mean = f", mean {figures.mean:.3f}"
    errors = ""
    if figures.errors:
        errors = f", {counted(figures.errors, 'error')}"
    skipped = ""
    if figures.skipped:
        skipped = f", {figures.skipped} skipped"
    return f"{figures.passed}/{figures.scored} passed{mean}{errors}{skipped}"


T = TypeVar("T", CaseFigures, EvaluatorFigures)


def _cut_worst_first(listed: Sequence[T]) -> Sequence[T]:
    """Return a list in its order, or with the lowest pass rates first if it is too long."""
    if len(listed) <= MAX_SHOWN:
        return listed
    return sorted(listed, key=view.badness)


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[Line]:
    width = max(len(name) for name, _ in rows[:MAX_SHOWN])
    yield Line(f"{title}:", "title")
    for name, figures in rows[:MAX_SHOWN]:
        yield Line(f"  {name:<{width}}  {figures}")
    yield from more_line(len(rows))


def more_line(total: int) -> Iterator[Line]:
    """Yield how many more there are than MAX_SHOWN."""
    for text in view.more_text(total, MAX_SHOWN):
        yield Line(f"  {text}")


def _name(text: str) -> str:
    return shortened(on_one_line(text), MAX_NAME)
