"""The arithmetic of the benchmark of experiments is that of the product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from experiment_draws import (
    Cell,
    Draws,
    Look,
    Scores,
    draw,
    excludes,
    excludes_at_all_looks,
    looks,
    looks_by_case,
    tail_of,
)

from agentv_ci.analysis.statistics.effects import Metric, Pair, effect

METRIC = Metric("score")
SMALLEST = 0.1
COUNT = 5
CELLS = [
    Cell(12, 3, correlation=0.5),
    Cell(12, 3, "graded", level=0.5, drifts=True),
    Cell(7, 4, level=0.9, correlation=0.8, change="evens out"),
    Cell(20, 2, "graded", correlation=0.2, change="drop"),
    Cell(40, 3, level=0.5, change="drop", drifts=True),
    Cell(20, 3, level=0.5, change="skewed"),
]


def same(at: Look, draws: Draws, experiment: int, seen: Sequence[tuple[int, int]]) -> None:
    pairs = [
        Pair(str(case), str(case), trial, 0.0, float(draws.changes[experiment, case, trial])) for case, trial in seen
    ]
    for smallest in (None, SMALLEST):
        found = effect(METRIC, pairs, smallest=smallest)
        assert found is not None
        assert found.pairs == at.pairs
        assert found.degrees == pytest.approx(at.degrees)
        assert found.estimate == pytest.approx(at.estimate[experiment], abs=1e-12)
        assert found.error == pytest.approx(at.error[experiment], rel=1e-9)
        for change in (0.0, -0.1):
            tail = tail_of(at, change)
            flags = excludes(tail, at, 0.05) if smallest is None else excludes_at_all_looks(tail, at, 0.05, smallest)
            assert flags[experiment] == (found.p_against(change) <= 0.05)


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_looks_at_rounds_are_those_of_the_product(cell: Cell) -> None:
    draws, every = draw(cell, COUNT, np.random.default_rng(5)), max(2, cell.cases // 3)
    in_order = [(case, trial) for trial in range(cell.trials) for case in range(cell.cases)]
    pairs = 0
    for at in looks(draws, every):
        for experiment in range(COUNT):
            same(at, draws, experiment, in_order[: at.pairs])
        pairs = at.pairs
    assert pairs == cell.cases * cell.trials


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_looks_at_whole_cases_are_those_of_the_product(cell: Cell) -> None:
    draws = draw(cell, COUNT, np.random.default_rng(6))
    for at in looks_by_case(draws, 3):
        for experiment in range(COUNT):
            cases = np.argsort(draws.order[experiment])[: at.pairs // cell.trials].tolist()
            same(at, draws, experiment, [(case, trial) for case in cases for trial in range(cell.trials)])


def test_draws_have_the_correlation_and_the_change_of_their_cell() -> None:
    cell, chance = Cell(200, 10, level=0.7, correlation=0.4), np.random.default_rng(7)
    changes = draw(replace(cell, change="evens out"), 50, chance).changes
    within = changes.var(axis=2, ddof=1).mean()
    between = changes.mean(axis=2).var(axis=1, ddof=1).mean() - within / 10
    assert between / (between + within) == pytest.approx(0.4, abs=0.03)
    for dropped in (draw(replace(cell, change="drop", scores=each), 50, chance) for each in get_args(Scores)):
        assert dropped.changes.mean() == pytest.approx(-0.1, abs=0.01)
        assert dropped.changes[:, ::2].mean() == pytest.approx(-0.2, abs=0.01)
        assert dropped.effects == pytest.approx(np.full((50, 10), -0.1))
