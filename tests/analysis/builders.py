"""Pairs and effects of made-up experiments."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from agentv_ci.analysis.statistics.effects import Effect, Metric, Pair

SCORE = Metric("score", margin=0.1)
COST = Metric("cost", scale="ratio", higher_is_better=False, margin=0.1)


def pairs_of(changes: Sequence[Sequence[float]], clusters: Sequence[str] = ()) -> list[Pair]:
    """Return pairs whose trials change by this much, from the changes of each case."""
    return [
        Pair(clusters[case] if clusters else f"case {case}", f"case {case}", trial, 0.5, 0.5 + change)
        for case, trials in enumerate(changes)
        for trial, change in enumerate(trials)
    ]


def estimated(estimate: float, error: float, metric: Metric = SCORE, smallest: float | None = None) -> Effect:
    """Return an effect of many clusters."""
    return Effect(metric, estimate, error, 99, 100, 100, 500, "t", smallest)


VALUES = st.integers(1, 64).map(lambda value: value / 64)


@st.composite
def experiments(draw: st.DrawFn, least_cases: int = 2) -> list[Pair]:
    """Draw pairs of cases with different numbers of trials, in clusters of different sizes."""
    trials = draw(st.lists(st.integers(1, 4), min_size=least_cases, max_size=12))
    cluster_of = [case if case < least_cases else draw(st.integers(0, case)) for case in range(len(trials))]
    return [
        Pair(f"cluster {cluster_of[case]}", f"case {case}", trial, draw(VALUES), draw(VALUES))
        for case, number in enumerate(trials)
        for trial in range(number)
    ]
