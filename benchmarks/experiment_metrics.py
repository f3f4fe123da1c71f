"""Simulated experiments whose effects and verdicts come from `agentv_ci.analysis` itself, one by one.

`experiments.py` prints these tables after its own.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from agentv_ci.analysis.experiment.stopping import Planned, stop
from agentv_ci.analysis.statistics.claims import claims
from agentv_ci.analysis.statistics.effects import Metric, Pair, effect

ALPHA, SLACK = 0.05, 0.005
TRIALS = 5
CASES, ROUNDS, LEVEL = 50, 20, 0.8
"""Of experiments that are followed to their end."""
UNEVEN = {
    "20 clusters of 1 to 5 cases": [1, 2, 3, 4, 5] * 4,
    "8 clusters of 1 to 13 cases": [1, 1, 2, 2, 3, 5, 8, 13],
    "20 clusters of 1 case, 2 of 10": [1] * 20 + [10] * 2,
}
MARGIN = 0.1
SCORE = Metric("score", margin=MARGIN)
PASS = Metric("pass")
COST = Metric("cost", scale="ratio", higher_is_better=False, margin=MARGIN)
MEAN_TIME = Metric("duration", scale="ratio", higher_is_better=False)
P95_TIME = Metric("p95 duration", scale="ratio", higher_is_better=False, quantile=0.95)


def check(runs: int) -> bool:
    """Print how often comparisons are wrong, and how experiments end.

    Return whether the bars are met.
    """
    are_met = [_comparisons(runs), _ratios(runs)]
    _uneven(runs)
    _endings(runs // 4)
    return all(are_met)


def _comparisons(runs: int) -> bool:
    print(f"\nWrong comparisons of several metrics, {runs:,} each.\n")
    print(
        "| cases | equal arms | equal arms, looks | worse by the margin | worse by the margin, looks |"
    )
    print("|--:|--:|--:|--:|--:|")
    highest = 0.0
    for cases in (20, 50, 100):
        wrong = [
            wrong_comparisons(cases, runs, change=change, smallest=smallest)
            for change, smallest in product((0.0, MARGIN), (None, 0.1))
        ]
        highest = max(highest, *wrong)
        print(f"| {cases} |" + "".join(f" {each:.1%} |" for each in wrong), flush=True)
    return highest <= ALPHA


def _ratios(runs: int) -> bool:
    print(
        "\nCoverage of 95% intervals of ratios of durations.\n\n| cases | mean | p95 |\n|--:|--:|--:|"
    )
    lowest = 1.0
    for cases in (10, 20, 50, 100):
        covered = [
            ratio_coverage(metric, cases, count)
            for metric, count in ((MEAN_TIME, runs), (P95_TIME, runs // 2))
        ]
        lowest = min(lowest, *covered)
        print(f"| {cases} | {covered[0]:.1%} | {covered[1]:.1%} |", flush=True)
    return lowest >= 1 - ALPHA - SLACK


def _uneven(runs: int) -> None:
    print("\nFalse alarms of the fixed size with clusters whose cases all change alike.\n")
    print("| clusters | false alarms |\n|---|--:|")
    for name, sizes in UNEVEN.items():
        chance = random.Random(name)  # noqa: S311  # a lottery, and the same one every time
        found = [effect(SCORE, _clusters(sizes, chance)) for _ in range(runs)]
        alarms = sum(each is not None and each.p_value <= ALPHA for each in found) / runs
        print(f"| {name} | {alarms:.1%} |", flush=True)


def _clusters(sizes: Sequence[int], chance: random.Random) -> Iterator[Pair]:
    for cluster, size in enumerate(sizes):
        change = chance.gauss(0, 0.1)
        for case in range(size):
            for trial in range(TRIALS):
                base = chance.gauss(0.5, 0.02)
                yield Pair(
                    str(cluster),
                    f"{cluster} {case}",
                    trial,
                    base,
                    base + change + chance.gauss(0, 0.02),
                )


def _endings(runs: int) -> None:
    print(
        f"\n{CASES} cases, at most {ROUNDS} trials of each, a look after each round; {runs:,} experiments each.\n"
    )
    print("| mean change | margin | ends | trials used |\n|--:|--:|---|--:|")
    for metric, change in product((Metric("score"), SCORE), (0.0, -0.03, -0.1, 0.1)):
        found = endings(metric, CASES, ROUNDS, change, runs)
        ends = ", ".join(f"{verdict} {share:.1%}" for verdict, share in found.verdicts.items())
        print(f"| {change:+g} | {metric.margin or '–'} | {ends} | {found.trials:.0%} |", flush=True)


def wrong_comparisons(cases: int, runs: int, *, change: float, smallest: float | None) -> float:
    """Return how often a comparison of three metrics at 0.05 claims something wrong.

    With a change of 0, it is wrong that a metric is worse or better. With a change for the worse as
    large as the margin, it is wrong that score or cost are equivalent, not worse or better.
    """
    wrong = {"worse", "better"} if not change else {"equivalent", "not worse", "better"}
    chance = random.Random(f"{cases} {change} {smallest}")  # noqa: S311  # a lottery, and the same one every time
    metrics = (SCORE, PASS, COST) if not change else (SCORE, COST)
    found = 0
    for _ in range(runs):
        by_metric = _comparison(cases, change, chance)
        effects = [effect(each, by_metric[each.name], smallest=smallest) for each in metrics]
        found += any(
            each.verdict in wrong for each in claims([each for each in effects if each], 0.05)
        )
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

    Durations vary from case to case, from trial to trial, and by a factor of e² in one of 20
    trials.
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
            times = [
                math.exp(size + chance.gauss(0, 0.3) + 2 * (chance.random() < 0.05))
                for _ in range(2)
            ]
            yield Pair(str(case), str(case), trial, times[0], times[1] * math.exp(uneven))


@dataclass(frozen=True, slots=True)
class Ending:
    """How experiments of one kind ended."""

    verdicts: Mapping[str, float]
    """The share of each verdict; `futile` where none was to be expected any more."""
    trials: float
    """The share of the planned trials that ran."""


def endings(metric: Metric, cases: int, rounds: int, change: float, runs: int) -> Ending:
    """Return how experiments end that look after each round, by effects, claims and `stop` of the product.

    Half of the cases change by twice the mean change.
    """
    chance = random.Random(f"{metric} {change}")  # noqa: S311  # a lottery, and the same one every time
    ends = [_ending(metric, cases, rounds, change, chance) for _ in range(runs)]
    verdicts = Counter(verdict for verdict, _ in ends)
    ran = sum(trials for _, trials in ends) / runs / rounds
    return Ending({verdict: count / runs for verdict, count in verdicts.most_common()}, ran)


def _ending(
    metric: Metric, cases: int, rounds: int, change: float, chance: random.Random
) -> tuple[str, int]:
    pairs: list[Pair] = []
    for trial in range(1, rounds + 1):
        for case in range(cases):
            levels = LEVEL, LEVEL + 2 * change * (case % 2)
            pairs.append(
                Pair(
                    str(case),
                    str(case),
                    trial,
                    *(float(chance.random() < level) for level in levels),
                )
            )
        found = effect(metric, pairs, smallest=0.1)
        assert found is not None, "there are several cases"
        claim = claims([found], 0.05)[0]
        why = stop([claim], Planned(pairs=cases * rounds, clusters=cases))
        if why is not None or trial == rounds:
            return claim.verdict if why != "futile" or trial == rounds else "futile", trial
    raise AssertionError("there is a last round")
