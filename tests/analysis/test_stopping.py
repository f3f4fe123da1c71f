"""When an experiment stops, and the chance that it still decides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agentv_ci.analysis.experiment.stopping import Planned, Stop, chance_of_decision, is_decided, stop
from agentv_ci.analysis.statistics.claims import Claim, claim
from agentv_ci.analysis.statistics.effects import Effect, Metric
from tests.analysis.builders import SCORE, estimated

PLAN = Planned(pairs=1000, clusters=100)
"""Twice the pairs of an estimate."""
PLAIN = Metric("score")
NOT_WORSE = Metric("score", margin=0.1, non_inferiority=True)


def claimed(estimate: float, error: float, metric: Metric = SCORE) -> Claim:
    return claim(estimated(estimate, error, metric, 0.1), 0.95)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ([claimed(-0.2, 0.04)], "decided"),
        ([claimed(0.2, 0.04)], "decided"),
        ([claimed(0.0, 0.02)], "decided"),
        ([claimed(-0.2, 0.04), claimed(0.2, 0.04)], "decided"),
        ([claimed(-0.1, 0.04)], None),
        ([claimed(-0.2, 0.04), claimed(-0.1, 0.04)], None),
        ([claimed(0.0, 0.04, PLAIN)], "futile"),
        ([claimed(-0.2, 0.04), claimed(0.0, 0.04, PLAIN)], "futile"),
        ([claimed(-0.1, 0.04), claimed(0.0, 0.04, PLAIN)], None),
        ([claimed(0.09, 0.04)], None),
        ([claimed(0.09, 0.04, NOT_WORSE)], "decided"),
        ([claimed(-0.2, 0.04, NOT_WORSE)], "decided"),
        ([], None),
    ],
)
def test_an_experiment_stops(claims: list[Claim], why: Stop | None) -> None:
    assert stop(claims, PLAN) == why


@pytest.mark.parametrize(("estimate", "metric"), [(-0.1, PLAIN), (0.05, SCORE), (0.05, NOT_WORSE), (0.0, PLAIN)])
def test_chance_of_a_decision_is_that_of_the_predicted_estimates(estimate: float, metric: Metric) -> None:
    error = 0.04
    chance = np.random.default_rng(1)
    # What the other half of the trials shows is as uncertain as the half so far, twice.
    others = chance.normal(estimate, error, 4000) + chance.normal(0, error, 4000)
    ends = (estimate + others) / 2
    decided = [is_decided(claimed(end, error / math.sqrt(2), metric)) for end in ends.tolist()]
    found = chance_of_decision(claimed(estimate, error, metric), PLAN)
    assert found == pytest.approx(np.mean(decided), abs=0.03)


def test_nothing_is_left_to_decide_after_all_trials() -> None:
    assert chance_of_decision(claimed(-0.1, 0.04), Planned(pairs=500, clusters=100)) == 0
    assert chance_of_decision(claimed(-0.1, 0.04), Planned(pairs=499, clusters=100)) == 0


def test_few_clusters_are_not_hopeless_when_more_are_planned() -> None:
    few = claim(Effect(PLAIN, -0.2, 0.1, 4, 5, 5, 5, "t", 0.1), 0.95)
    many = claim(Effect(PLAIN, -0.2, 0.1, 40, 50, 50, 5, "t", 0.1), 0.95)
    at_end = Planned(pairs=50, clusters=50)
    assert chance_of_decision(few, at_end) == chance_of_decision(many, at_end) > 0.5
    assert chance_of_decision(few, Planned(pairs=50, clusters=5)) == 0
