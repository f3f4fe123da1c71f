"""Eval files or a plan → parts for several machines, and how long each takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from agentv_ci.app.documents.compile import CompiledPlan
from agentv_ci.app.documents.previews import estimate_run
from agentv_ci.app.run.durations import durations_of
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.command_output import PlannedShard, PlannedShards
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.targets import cases_at_once, own_workers
from agentv_ci.execute.shard import efforts, parts_of


class Sharding(Struct, frozen=True):
    """How to split a plan."""

    most: int
    """Most parts."""
    target_minutes: float | None = None
    """Take the fewest parts that take at most this long each; None: `most`, or one per case."""
    balance: Path | None = None
    """Results with durations."""
    workers: int | None = None
    """Cases at once in each part; None: the targets' own."""


def plan_shards(compiled: CompiledPlan, overrides: Overrides, sharding: Sharding) -> PlannedShards:
    """Return the parts that `eval --shard` runs with the same options.

    Raises UsageError for unreadable results and for numbers that overflow.
    """
    plan = override(compiled.plan, overrides)
    durations_s = durations_of(sharding.balance) if sharding.balance is not None else {}
    seconds_of_cases = efforts(plan, durations_s)
    are_known = any(plan.key_of(case) in durations_s for case in heads_of(plan))
    if not are_known and (questions := sum(seconds_of_cases)):
        estimated = estimate_run(CompiledPlan(plan, compiled.origin), workers=sharding.workers)
        a_question_s = sum(target.seconds for target in estimated.targets) / questions
        seconds_of_cases = [effort * a_question_s for effort in seconds_of_cases]
    parts = _parts(plan, seconds_of_cases, sharding)
    shards: list[PlannedShard] = []
    for number, indexes in enumerate(parts, 1):
        cases = [plan.cases[index] for index in indexes]
        shard = PlannedShard(
            shard=f"{number}/{len(parts)}",
            cases=len(cases),
            trials=sum(case.trials for case in cases if case.skip is None),
            minutes=round(
                _time_of_part_s(plan, seconds_of_cases, indexes, sharding.workers) / 60, 1
            ),
        )
        shards.append(shard)
    return PlannedShards(
        shards=tuple(shards),
        minutes=max(shard.minutes for shard in shards),
        basis="durations" if are_known else "sizes",
    )


def _parts(plan: Plan, seconds: Sequence[float], sharding: Sharding) -> list[list[int]]:
    """Return the indexes of the cases of every part."""
    most = max(1, min(sharding.most, sum(case.skip is None for case in heads_of(plan))))
    if sharding.target_minutes is None:
        return parts_of(plan, seconds, most)

    def longest_s(parts: Iterable[Sequence[int]]) -> float:
        return max(_time_of_part_s(plan, seconds, part, sharding.workers) for part in parts)

    # No part can be shorter than its longest case.
    target_s = max(
        sharding.target_minutes * 60, longest_s([index] for index in range(len(seconds)))
    )
    fewest = math.ceil(longest_s([range(len(seconds))]) / target_s) if target_s else 1
    for total in range(max(1, min(fewest, most)), most):
        if longest_s(parts := parts_of(plan, seconds, total)) <= target_s:
            return parts
    return parts_of(plan, seconds, most)


def _time_of_part_s(
    plan: Plan, seconds: Sequence[float], indexes: Sequence[int], workers: int | None
) -> float:
    """Return the time of a part.

    It is the longest of three times: of all its cases at full width, of its busiest target, and of
    its longest trial.
    """
    by_target: Counter[str] = Counter()
    heads = heads_of(plan)
    longest = 0.0
    for index in indexes:
        case = heads[index]
        # A Counter adds floats, too; only its type says int.
        by_target[case.target] += seconds[index]  # type: ignore[assignment]
        longest = max(longest, seconds[index] / case.trials)
    width = cases_at_once(workers, [plan.targets[key] for key in by_target])
    longest = max(longest, sum(by_target.values()) / max(width, 1))
    for key, effort in by_target.items():
        longest = max(longest, effort / (workers or own_workers(plan.targets[key])))
    return longest
