"""Compute the verdict of a case from its trials, and whether it is settled that it passes or not.

The score is the mean of the graded trials, among which a crash has the score 0. A case passes when
enough of all its trials pass, and is an `error` when none has a verdict of its own. The score of
the trials that ran decides whether a case that does not pass is borderline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, assert_never

from agentv_ci.contracts.base import UNGRADED, Require, Verdict
from agentv_ci.contracts.results import BORDERLINE, PRECISION


class Scored(Protocol):
    """A trial that has a verdict and a score."""

    @property
    def verdict(self) -> Verdict:
        """Its verdict."""

    @property
    def score(self) -> float:
        """Its score."""

    @property
    def is_crash(self) -> bool:
        """Whether it has an error of the agent: it counts as failed, with score 0."""


class Result(NamedTuple):
    """The verdict and score of a trial."""

    verdict: Verdict
    score: float
    is_crash: bool = False


def is_graded(trial: Scored) -> bool:
    """Whether a trial counts: it has a verdict, or it crashed."""
    return trial.is_crash or trial.verdict not in UNGRADED


def verdict_of_trials(
    results: Sequence[Scored], planned: int, require: Require
) -> tuple[Verdict, float]:
    """Return the verdict and score of a case from the trials that ran, out of those planned."""
    if all(result.verdict in UNGRADED for result in results):
        if any(result.verdict == "skipped" for result in results):
            return "skipped", 0.0
        return "error", 0.0
    graded = list(filter(is_graded, results))
    score = round(math.fsum(result.score for result in graded) / len(graded), PRECISION)
    passed = sum(result.verdict == "pass" for result in graded)
    if passed >= enough(planned, require):
        return "pass", score
    if len(graded) == 1 and graded[0].verdict != "pass":
        # A required evaluator may have failed it, whatever the score.
        return graded[0].verdict, score
    if score >= BORDERLINE:
        return "borderline", score
    return "fail", score


def enough(planned: int, require: Require) -> int:
    """Return how many trials must pass."""
    match require:
        case "majority":
            return planned // 2 + 1
        case "all":
            return planned
        case "any":
            return 1
        case _:
            assert_never(require)


def is_settled(results: Sequence[Scored], planned: int, require: Require) -> bool:
    """Whether the remaining trials cannot change whether the case passes.

    Never before one is graded.
    """
    return needed(results, planned, require) == 0


def needed(results: Sequence[Scored], planned: int, require: Require) -> int:
    """Return the fewest further trials that can settle whether the case passes.

    0 when it is settled.

    That many can run concurrently without running one in vain.
    """
    left = planned - len(results)
    to_pass = enough(planned, require) - sum(result.verdict == "pass" for result in results)
    to_miss = left - to_pass + 1
    if not any(map(is_graded, results)):
        # Without a grade, the case would be an error and not one that does not pass.
        to_miss = max(to_miss, 1)
    return max(0, min(left, to_pass, to_miss))
