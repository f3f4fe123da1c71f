"""When an experiment may stop before all of its trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

from msgspec.structs import replace

from agentv_ci.analysis.claims import Claim, claim

Stop = Literal["decided", "futile"]
HOPELESS = 0.05
"""A chance of a decision that is not worth the trials that are left."""


def stop(primary: Sequence[Claim], planned_pairs: int) -> Stop | None:
    """Return why an experiment may stop after a look; None: it goes on.

    `primary`: the claims about the metrics that decide, from effects that hold at all looks. `planned_pairs`: how many
    pairs there are when all trials have run.
    """
    if all(is_decided(each) for each in primary):
        return "decided"
    chances = [chance_of_decision(each, planned_pairs) for each in primary if not is_decided(each)]
    return "futile" if max(chances) < HOPELESS else None


def is_decided(of: Claim) -> bool:
    """Whether more trials would not change what a metric is asked for."""
    if of.verdict == "not worse":
        return of.effect.metric.non_inferiority
    return of.verdict != "undecided"


def chance_of_decision(of: Claim, planned_pairs: int) -> float:
    """Return the chance that all planned trials decide a metric, given what is known now.

    The predictive power of D. J. Spiegelhalter, L. S. Freedman and P. R. Blackburn (1986), Monitoring clinical trials:
    conditional or predictive power?, Controlled Clinical Trials 7. It is optimistic: it takes the error to shrink with
    the root of the number of pairs, as if trials of one case were independent.
    """
    now = of.effect
    if planned_pairs <= now.pairs:
        return 0.0
    error = now.error * math.sqrt(now.pairs / planned_pairs)
    spread = math.sqrt(now.error**2 - error**2)
    steps = [NormalDist().inv_cdf((step + 0.5) / STEPS) for step in range(STEPS)]
    ends = [replace(now, estimate=now.estimate + spread * step, error=error) for step in steps]
    return sum(is_decided(claim(end, of.confidence)) for end in ends) / STEPS


STEPS = 200
"""How finely the possible ends are looked at."""
