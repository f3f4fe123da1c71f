"""Compute the verdict of a case from its trials, and whether it is settled.

The score is the mean of the graded trials. A case passes when enough of all its trials pass, and is an `error` when
none was graded. The score decides whether a case that does not pass is borderline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, assert_never

from agentv_ci.contracts.base import UNGRADED, Require, Verdict
from agentv_ci.contracts.results import BORDERLINE, PRECISION


class Result(NamedTuple):
    """The verdict and score of a trial."""

    verdict: Verdict
    score: float


def verdict_of_trials(results: Sequence[Result], planned: int, require: Require) -> tuple[Verdict, float]:
    """Return the verdict and score of a case from the trials that ran, out of those planned."""
    graded = [each for each in results if each.verdict not in UNGRADED]
    if not graded:
        return "skipped" if any(each.verdict == "skipped" for each in results) else "error", 0.0
    score = round(math.fsum(each.score for each in graded) / len(graded), PRECISION)
    passed = sum(each.verdict == "pass" for each in graded)
    if passed >= enough(planned, require):
        return "pass", score
    if len(graded) == 1 and graded[0].verdict != "pass":
        # A required evaluator may have failed it, whatever the score.
        return graded[0].verdict, score
    return "borderline" if score >= BORDERLINE else "fail", score


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


def is_settled(results: Sequence[Result], planned: int, require: Require) -> bool:
    """Whether the remaining trials cannot change the verdict."""
    return _is_settled(tuple(results), planned, require)


@lru_cache(maxsize=4096)
def _is_settled(results: tuple[Result, ...], planned: int, require: Require) -> bool:
    left = planned - len(results)
    graded = [each for each in results if each.verdict not in UNGRADED]
    passed = sum(each.verdict == "pass" for each in graded)
    if left <= 0 or passed >= enough(planned, require):
        return True
    if not graded or passed + left >= enough(planned, require):
        return False
    # It does not pass; the remaining trials may still change fail to borderline, or the reverse.
    total = math.fsum(each.score for each in graded)
    lowest, highest = (round((total + more) / (len(graded) + left), PRECISION) for more in (0, left))
    verdict, _ = verdict_of_trials(results, planned, require)
    return lowest >= BORDERLINE if verdict == "borderline" else highest < BORDERLINE


def needed(results: Sequence[Result], planned: int, require: Require) -> int:
    """Return the fewest further trials that can settle the verdict; 0 when it is settled.

    That many can run concurrently without running one in vain.
    """
    return _needed(tuple(results), planned, require)


@lru_cache(maxsize=4096)
def _needed(results: tuple[Result, ...], planned: int, require: Require) -> int:
    if _is_settled(results, planned, require):
        return 0
    left = planned - len(results)
    quickest = (Result("pass", 1.0), Result("fail", 0.0), Result("borderline", 1.0))
    return next(
        number
        for number in range(1, left + 1)
        if any(_is_settled((*results, *(each,) * number), planned, require) for each in quickest)
    )
