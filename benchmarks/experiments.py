"""How often experiments are wrong, how much looking early saves, and how often intervals hold the truth.

    python benchmarks/experiments.py [--runs 2000] [--plots docs]

Arms whose levels are known answer the cases of a suite, round after round; after each batch of a fifth of the cases,
there is a look. README.md explains the grid. It ends with status 1 unless each bar is met.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import get_args

import experiment_metrics
import numpy as np
from experiment_draws import (
    DROP,
    FALL,
    Cell,
    Change,
    Draws,
    Flags,
    Look,
    Scores,
    draw,
    excludes,
    excludes_at_all_looks,
    looks,
    looks_by_case,
    tail_of,
)
from plots import drawing
from scipy import stats

from agentv_ci.analysis.experiment.planning import Design, Spread, trials_needed

ALPHA, POWER = 0.05, 0.9
CASES = (10, 20, 50, 100, 200)
LEVELS = (0.5, 0.9)
CORRELATIONS = (0.0, 0.2, 0.5, 0.8)
SMALLEST = (0.05, 0.1, 0.2)
"""What plans are made to find; the worst of them counts."""
BATCHES = 5
"""In a round."""
LOOKS_BY_CASE = 20
"""At experiments that run all trials of a case before the next, at most."""
CHUNK = 1000
AGAIN = 10
"""How many times as many experiments measure the worst cell again."""
MOST_FOUND_WITH = 0.6
"""Of the planned trials; the bar for a drop of 20 points in half of the cases."""
SLACK = 0.005
"""How far below its confidence the coverage of an interval may lie."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How often something happened in experiments of one kind."""

    cell: Cell
    looks: float
    """A false alarm at any look: 0 was excluded by what holds at all looks."""
    fixed: float
    """A false alarm of the fixed size, looked at once."""
    peeking: float
    """A false alarm of the test for the fixed size at any look."""
    sequence_covers: float
    """The confidence sequence held the truth at every look."""
    interval_covers: float
    """The interval of the fixed size held it."""


def chunks(cell: Cell, runs: int, seed: int = 0) -> Iterator[Draws]:
    """Yield the experiments of a cell, the same ones every time."""
    chance = np.random.default_rng([seed, *repr(cell).encode()])
    for _ in range(0, runs, CHUNK):
        yield draw(cell, min(CHUNK, runs), chance)


