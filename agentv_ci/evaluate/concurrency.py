"""Evaluators side by side, where that saves time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agentv_ci.contracts.plan import PlanEvaluator
from agentv_ci.evaluate.scoring import Assessment

WAITING = frozenset({"code", "composite", "llm_judge", "regex", "rubric", "schema"})
"""Kinds that may wait for somebody else: a judge, a process, a thread."""


async def side_by_side(
    evaluators: Sequence[PlanEvaluator], score: Callable[[PlanEvaluator], Awaitable[Assessment]]
) -> list[Assessment]:
    """Return the assessment of each evaluator, in their order.

    Those that cannot wait have no task of their own: each would hand the turn to all other cases of the run first.
    """
    if sum(each.type in WAITING for each in evaluators) > 1:
        return list(await asyncio.gather(*map(score, evaluators)))
    return [await score(each) for each in evaluators]
