"""When an experiment may stop before all of its trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import filterfalse
from statistics import NormalDist
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.statistics.claims import Claim, claim

Stop = Literal["decided", "futile"]
HOPELESS = 0.05
"""A chance of a decision that is not worth the trials that are left."""


class Planned(Struct, frozen=True):
    """What there is to compare when all trials have run."""

    pairs: int
    clusters: int


def stop(primary: Sequence[Claim], planned: Planned) -> Stop | None:
    """Return why an experiment may stop after a look; None: it goes on.

    `primary`: the claims about the metrics that decide, from effects that hold at all looks;
    without any, it goes on.
    """
    if not primary:
        return None
    undecided = list(filterfalse(is_decided, primary))
    if not undecided:
        return "decided"
    chances = [chance_of_decision(claimed, planned) for claimed in undecided]
    return "futile" if max(chances) < HOPELESS else None


def is_decided(of: Claim) -> bool:
    """Whether more trials would not change what a metric is asked for."""
    if of.verdict == "not worse":
        return of.effect.metric.non_inferiority
    return of.verdict != "undecided"


def chance_of_decision(of: Claim, planned: Planned) -> float:
    """Return the chance that all planned trials decide a metric, given what is known now.

    The predictive power of D. J. Spiegelhalter, L. S. Freedman and P. R. Blackburn (1986),
    Monitoring clinical trials: conditional or predictive power?, Controlled Clinical Trials 7. It
    is optimistic: it takes the error to shrink with the root of the number of pairs, as if trials
    of one case were independent. What pairs that are not seen add to it shrinks faster, and with
    few pairs it is most of it.
    """
    now = of.effect
    if planned.pairs <= now.pairs:
        return 0.0
    # With few clusters, no interval has bounds: those that are still to come count, too.
    clusters = max(now.clusters, planned.clusters)
    at_end = replace(
        now, clusters=clusters, degrees=now.degrees * (clusters - 1) / (now.clusters - 1)
    )
    seen = max(now.error**2 - now.unseen, 0.0)
    error = math.sqrt((seen + now.unseen * now.clusters / clusters) * now.pairs / planned.pairs)
    spread = math.sqrt(now.error**2 - error**2)
    decided = 0
    for step in range(STEPS):
        deviations = NormalDist().inv_cdf((step + 0.5) / STEPS)
        end = replace(at_end, estimate=now.estimate + spread * deviations, error=error)
        decided += is_decided(claim(end, of.confidence))
    return decided / STEPS


STEPS = 200
"""How finely the possible ends are looked at."""
