"""Simulated experiments by the thousand: the arithmetic of `agentv_ci.analysis.statistics.effects` on arrays.

`tests/analysis/test_experiment_draws.py` holds that experiments are estimated and judged here as they are there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agentv_ci.analysis.statistics import sequence
from agentv_ci.analysis.statistics.effects import LEAST_ERROR

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Scores = Literal["pass or fail", "graded"]
Change = Literal["none", "evens out", "drop", "skewed"]
DROP = 0.2
"""How much half of the cases drop."""
FEW, FALL = 0.1, 0.8
"""The share of cases that drop by so much where effects are skewed; the others rise by as much
together.
"""
CRITERIA = 5
"""A graded score is the share of so many criteria that an answer meets."""
WORST = 0.5
"""What a drifting provider leaves of all levels at its worst."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of experiment."""

    cases: int
    trials: int
    """Of each case, at most."""
    scores: Scores = "pass or fail"
    level: float = 0.8
    """The mean pass rate or score."""
    correlation: float = 0.0
    """Between trials of the same case that pass or fail."""
    drifts: bool = False
    change: Change = "none"
    """`evens out`: every case changes as much as cases differ, but not their mean. `drop`: half of
    the cases drop. `skewed`: a few cases, drawn by lot, drop by much and the others rise by little,
    but not their mean.
    """

    @property
    def effect(self) -> float:
        """The mean change."""
        return -DROP / 2 if self.change == "drop" else 0.0


@dataclass(frozen=True, slots=True)
class Draws:
    """Many experiments of a kind."""

    changes: Array
    """Of each pair: (experiment, case, trial)."""
    effects: Array
    """The mean change that is true at each trial: (experiment, trial)."""
    order: Array
    """Numbers to sort cases by."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is known after a batch, in each experiment."""

    pairs: int
    estimate: Array
    error: Array
    degrees: int
    truth: Array


def draw(cell: Cell, count: int, chance: np.random.Generator) -> Draws:
    """Draw so many experiments."""
    base = _levels(cell, count, chance)
    head = _levels(cell, count, chance) if cell.change == "evens out" else base
    if cell.change == "drop":
        drops = np.arange(cell.cases) % 2 == 0
        base = np.where(drops, np.maximum(base, DROP), base)
        head = base - DROP * drops
    if cell.change == "skewed":
        falls = chance.random(base.shape) < FEW
        rise = FALL * FEW / (1 - FEW)
        base = np.where(falls, np.maximum(base, FALL), np.minimum(base, 1 - rise))
        head = np.where(falls, base - FALL, base + rise)
    left = _left(cell, count, chance)
    scored = [
        _scores(cell, levels[:, :, None] * left[:, None, :], chance) for levels in (head, base)
    ]
    return Draws(scored[0] - scored[1], cell.effect * left, chance.random((count, cell.cases)))


def _levels(cell: Cell, count: int, chance: np.random.Generator) -> Array:
    shape = (count, cell.cases)
    if not cell.correlation:
        return np.full(shape, cell.level)
    strength = (1 - cell.correlation) / cell.correlation
    return chance.beta(cell.level * strength, (1 - cell.level) * strength, shape)


def _left(cell: Cell, count: int, chance: np.random.Generator) -> Array:
    """Return what the provider leaves of all levels at each trial: up and down one and a half times."""
    if not cell.drifts:
        return np.ones((count, cell.trials))
    phase = np.arange(cell.trials) / cell.trials * 1.5 + chance.random((count, 1))
    return np.asarray(1 - (1 - WORST) * (1 + np.sin(2 * np.pi * phase)) / 2)


def _scores(cell: Cell, levels: Array, chance: np.random.Generator) -> Array:
    if cell.scores == "graded":
        return chance.binomial(CRITERIA, levels) / CRITERIA
    return (chance.random(levels.shape) < levels).astype(float)


def looks(draws: Draws, every: int) -> Iterator[Look]:
    """Yield what is known after each batch of so many cases, round after round of one trial of each case."""
    count, cases, trials = draws.changes.shape
    sums, counts, largest, is_whole = (
        np.zeros((count, cases)),
        np.zeros(cases),
        np.zeros(count),
        np.full(count, True),
    )
    expected = np.zeros((count, cases))
    for trial in range(trials):
        for start in range(0, cases, every):
            batch = slice(start, min(cases, start + every))
            changes = draws.changes[:, batch, trial]
            sums[:, batch] += changes
            expected[:, batch] += draws.effects[:, [trial]]
            counts[batch] += 1
            largest = np.maximum(largest, np.abs(changes).max(axis=1))
            is_whole &= (changes % 1 == 0).all(axis=1)
            seen = counts > 0
            if seen.sum() > 1:
                truth = (expected[:, seen] / counts[seen]).mean(axis=1)
                yield look(
                    sums[:, seen] / counts[seen],
                    counts[seen],
                    np.where(is_whole, 1.0, largest),
                    truth,
                )


def look(means: Array, counts: Array, largest: Array, truth: Array) -> Look:
    """Return what follows from the mean change of each case, its number of trials, and the largest change."""
    cases = len(counts)
    unseen = largest**2 * (1 / counts).sum() / cases**2 / (cases - 1)
    variance = means.var(axis=1, ddof=1) / cases + unseen
    error = np.maximum(np.sqrt(variance), LEAST_ERROR)
    return Look(int(counts.sum()), means.mean(axis=1), error, cases - 1, truth)


def looks_by_case(draws: Draws, every: int) -> Iterator[Look]:
    """Yield what is known after each batch of so many cases of which all trials have run, in an order drawn by lot.

    The cases are alike but for those that drop, so only the order of these matters.
    """
    _, cases, trials = draws.changes.shape
    order = np.argsort(draws.order, axis=1)
    changes = np.take_along_axis(draws.changes, order[:, :, None], axis=1)
    means, truth = changes.mean(axis=2), draws.effects.mean(axis=1)
    sizes, is_whole = np.abs(changes).max(axis=2), (changes % 1 == 0).all(axis=2)
    for end in range(every, cases + 1, every):
        largest = np.where(is_whole[:, :end].all(axis=1), 1.0, sizes[:, :end].max(axis=1))
        yield look(means[:, :end], np.full(end, float(trials)), largest, truth)


def tail_of(at: Look, change: Array | float) -> Array:
    """Return the probability of an estimate at least as far from a change on the same side, in each experiment."""
    tail = special.stdtr(at.degrees, -np.abs(at.estimate - change) / at.error)
    return np.asarray(np.maximum(tail, sequence.LEAST_P), dtype=np.float64)


def excludes(tail: Array, at: Look, alpha: float) -> Flags:
    """Return in which experiments a change is excluded at the end of the fixed size."""
    return np.asarray(np.maximum(2 * tail, 2.0**-at.degrees) <= alpha)


def excludes_at_all_looks(tail: Array, at: Look, alpha: float, smallest: float) -> Flags:
    """Return in which experiments a change is excluded, at all looks at once."""
    fortune = _log_fortune(-special.ndtri(tail), smallest / at.error)
    return np.asarray((fortune >= -math.log(alpha)) & (2.0**-at.degrees <= alpha))


def _log_fortune(z: Array, drift: Array) -> Array:
    reach, spread = drift * z, drift * drift
    on_plan = (
        math.log(sequence.ON_PLAN) + reach + np.log1p(np.exp(-2 * reach)) - math.log(2) - spread / 2
    )
    spread_out = (
        math.log(1 - sequence.ON_PLAN) + z * z * spread / (1 + spread) / 2 - np.log1p(spread) / 2
    )
    return np.asarray(np.logaddexp(on_plan, spread_out))
