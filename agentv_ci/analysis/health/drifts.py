"""Changes that no author made: of the judges, and of those who answer."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from agentv_ci.analysis.health.histories import CaseHistory, CaseRun
from agentv_ci.analysis.health.shifts import Observation, Shift, latest_shift, number_of_tests
from agentv_ci.analysis.health.verdicts import begin_of, finding, is_unsteady, passes_mostly
from agentv_ci.contracts.health import HealthFinding

LEAST_SHIFT = 0.05
"""The least change of a mean score that matters."""
ONSETS_BY_CHANCE = 0.01
"""Accepted probability that a case whose pass rate did not change seems to become flaky."""


class Series(Struct, frozen=True):
    """What is tested of a case."""

    runs: tuple[CaseRun, ...]
    """Those with a score."""
    scores: tuple[Observation, ...]
    pass_rates: tuple[Observation, ...]
    judged: tuple[Observation, ...]
    """Scores that judges gave answers which occur in several trials, with the answer."""
    judged_runs: tuple[CaseRun, ...]
    """The run of each of them."""

    @property
    def tests(self) -> int:
        """How many tests of drifts they take."""
        return number_of_tests(len(self.scores)) + number_of_tests(len(self.judged))


class Shifts(Struct, frozen=True):
    """When the levels of a case changed."""

    scores: Shift | None
    pass_rates: Shift | None
    judged: Shift | None


def series_of(history: CaseHistory) -> Series:
    """Return the series of a case."""
    runs = history.graded
    scored = [(each, judged) for each in history.runs for judged in each.case.judged]
    answers = Counter(judged.answer for _, judged in scored)
    again = [(run, judged) for run, judged in scored if answers[judged.answer] > 1]
    return Series(
        runs,
        tuple(("", each.case.score or 0.0) for each in runs),
        tuple(("", each.case.passed / each.case.graded) for each in runs),
        tuple((judged.answer, judged.score) for _, judged in again),
        tuple(run for run, _ in again),
    )


def shifts_of(series: Series, level: float) -> Shifts:
    """Return the changes of level; `level` is the probability of a false alarm for each test of drifts."""
    scores, judged = latest_shift(series.scores, level), latest_shift(series.judged, level)
    matters = (
        each if each is not None and abs(each.after - each.before) >= LEAST_SHIFT else None for each in (scores, judged)
    )
    onset = latest_shift(series.pass_rates, ONSETS_BY_CHANCE / max(1, number_of_tests(len(series.pass_rates))))
    return Shifts(next(matters), onset, next(matters))


def drifting_judge(history: CaseHistory, series: Series, shift: Shift) -> HealthFinding:
    """Return that judges give the same answers other scores than before."""
    began = series.judged_runs[shift.start]
    message = f"judges score the same answers {shift.after:.2f} since {began.run.time[:10]}; {shift.before:.2f} before"
    action = "name the version of the judge's model, and measure it against labels with `agentv-ci judge-check`"
    return finding(history, "drifting-judge", message, action, **begin_of(began), **_levels(shift))


def drifting_provider(history: CaseHistory, series: Series, shift: Shift) -> HealthFinding:
    """Return that answers to the same case became better or worse."""
    before, began = series.runs[shift.start - 1], series.runs[shift.start]
    models: dict[str, str | None] = {}
    reported = ""
    if None is not before.case.model != began.case.model is not None:
        models = {"model_before": before.case.model, "model_after": began.case.model}
        reported = f"; the provider reports '{began.case.model}', and '{before.case.model}' before"
    message = (
        f"mean score {shift.after:.2f} since {began.run.time[:10]}, {shift.before:.2f} before, "
        f"though neither case nor target was changed{reported}"
    )
    action = "name the version of the model in the target; accept the new level with `agentv-ci baseline accept`"
    return finding(history, "drifting-provider", message, action, **begin_of(began), **_levels(shift), **models)


def is_flakiness(series: Series, onset: Shift | None, level: float) -> bool:
    """Whether a case that was steady still passes mostly, with the scores of before, since its pass rate changed."""
    if onset is None:
        return False
    before, after = series.runs[: onset.start], series.runs[onset.start :]
    if is_unsteady(before) or not is_unsteady(after) or not passes_mostly(after):
        return False
    passing = [score for run, score in zip(series.runs, series.scores, strict=True) if run.case.verdict == "pass"]
    return latest_shift(passing, level) is None


def _levels(shift: Shift) -> dict[str, float]:
    return {"before": round(shift.before, 4), "after": round(shift.after, 4)}
