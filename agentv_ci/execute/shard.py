"""Parts of a plan for several machines: disjoint, deterministic and about equally long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapreplace
from itertools import chain
from statistics import median

from msgspec import Struct

from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.packed_cases import heads_of, packed
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import (
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanPairwiseJudgeEvaluator,
    PlanRubricEvaluator,
    PlanScript,
    flat,
)
from agentv_ci.contracts.plan_parts import TextPart

CHARACTERS_A_QUESTION = 4_000
"""How much text takes as long as one more question."""
CHARACTERS_A_FILE = CHARACTERS_A_QUESTION // 4
JUDGEMENT, SCRIPT, CHECK = 1.0, 0.5, 0.01
"""How long evaluators take, as multiples of a question."""


class Shard(Struct, frozen=True):
    """A part of a plan."""

    index: int
    """From 1."""
    total: int


def part_of(plan: Plan, shard: Shard, durations_s: Mapping[CaseKey, float]) -> Plan:
    """Return the plan with the cases of one shard, in order.

    Its digest stays that of the whole plan.
    """
    places = parts_of(plan, efforts(plan, durations_s), shard.total)[shard.index - 1]
    return plan.model_copy(update={"cases": packed(plan.cases[place] for place in places)})


def parts_of(plan: Plan, efforts: Sequence[float], total: int) -> list[list[int]]:
    """Return the places of the cases of every shard, in order; the arms of a case stay together."""
    together: dict[CaseKey, list[int]] = {}
    for place, case in enumerate(heads_of(plan)):
        together.setdefault(
            (case.suite, case.id, "") if case.arm is not None else plan.key_of(case), []
        ).append(place)
    groups = [*together.values()]
    parts = split([sum(efforts[place] for place in group) for group in groups], total)
    return [sorted(chain.from_iterable(groups[number] for number in part)) for part in parts]


def split(efforts: Sequence[float], total: int) -> list[list[int]]:
    """Return the places of the cases of every shard, in order.

    The longest case goes first, to the shard with the least to do: Graham's rule (1969), at most a
    third longer than the best split.
    """
    # By load, then number of cases, then index: cases that take no time are spread too.
    loads = [(0.0, 0, index) for index in range(total)]
    shards: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(efforts)), key=lambda place: (-efforts[place], place)):
        load, cases, index = loads[0]
        heapreplace(loads, (load + efforts[place], cases + 1, index))
        shards[index].append(place)
    return list(map(sorted, shards))


def efforts(plan: Plan, durations_s: Mapping[CaseKey, float]) -> list[float]:
    """Return what each case takes with all its trials.

    The unit is seconds if the duration of one is known, else questions.

    `durations_s` has the seconds of a trial by case. Cases without a duration count as the median;
    without any durations the size of questions and the kinds of evaluators decide. A skipped case
    takes nothing.
    """
    known = [durations_s[key] for key in map(plan.key_of, heads_of(plan)) if key in durations_s]
    usual = median(known) if known else None

    def effort(case: PlanCase) -> float:
        if case.skip is not None:
            return 0.0
        return case.trials * (
            _size(case) if usual is None else durations_s.get(plan.key_of(case), usual)
        )

    return list(map(effort, plan.cases))


def _size(case: PlanCase) -> float:
    characters = 0
    for part in chain.from_iterable(message.content for message in case.input_messages):
        characters += len(part.text) if isinstance(part, TextPart) else CHARACTERS_A_FILE
    return 1.0 + characters / CHARACTERS_A_QUESTION + sum(map(_effort, flat(case.evaluators)))


def _effort(evaluator: PlanEvaluator) -> float:
    match evaluator:
        case PlanLlmJudgeEvaluator() | PlanRubricEvaluator() | PlanPairwiseJudgeEvaluator():
            return JUDGEMENT
        case PlanCompositeEvaluator(aggregator=aggregator):
            return {"llm_judge": JUDGEMENT, "code": SCRIPT}.get(aggregator.type, CHECK)
        case PlanScript():
            return SCRIPT
        case _:
            return CHECK
