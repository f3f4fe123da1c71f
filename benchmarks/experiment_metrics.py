"""Simulated experiments whose effects and verdicts come from `agentv_ci.analysis` itself, one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from agentv_ci.analysis.claims import claims
from agentv_ci.analysis.effects import Metric, Pair, effect

TRIALS = 5
MARGIN = 0.1
SCORE = Metric("score", margin=MARGIN)
PASS = Metric("pass")
COST = Metric("cost", scale="ratio", higher_is_better=False, margin=MARGIN)
MEAN_TIME = Metric("duration", scale="ratio", higher_is_better=False)
P95_TIME = Metric("p95 duration", scale="ratio", higher_is_better=False, quantile=0.95)


def wrong_comparisons(cases: int, runs: int, *, change: float, smallest: float | None) -> float:
    """Return how often a comparison of three metrics at 0.05 claims something wrong.

    With a change of 0, it is wrong that a metric is worse or better. With a change for the worse as large as the
    margin, it is wrong that score or cost are equivalent, not worse or better.
    """
    wrong = {"worse", "better"} if not change else {"equivalent", "not worse", "better"}
    chance = random.Random(f"{cases} {change} {smallest}")  # noqa: S311  # a lottery, and the same one every time
    metrics = (SCORE, PASS, COST) if not change else (SCORE, COST)
    found = 0
    for _ in range(runs):
        by_metric = _comparison(cases, change, chance)
        effects = [effect(each, by_metric[each.name], smallest=smallest) for each in metrics]
        found += any(each.verdict in wrong for each in claims([each for each in effects if each], 0.05))
    return found / runs


def _comparison(cases: int, change: float, chance: random.Random) -> dict[str, Sequence[Pair]]:
    found: dict[str, list[Pair]] = {"score": [], "pass": [], "cost": []}
    for case in range(cases):
        level, size = chance.uniform(0.2, 1), chance.gauss(0, 1)
        for trial in range(TRIALS):
            base, head = (_share(at, chance) for at in (level, level - change))
            costs = [math.exp(size + chance.gauss(0, 0.4)) for _ in range(2)]
            sides = {
                "score": (base, head),
                "pass": (float(base >= 0.8), float(head >= 0.8)),
                "cost": (costs[0], costs[1] * (1 + change)),
            }
            for name, (before, now) in sides.items():
                found[name].append(Pair(str(case), str(case), trial, before, now))
    return {**found}


def _share(level: float, chance: random.Random) -> float:
    return sum(chance.random() < level for _ in range(5)) / 5


def ratio_coverage(metric: Metric, cases: int, runs: int) -> float:
    """Return how often the 95% interval of a ratio of durations holds the truth, which is 1.

    Durations vary from case to case, from trial to trial, and by a factor of e² in one of 20 trials.
    """
    chance = random.Random(f"{metric.name} {cases}")  # noqa: S311  # a lottery, and the same one every time
    held = 0
    for run in range(runs):
        found = effect(metric, list(_durations(cases, chance)), seed=run)
        assert found is not None, "there are several cases"
        low, high = found.interval(0.95)
        held += low <= 0 <= high
    return held / runs


def _durations(cases: int, chance: random.Random) -> Iterator[Pair]:
    for case in range(cases):
        size, uneven = chance.gauss(0, 0.5), chance.gauss(0, 0.1)
        for trial in range(TRIALS):
            times = [math.exp(size + chance.gauss(0, 0.3) + 2 * (chance.random() < 0.05)) for _ in range(2)]
            yield Pair(str(case), str(case), trial, times[0], times[1] * math.exp(uneven))
