"""What reports show of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agentv_ci.base.text import counted, dollars, on_one_line, shortened
from agentv_ci.errors import PASSED
from agentv_ci.report import view
from agentv_ci.report.lines import MAX_SHOWN, Line, Style, more_line

if TYPE_CHECKING:
    # Few runs are experiments.
    from agentv_ci.contracts.experiment_report import (
        CaseEffect,
        ExperimentReport,
        Look,
        MetricEffect,
    )

MAX_NAME = 40
MAX_REASON = 300
WORTH_SECONDS_MS = 1000

STYLES: Mapping[str, Style] = {
    "better": "good",
    "equivalent": "good",
    "not worse": "good",
    "worse": "bad",
}
"""Of a verdict; all others are a warning."""
IN_PERCENT = ("pass", "cost", "tokens", "duration")
"""Metrics whose changes are percentages; those of scores are numbers."""
STOPS: Mapping[str, str] = {
    "decided": "since it is decided",
    "futile": "since more trials would hardly decide it",
}
"""Why an experiment stopped early."""
HEAD = ("metric", "base", "arm", "change", "interval", "verdict")


class ArmEffects(NamedTuple):
    """What an experiment found of one arm."""

    arm: str
    effects: list[MetricEffect]
    cases: list[CaseEffect]


def arms_of(found: ExperimentReport) -> Iterator[ArmEffects]:
    """Yield what an experiment found of each arm."""
    for arm in dict.fromkeys(effect.arm for effect in found.effects):
        effects = [effect for effect in found.effects if effect.arm == arm]
        yield ArmEffects(arm, effects, [case for case in found.cases if case.arm == arm])


def style_of(verdict: str) -> Style:
    """Return the style of a verdict."""
    return STYLES.get(verdict, "warn")


def experiment_lines(found: ExperimentReport) -> Iterator[Line]:
    """Yield the effects on every metric, the cases that changed, and the verdict."""
    from agentv_ci.contracts.experiment_report import DRY_RUN  # few runs are experiments

    for arm in arms_of(found):
        yield from _arm(arm, found)
    for warning in found.warnings:
        yield Line(f"warning: {warning}", "warn")
    yield Line(f"experiment: {found.verdict}", style_of(found.verdict))
    # The gate names the reasons of the others, but there is none in a dry run.
    if found.exit_code == PASSED or DRY_RUN in found.reasons:
        for reason in found.reasons:
            yield Line(f"  {_reason(reason)}")
    for text in trials_texts(found):
        yield Line(f"  {text}")


def _arm(found: ArmEffects, experiment: ExperimentReport) -> Iterator[Line]:
    about = f"{compared_text(found.effects)}; primary metric {_name(experiment.primary)}"
    yield Line(f"{_name(experiment.base)} → {_name(found.arm)} ({about}):", "title")
    yield from _table(found.effects)
    for text in preference_texts(found.effects):
        yield Line(f"  {text}")
    called = [case for case in found.cases if case.called]
    for case in called[:MAX_SHOWN]:
        yield Line(f"  {case_text(case)}")
    yield from more_line(len(called))


def verdict_line(found: ExperimentReport) -> Line:
    """Return the verdict as one line, with its first reason."""
    reasons = map(_reason, found.reasons[:1])
    return Line(": ".join(["experiment", found.verdict, *reasons]), style_of(found.verdict))


def _reason(text: str) -> str:
    return shortened(on_one_line(text), MAX_REASON)


def _table(effects: Sequence[MetricEffect]) -> Iterator[Line]:
    rows = list(map(effect_row, effects))
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    yield _row(HEAD, widths, "faint", "faint")
    for cells, effect in zip(rows, effects, strict=True):
        yield _row(cells, widths, "plain", style_of(effect.verdict))


def _row(cells: Sequence[str], widths: Sequence[int], style: Style, last: Style) -> Line:
    *others, verdict = map(str.ljust, cells, widths)
    return Line.of((f"  {'  '.join(others)}  ", style), (verdict.rstrip(), last))


def effect_row(effect: MetricEffect) -> Sequence[str]:
    """Return the cells of an effect: those of HEAD."""
    metric = effect.metric
    base, arm = mean_text(metric, effect.base), mean_text(metric, effect.head)
    change, interval = (
        change_text(metric, effect.estimate),
        interval_text(metric, effect.low, effect.high),
    )
    return _name(metric), base, arm, change, interval, effect.verdict


def look_row(look: Look, found: ExperimentReport) -> Sequence[str]:
    """Return the cells of a look: cases, trials, arm, change, interval and verdict."""
    metric, counts = found.primary, (f"{look.cases:,}", f"{look.trials:,}")
    change, interval = (
        change_text(metric, look.estimate),
        interval_text(metric, look.low, look.high),
    )
    return *counts, _name(look.arm), change, interval, look.verdict


def compared_text(effects: Sequence[MetricEffect]) -> str:
    """Return how much was compared."""
    most = max(effects, key=lambda effect: effect.pairs)
    return f"{counted(most.pairs, 'pair')} of trials in {counted(most.clusters, 'cluster')}"


def change_text(metric: str, change: float | None) -> str:
    """Return the change of a metric."""
    if change is None:
        return "–"
    if metric in IN_PERCENT:
        return f"{change:+.1%}"
    return f"{change:+.3f}"


def interval_text(metric: str, low: float | None, high: float | None) -> str:
    """Return the interval of a change."""
    if low is None or high is None:
        return "–"
    return f"{change_text(metric, low)} to {change_text(metric, high)}"


def mean_text(metric: str, mean: float | None) -> str:
    """Return the mean of a metric in one arm."""
    if mean is None:
        return "–"
    match metric:
        case "pass":
            return f"{mean:.1%}"
        case "cost":
            return dollars(mean)
        case "tokens":
            return f"{mean:,.0f}"
        case "duration":
            if mean >= WORTH_SECONDS_MS:
                return view.duration_text(mean / 1000)
            return f"{mean:.0f} ms"
        case _:
            return f"{mean:.3f}"


def preference_texts(effects: Iterable[MetricEffect]) -> Iterator[str]:
    """Yield what judges prefer, and how far they choose by the order of two answers."""
    for effect in effects:
        if (counts := effect.preferences) is None:
            continue
        ties = counted(counts.ties, "tie")
        if counts.contradictions:
            ties += f" ({counts.contradictions} because the order decided)"
        about = f"{effect.metric} of '{_name(effect.arm)}'"
        yield (
            f"{about}: {counted(counts.wins, 'win')}, {ties}, "
            f"{counted(counts.losses, 'loss', 'losses')}"
        )
        if chosen := counts.first + counts.second:
            yield f"{about}: the answer shown first was chosen {counts.first} of {chosen} times"


def case_text(case: CaseEffect) -> str:
    """Return how a case changed."""
    return f"{_name(case.id)}: {case.base:.3f} → {case.head:.3f}"


def trials_texts(found: ExperimentReport) -> Iterator[str]:
    """Yield how many trials the verdict took, and how certain it is."""
    used = f"{found.trials} of {counted(found.planned_trials, 'trial')}"
    if found.stopped is not None:
        why = STOPS[found.stopped]
        share = found.saved_trials / max(found.planned_trials, 1)
        saved = "; the others do not count"
        if found.saved_trials:
            saved = f": {share:.0%} saved"
        used += f"; stopped early, {why}{saved}"
    yield used
    yield (
        f"at most {100 * found.alpha:g}% of such experiments call an arm better or worse that is "
        "not"
    )


def _name(text: str) -> str:
    return shortened(on_one_line(text), MAX_NAME)
