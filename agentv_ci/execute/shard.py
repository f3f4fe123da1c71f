"""Parts of a plan for several machines: disjoint, deterministic and about equally long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapreplace
from statistics import median

from agentv_ci.contracts.case_key import CaseKey
from agentv_ci.contracts.plan import (
    Plan,
    PlanCase,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanRubricEvaluator,
    PlanScript,
    TextPart,
    flat,
)

CHARACTERS_A_QUESTION = 4_000
"""How much text takes as long as one more question."""
JUDGEMENT, SCRIPT, CHECK = 1.0, 0.5, 0.01
"""How long evaluators take, as multiples of a question."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a plan."""

    index: int
    """From 1."""
    total: int


def part_of(plan: Plan, shard: Shard, durations_s: Mapping[CaseKey, float]) -> Plan:
    """Return the plan with the cases of one shard, in order; its digest stays that of the whole plan.

    The longest case goes first, to the shard with the least to do: Graham's rule (1969), at most a third longer than
    the best split. `durations_s` has seconds by case; cases without a duration count as the median, and
    without any durations the size of questions and the kinds of evaluators decide.
    """
    weights = _weights(plan, durations_s)
    # By load, then number of cases, then index: cases that take no time are spread too.
    loads = [(0.0, 0, index) for index in range(1, shard.total + 1)]
    chosen: list[int] = []
    for place in sorted(range(len(weights)), key=lambda place: (-weights[place], place)):
        load, cases, index = loads[0]
        heapreplace(loads, (load + weights[place], cases + 1, index))
        if index == shard.index:
            chosen.append(place)
    return plan.model_copy(update={"cases": tuple(plan.cases[place] for place in sorted(chosen))})


def _weights(plan: Plan, durations_s: Mapping[CaseKey, float]) -> list[float]:
    known = [durations_s[key] for key in map(plan.key_of, plan.cases) if key in durations_s]
    if not known:
        return [case.trials * _size(case) for case in plan.cases]
    usual = median(known)
    return [case.trials * durations_s.get(plan.key_of(case), usual) for case in plan.cases]


def _size(case: PlanCase) -> float:
    parts = [part for message in case.input_messages for part in message.content]
    characters = sum(len(part.text) for part in parts if isinstance(part, TextPart))
    characters += CHARACTERS_A_QUESTION // 4 * sum(not isinstance(part, TextPart) for part in parts)
    return 1.0 + characters / CHARACTERS_A_QUESTION + sum(map(_effort, flat(case.evaluators)))


def _effort(evaluator: PlanEvaluator) -> float:
    match evaluator:
        case PlanLlmJudgeEvaluator() | PlanRubricEvaluator():
            return JUDGEMENT
        case PlanCompositeEvaluator(aggregator=aggregator):
            return {"llm_judge": JUDGEMENT, "code": SCRIPT}.get(aggregator.type, CHECK)
        case PlanScript():
            return SCRIPT
        case _:
            return CHECK