def batch(cell: Cell) -> int:
    """Return how many cases are in a batch."""
    return max(2, cell.cases // BATCHES)


def measure(cell: Cell, runs: int, seed: int = 0) -> Rates:
    """Return how often experiments of a kind are wrong."""
    found = [_wrong(draws, batch(cell)) for draws in chunks(cell, runs, seed)]
    alarms, fixed, peeking, lost, missed = np.mean(found, axis=0)
    return Rates(cell, alarms, fixed, peeking, 1 - lost, 1 - missed)


def _wrong(draws: Draws, every: int) -> tuple[float, ...]:
    _, cases, _ = draws.changes.shape
    alarms, lost = _at_all_looks(draws, looks(draws, every))
    others = _at_all_looks(draws, looks_by_case(draws, max(2, cases // LOOKS_BY_CASE)))
    peeking = fixed = missed = np.zeros(len(draws.changes), dtype=bool)
    for at in looks(draws, every):
        fixed, missed = (excludes(tail_of(at, change), at, ALPHA) for change in (0.0, at.truth))
        peeking = peeking | fixed
    return (
        max(alarms, others[0]),
        float(fixed.mean()),
        float(peeking.mean()),
        max(lost, others[1]),
        float(missed.mean()),
    )


def _at_all_looks(draws: Draws, found: Iterable[Look]) -> tuple[float, float]:
    """Return how often 0 and the truth were excluded at any look, with the worst plan."""
    nothing: Flags = np.zeros(len(draws.changes), dtype=bool)
    excluded = {(which, smallest): nothing for which in (0, 1) for smallest in SMALLEST}
    for at in found:
        tails = tail_of(at, 0.0), tail_of(at, at.truth)
        for (which, smallest), flags in excluded.items():
            excluded[which, smallest] = flags | excludes_at_all_looks(
                tails[which], at, ALPHA, smallest
            )
    zero, truth = (
        max(float(excluded[which, each].mean()) for each in SMALLEST) for which in (0, 1)
    )
    return zero, truth


def grid(cases: int) -> Iterator[Cell]:
    """Yield the cells of one number of cases."""
    trials = 10 if cases <= 50 else 5
    for scores, level, correlation, drifts, change in product(
        get_args(Scores), LEVELS, CORRELATIONS, (False, True), get_args(Change)
    ):
        # Without differences between cases, nothing evens out. Skewed effects have a table of their
        # own.
        if change != "skewed" and (change != "evens out" or correlation):
            yield Cell(cases, trials, scores, level, correlation, drifts, change)


def upper_end(share: float, runs: int) -> float:
    """Return the upper end of the 95% interval of a share (Clopper and Pearson)."""
    return float(
        stats.binomtest(round(share * runs), runs).proportion_ci(0.95, method="exact").high
    )


def errors(runs: int) -> bool:
    """Print false alarms and coverage in the worst cell of each number of cases.

    Return whether the bars are met.

    The worst of many cells is worse than it is by chance, too: each is measured again.
    """
    print(
        f"{runs:,} experiments per cell; the worst cell measured again with {AGAIN * runs:,} others.\n"
    )
    print("| cases | cells | false alarms with looks | fixed size | p ≤ 0.05 at any look |", end="")
    print(
        " interval of the fixed size covers | confidence sequence covers |\n|--:|--:|--:|--:|--:|--:|--:|"
    )
    is_met = True
    for cases in CASES:
        cells = [measure(each, runs) for each in grid(cases)]
        equal = [each for each in cells if each.cell.change != "drop"]
        alarms, fixed, peeking = (
            _worst(equal, name, runs) for name in ("looks", "fixed", "peeking")
        )
        covered = [_worst(cells, name, runs) for name in ("interval_covers", "sequence_covers")]
        end = upper_end(alarms, AGAIN * runs)
        print(
            f"| {cases} | {len(cells)} | {alarms:.2%} (≤ {end:.2%}) | {fixed:.2%} | {peeking:.1%} |",
            end="",
        )
        print(f" {covered[0]:.2%} | {covered[1]:.2%} |", flush=True)
        is_met &= end <= ALPHA and min(covered) >= 1 - ALPHA - SLACK
    return is_met


def skewed(runs: int) -> None:
    """Print false alarms where the mean of these cases says little about others: no bar holds for them."""
    print(
        f"\nEffects that are skewed: a tenth of the cases drop by {FALL:.0%}, {runs:,} experiments per cell.\n"
    )
    print("| cases | false alarms with looks | fixed size |\n|--:|--:|--:|")
    for cases in CASES:
        of = measure(Cell(cases, 10 if cases <= 50 else 5, "graded", 0.9, change="skewed"), runs)
        print(f"| {cases} | {of.looks:.1%} | {of.fixed:.1%} |", flush=True)


def _worst(cells: Sequence[Rates], name: str, runs: int) -> float:
    sign = -1 if name.endswith("covers") else 1
    worst = max(cells, key=lambda each: sign * getattr(each, name))
    return float(getattr(measure(worst.cell, AGAIN * runs, seed=1), name))


def drops(runs: int) -> bool:
    """Print how often a drop of half of the cases is found, and with how many trials.

    Return whether the bar is met.
    """
    print(
        f"\nA drop of {DROP:.0%} in half of the cases, {runs:,} experiments per cell. Trials of each case.\n"
    )
    print(
        "| cases | scores | level | correlation | planned, with looks | found | used on average | of the planned |",
        end="",
    )
    print(
        " fixed size for the same power | found | used, of the fixed size |\n"
        "|--:|---" + "|--:" * 9 + "|"
    )
    is_met = True
    for cases, scores, level, correlation in product(
        CASES, get_args(Scores), (0.5, 0.8), (0.0, 0.5)
    ):
        cell = Cell(cases, 1, scores, level, correlation, change="drop")
        print(f"| {cases} | {scores} | {level:g} | {correlation:g} |", end="")
        planned, fixed = (needed(cell, looks=each) for each in (True, False))
        if planned is None or fixed is None:
            print(" none |" + " – |" * 6, flush=True)
            continue
        found, used = sequential(replace(cell, trials=planned), runs)
        at_once, _ = sequential(replace(cell, trials=fixed), runs, looks_at_end=True)
        print(f" {planned} | {found:.1%} | {used:.1f} | {used / planned:.0%} |", end="")
        print(f" {fixed} | {at_once:.1%} | {used / fixed:.0%} |", flush=True)
        is_met &= found >= POWER and used <= MOST_FOUND_WITH * planned
    return is_met


def needed(cell: Cell, *, looks: bool) -> int | None:
    """Return what a plan says that a mean change of this size needs, knowing the variance of trials."""
    within = np.concatenate(
        [
            draws.changes.var(axis=2, ddof=1).ravel()
            for draws in chunks(replace(cell, trials=50), CHUNK // 10)
        ]
    )
    spread = Spread(within=float(within.mean()))
    return trials_needed(spread, Design(ALPHA, POWER, cell.cases, looks), DROP / 2)


def sequential(cell: Cell, runs: int, *, looks_at_end: bool = False) -> tuple[float, float]:
    """Return how often a drop is found, and with how many trials of each case on average."""
    found, pairs = 0, 0.0
    for draws in chunks(cell, runs):
        undecided: Flags = np.ones(len(draws.changes), dtype=bool)
        for at in looks(draws, cell.cases if looks_at_end else batch(cell)):
            if looks_at_end and at.pairs < cell.cases * cell.trials:
                continue
            tail = tail_of(at, 0.0)
            decided = (
                excludes(tail, at, ALPHA)
                if looks_at_end
                else excludes_at_all_looks(tail, at, ALPHA, DROP / 2)
            )
            decided &= undecided
            found += int((decided & (at.estimate < 0)).sum())
            pairs += float(decided.sum()) * at.pairs
            undecided &= ~decided
        pairs += float(undecided.sum()) * cell.cases * cell.trials
    total = math.ceil(runs / CHUNK) * min(CHUNK, runs)
    return found / total, pairs / total / cell.cases


def plots(runs: int, folder: Path) -> None:
    """Draw false alarms and found drops over the trials of an experiment that looks after each batch."""
    equal = Cell(50, 20, correlation=0.2)
    alarms = {
        "p ≤ 0.05 at any look so far": _by_look(equal, runs, None),
        "confidence sequence": _by_look(equal, runs, DROP / 2),
    }
    found = {
        f"{cases} cases": _by_look(replace(equal, cases=cases, change="drop"), runs, DROP / 2)
        for cases in CASES[2:]
    }
    for name, lines, y in (
        ("false-alarms", alarms, "false alarms (%)"),
        ("found", found, "drop found (%)"),
    ):
        text = drawing(lines, "trials of each case", y)
        (folder / f"experiments-{name}.svg").write_text(text, encoding="utf-8")


def _by_look(cell: Cell, runs: int, smallest: float | None) -> Sequence[tuple[float, float]]:
    """Return the percentage that has excluded 0, by the number of trials of each case."""
    shares: dict[float, list[float]] = {}
    for draws in chunks(cell, runs):
        found: Flags = np.zeros(len(draws.changes), dtype=bool)
        for at in looks(draws, batch(cell)):
            tail = tail_of(at, 0.0)
            found |= (
                excludes_at_all_looks(tail, at, ALPHA, smallest)
                if smallest
                else excludes(tail, at, ALPHA)
            )
            shares.setdefault(at.pairs / cell.cases, []).append(100 * float(found.mean()))
    return [(0.0, 0.0), *((trials, float(np.mean(each))) for trials, each in shares.items())]


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--plots", type=Path)
    given = parser.parse_args()
    skewed(given.runs)
    are_met = [errors(given.runs), drops(given.runs), experiment_metrics.check(given.runs)]
    if given.plots is not None:
        plots(given.runs, given.plots)
    sys.exit(not all(are_met))


if __name__ == "__main__":
    main()
