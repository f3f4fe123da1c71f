"""Changes that no author made: of the judges, and of those who answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

from msgspec import Struct

from agentv_ci.analysis.health.histories import CaseHistory, CaseRun
from agentv_ci.analysis.health.shifts import (
    Observation,
    Shift,
    latest_shift,
    levels,
    number_of_tests,
)
from agentv_ci.analysis.health.verdicts import begin_of, finding, is_unsteady, passes_mostly
from agentv_ci.contracts.command_output import HealthFinding

LEAST_SHIFT = 0.05
"""The least change of a mean score that matters."""
COMMIT_DIGITS = 12
ONSETS_BY_CHANCE = 0.01
"""Accepted probability that a case whose pass rate did not change seems to become flaky."""


class Series(Struct, frozen=True):
    """What is tested of a case."""

    runs: tuple[CaseRun, ...]
    """Those with a score."""
    scores: tuple[Observation, ...]
    pass_rates: tuple[Observation, ...]
    judged: tuple[Observation, ...]
    """Mean scores that judges gave an answer in a run, with the answer; of answers that occur in
    several runs.
    """
    judged_runs: tuple[CaseRun, ...]
    """The run of each of them."""

    @property
    def tests(self) -> int:
        """How many tests of drifts they take."""
        return number_of_tests(len(self.scores)) + number_of_tests(len(self.judged))


class Shifts(Struct, frozen=True):
    """When the levels of a case changed."""

    scores: Shift | None
    fell_from: float | None
    """Mean score before the first fall, if the last one is lower."""
    pass_rates: Shift | None
    judged: Shift | None


def series_of(history: CaseHistory) -> Series:
    """Return the series of a case."""
    runs = history.graded
    scored = [(each, judged) for each in history.runs for judged in _judged(each)]
    answers = Counter(answer for _, (answer, _) in scored)
    again = [(run, judged) for run, judged in scored if answers[judged[0]] > 1]
    return Series(
        runs,
        tuple(("", each.case.score or 0.0) for each in runs),
        tuple(("", each.case.passed / each.case.graded) for each in runs),
        tuple(judged for _, judged in again),
        tuple(run for run, _ in again),
    )


def _judged(run: CaseRun) -> Iterator[tuple[str, float]]:
    """Yield each answer that judges scored, with the mean of its scores: those of one run have more in common."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for each in run.case.judged:
        scores[each.answer].append(each.score)
    yield from ((answer, fmean(each)) for answer, each in scores.items())


def shifts_of(series: Series, level: float) -> Shifts:
    """Return the changes of level.

    `level` is the probability of a false alarm for each test of drifts.
    """
    onset = latest_shift(
        series.pass_rates, ONSETS_BY_CHANCE / max(1, number_of_tests(len(series.pass_rates)))
    )
    scores, judged = (
        latest_shift(each, level, LEAST_SHIFT) for each in (series.scores, series.judged)
    )
    return Shifts(scores, _fell_from(series, level) if scores is not None else None, onset, judged)


def _fell_from(series: Series, level: float) -> float | None:
    """Return the mean score before the first fall; None if it is back there."""
    means = levels(series.scores, level)
    first = next((one for one, other in pairwise(means) if one - other >= LEAST_SHIFT), None)
    return first if first is not None and first - means[-1] >= LEAST_SHIFT else None


def drifting_judge(history: CaseHistory, series: Series, shift: Shift) -> HealthFinding:
    """Return that judges give the same answers other scores than before."""
    began = series.judged_runs[shift.start]
    message = f"judges score the same answers {shift.after:.2f} since {began.run.time[:10]}; {shift.before:.2f} before"
    action = "name the version of the judge's model, and measure it against labels with `agentv-ci judge-check`"
    return finding(history, "drifting-judge", message, action, **begin_of(began), **_levels(shift))


def drifting_provider(
    history: CaseHistory, series: Series, shift: Shift, fell_from: float | None
) -> HealthFinding:
    """Return that answers to the same case became better or worse.

    `fell_from` is the level before the first fall.
    """
    before, began = series.runs[shift.start - 1], series.runs[shift.start]
    models: dict[str, str | None] = {}
    reported = ""
    if None is not before.case.model != began.case.model is not None:
        models = {"model_before": before.case.model, "model_after": began.case.model}
        reported = f"; the provider reports '{began.case.model}', and '{before.case.model}' before"
    first = (
        f" and {fell_from:.2f} at first"
        if fell_from is not None and fell_from - shift.before >= LEAST_SHIFT
        else ""
    )
    message = (
        f"mean score {shift.after:.2f} since {began.run.time[:10]}, {shift.before:.2f} before{first}, "
        f"though case and target have the same digest{_commits(before, began)}{reported}"
    )
    action = (
        "name the version of the model in the target; see whether what the target runs was changed"
    )
    level = {"fell_from": round(fell_from, 4) if fell_from is not None else None}
    return finding(
        history,
        "drifting-provider",
        message,
        action,
        **begin_of(began),
        **_levels(shift),
        **level,
        **models,
    )


def _commits(before: CaseRun, began: CaseRun) -> str:
    """Say between which commits it was: a digest covers of what a target runs only its `sources`."""
    one, other = before.run.commit, began.run.commit
    if one is None or other is None or one == other:
        return ""
    return f"; it began between commits {one[:COMMIT_DIGITS]} and {other[:COMMIT_DIGITS]}"


def is_flakiness(series: Series, onset: Shift | None, level: float) -> bool:
    """Whether a case that was steady still passes mostly, with the scores of before, since its pass rate changed."""
    if onset is None:
        return False
    before, after = series.runs[: onset.start], series.runs[onset.start :]
    if is_unsteady(before) or not is_unsteady(after) or not passes_mostly(after):
        return False
    passing = [
        score
        for run, score in zip(series.runs, series.scores, strict=True)
        if run.case.verdict == "pass"
    ]
    return latest_shift(passing, level) is None


def _levels(shift: Shift) -> dict[str, float]:
    return {"before": round(shift.before, 4), "after": round(shift.after, 4)}
