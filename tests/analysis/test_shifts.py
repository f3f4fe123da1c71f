"""Changes of level, and how often chance looks like one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.analysis.health.shifts import LEAST, Observation, Shift, latest_shift, number_of_tests


def series(*levels: tuple[int, float]) -> list[Observation]:
    return [("", value) for number, value in levels for _ in range(number)]


def found(values: Sequence[Observation], alarms: float = 0.01) -> Shift | None:
    return latest_shift(values, alarms / max(1, number_of_tests(len(values))))


@pytest.mark.parametrize(
    ("values", "shift"),
    [
        (series((20, 1.0), (10, 0.0)), Shift(20, 1.0, 0.0)),
        (series((20, 0.0), (10, 1.0)), Shift(20, 0.0, 1.0)),
        (series((20, 0.9), (20, 0.5), (20, 0.8)), Shift(40, 0.5, 0.8)),
        (series((40, 0.7)), None),
        (series((20, 1.0), (LEAST - 1, 0.0)), None),
        (series((3, 1.0)), None),
        ([], None),
    ],
    ids=["down", "up", "the last of two", "steady", "too soon", "short", "empty"],
)
def test_shift_is_found_where_it_is(values: list[Observation], shift: Shift | None) -> None:
    got = found(values)
    assert (got is None) == (shift is None)
    if got is not None and shift is not None:
        assert got.start == shift.start
        assert [got.before, got.after] == pytest.approx([shift.before, shift.after])


def test_strata_that_come_and_go_are_no_shift() -> None:
    rng = random.Random(1)
    # The answer that scores less is more frequent later on.
    values = [("good" if rng.random() < (0.8 if night < 40 else 0.2) else "poor", 0.0) for night in range(80)]
    values = [(answer, 0.9 if answer == "good" else 0.4) for answer, _ in values]
    assert found(values) is None
    assert found([("", value) for _, value in values]) is not None


def test_shift_within_strata_is_found() -> None:
    levels = {"a": 0.9, "b": 0.5}
    values = [(name, level - (0.2 if night >= 30 else 0)) for night in range(50) for name, level in levels.items()]
    got = found(values)
    assert got is not None
    assert got.start == 60
    assert got.before - got.after == pytest.approx(0.2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["rare", "fair", "scores", "heavy"])
def test_false_alarms_are_as_rare_as_stated(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    draws = {
        "rare": lambda: float(rng.random() < 0.97),
        "fair": lambda: float(rng.random() < 0.5),
        "scores": lambda: rng.gauss(0.8, 0.1),
        "heavy": lambda: rng.paretovariate(0.7),
    }
    accepted, tried = 0.2, 60
    alarms = sum(found([("", draws[kind]()) for _ in range(40)], accepted) is not None for _ in range(tried))
    # The bound of each test is multiplied by the number of tests, which are far from independent.
    assert alarms <= accepted * tried


def exact(values: list[float], late: int) -> float:
    """Return the probability that a sample is as far from the mean as the last values, in their direction."""
    total = sum(values[-late:])
    mean = math.fsum(values) / len(values)
    up = total / late >= mean
    sums = [sum(each) for each in combinations(values, late)]
    return sum(each >= total - 1e-9 if up else each <= total + 1e-9 for each in sums) / len(sums)


@given(st.lists(st.integers(0, 4), min_size=11, max_size=13), st.sampled_from([0.3, 0.1, 0.03, 0.01, 0.003]))
def test_bound_is_never_below_the_probability(values: list[int], level: float) -> None:
    observed = [("", float(value)) for value in values]
    got = latest_shift(observed, level)
    if got is not None:
        parts = [float(value) for value in values]
        assert min(exact(parts[:end], end - got.start) for end in range(got.start + LEAST, len(parts) + 1)) <= level
