"""What a comparison may claim about its metrics, and which cases it may call changed.

A metric is worse or better when its whole interval is on one side of 0, and equivalent when it is
within the margin. The interval at 1 − alpha decides all of these at once, because at most one of
them can be wrong: J. J. Goeman, A. Solari and T. Stijnen (2010), Three-sided hypothesis testing,
Statistics in Medicine 29. Over several metrics, the level is that of S. Holm (1979), A simple
sequentially rejective multiple test procedure, in the form for related hypotheses of J. P. Shaffer
(1986), Modified sequentially rejective multiple test procedures, JASA 81.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from agentv_ci.analysis.statistics.effects import Effect
from agentv_ci.base.mappings import present

MetricVerdict = Literal["worse", "undecided", "not worse", "equivalent", "better"]
"""`not worse`: not worse by the margin or more; it may be better."""


NOTHING = -1.0
"""A p-value that nothing reaches."""


class Claim(Struct, frozen=True):
    """What a comparison says about a metric, with all of its metrics in mind."""

    effect: Effect
    verdict: MetricVerdict
    confidence: float
    """Of the interval, so that the whole comparison keeps its alpha; the interval and the verdict
    always agree.
    """
    low: float
    high: float
    """The interval on the scale of the analysis; `effect.natural` translates."""


def claims(effects: Sequence[Effect], alpha: float) -> tuple[Claim, ...]:
    """Return the verdict on each metric.

    With probability 1 − alpha or more, none of them is wrong.
    """
    level = alpha / max(1, len(effects))
    settled = [False] * len(effects)
    levels = [level] * len(effects)
    while not all(settled):
        level = alpha / settled.count(False)
        now = [*settled]
        for index, effect in enumerate(effects):
            if not settled[index]:
                levels[index] = level
                now[index] = _is_settled(effect, level)
        if now == settled:
            break
        settled = now
    return tuple(claim(effect, 1 - own) for effect, own in zip(effects, levels, strict=True))


def claims_of_known(effects: Sequence[Effect | None], alpha: float) -> list[Claim | None]:
    """Return the claims of effects, all at once; None where there is no effect."""
    known = iter(claims(list(present(effects)), alpha))
    return [next(known) if effect is not None else None for effect in effects]


def claim(effect: Effect, confidence: float) -> Claim:
    """Return what the interval of one metric says."""
    low, high = effect.interval(confidence)
    return Claim(
        effect=effect,
        verdict=verdict_of(effect, low, high),
        confidence=confidence,
        low=low,
        high=high,
    )


def verdict_of(effect: Effect, low: float, high: float) -> MetricVerdict:
    """Return what an interval on the scale of the analysis says about a metric."""
    worst, best = (low, high) if effect.metric.higher_is_better else (-high, -low)
    margin = effect.margin
    if margin is not None and -margin < worst and best < margin:
        return "equivalent"
    if best < 0:
        return "worse"
    if worst > 0:
        return "better"
    if margin is not None and worst > -margin:
        return "not worse"
    return "undecided"


def _is_settled(effect: Effect, level: float) -> bool:
    """Whether nothing is left to claim about a metric.

    Then the others need not share their level with it.
    """
    return effect.p_value <= level and (effect.p_equivalent is None or effect.p_equivalent <= level)


def discoveries(p_values: Sequence[float], rate: float) -> tuple[bool, ...]:
    """Return, for each hypothesis, whether it is rejected.

    On average at most the share `rate` of the rejected ones is true: Y. Benjamini and Y. Hochberg
    (1995), Controlling the false discovery rate, JRSS B 57. Cases are judged by trials of their
    own, so their p-values are independent given the arms, which the procedure needs.
    """
    largest = NOTHING
    for rank, p_value in enumerate(sorted(p_values), 1):
        if p_value <= rate * rank / len(p_values):
            largest = p_value
    return tuple(p_value <= largest for p_value in p_values)
