"""Changes that no author made: of the judges, and of those who answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from itertools import compress, pairwise
from statistics import fmean

from msgspec import Struct

from agentv_ci.analysis.health.histories import CaseHistory, CaseRun, pass_rate
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
    judged_runs: list[CaseRun] = []
    judged: list[Observation] = []
    times: Counter[Hashable] = Counter()
    for run in history.runs:
        for answer, score in _judged(run):
            judged_runs.append(run)
            judged.append((answer, score))
            times[answer] += 1
    is_again = [times[answer] > 1 for answer, _ in judged]
    return Series(
        runs,
        tuple(map(_score, runs)),
        tuple(map(_pass_rate, runs)),
        tuple(compress(judged, is_again)),
        tuple(compress(judged_runs, is_again)),
    )


def _score(run: CaseRun) -> Observation:
    return "", run.case.score or 0.0


def _pass_rate(run: CaseRun) -> Observation:
    return "", pass_rate(run)


def _judged(run: CaseRun) -> Iterator[tuple[str, float]]:
    """Yield each answer that judges scored, with the mean of its scores.

    The scores of one run have more in common than those of several.
    """
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for judged in run.case.judged:
        scores[judged.answer].append(judged.score)
    for answer, own in scores.items():
        yield answer, fmean(own)


def shifts_of(series: Series, level: float) -> Shifts:
    """Return the changes of level.

    `level` is the probability of a false alarm for each test of drifts.
    """
    by_chance = ONSETS_BY_CHANCE / max(1, number_of_tests(len(series.pass_rates)))
    onset = latest_shift(series.pass_rates, by_chance)
    scores = latest_shift(series.scores, level, LEAST_SHIFT)
    judged = latest_shift(series.judged, level, LEAST_SHIFT)
    fell_from = _fell_from(series, level) if scores is not None else None
    return Shifts(scores, fell_from, onset, judged)


def _fell_from(series: Series, level: float) -> float | None:
    """Return the mean score before the first fall; None if it is back there."""
    means = levels(series.scores, level)
    for before, after in pairwise(means):
        if before - after >= LEAST_SHIFT:
            return before if before - means[-1] >= LEAST_SHIFT else None
    return None


def drifting_judge(history: CaseHistory, series: Series, shift: Shift) -> HealthFinding:
    """Return that judges give the same answers other scores than before."""
    began = series.judged_runs[shift.start]
    since = f"{shift.after:.2f} since {began.run.time[:10]}"
    message = f"judges score the same answers {since}; {shift.before:.2f} before"
    action = (
        "name the version of the judge's model, "
        "and measure it against labels with `agentv-ci judge-check`"
    )
    return finding(history, "drifting-judge", message, action, **begin_of(began), **_levels(shift))


def drifting_provider(
    history: CaseHistory, series: Series, shift: Shift, fell_from: float | None
) -> HealthFinding:
    """Return that answers became better or worse; `fell_from` is the level before a first fall."""
    before, began = series.runs[shift.start - 1], series.runs[shift.start]
    models, reported = _models(before, began)
    first = ""
    if fell_from is not None and fell_from - shift.before >= LEAST_SHIFT:
        first = f" and {fell_from:.2f} at first"
    since = f"{shift.after:.2f} since {began.run.time[:10]}, {shift.before:.2f} before{first}"
    same = f"though case and target have the same digest{_commits(before, began)}"
    message = f"mean score {since}, {same}{reported}"
    action = (
        "name the version of the model in the target; see whether what the target runs was changed"
    )
    level = {"fell_from": round(fell_from, 4) if fell_from is not None else None}
    more = {**begin_of(began), **_levels(shift), **level, **models}
    return finding(history, "drifting-provider", message, action, **more)


def _models(before: CaseRun, began: CaseRun) -> tuple[dict[str, str], str]:
    """Return the models that the provider reports, and a text of them; neither if they agree."""
    old, new = before.case.model, began.case.model
    if old is None or new is None or old == new:
        return {}, ""
    text = f"; the provider reports '{new}', and '{old}' before"
    return {"model_before": old, "model_after": new}, text


def _commits(before: CaseRun, began: CaseRun) -> str:
    """Say between which commits it was.

    A digest covers of what a target runs only its `sources`.
    """
    last, first = before.run.commit, began.run.commit
    if last is None or first is None or last == first:
        return ""
    return f"; it began between commits {last[:COMMIT_DIGITS]} and {first[:COMMIT_DIGITS]}"


def is_flakiness(series: Series, onset: Shift | None, level: float) -> bool:
    """Whether a case that was steady still passes mostly, with the scores of before.

    It does so since its pass rate changed.
    """
    if onset is None:
        return False
    before, after = series.runs[: onset.start], series.runs[onset.start :]
    if is_unsteady(before) or not is_unsteady(after) or not passes_mostly(after):
        return False
    runs = zip(series.scores, series.runs, strict=True)
    of_passes = [score for score, run in runs if run.case.verdict == "pass"]
    return latest_shift(of_passes, level) is None


def _levels(shift: Shift) -> dict[str, float]:
    return {"before": round(shift.before, 4), "after": round(shift.after, 4)}
