"""Part of a plan: some of its cases, with everything they need and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from agentv_ci.compile.digest import flat
from agentv_ci.compile.document import sealed
from agentv_ci.contracts.plan import (
    FilePart,
    Part,
    Plan,
    PlanCase,
    PlanCodeAggregator,
    PlanCodeEvaluator,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanRubricEvaluator,
)


def is_selected(case_id: str, eval_ids: Sequence[str]) -> bool:
    """Whether a case is meant: by its id itself, by a glob, or because none are given."""
    return not eval_ids or any(case_id == each or fnmatchcase(case_id, each) for each in eval_ids)


def narrowed(plan: Plan, keep: Callable[[PlanCase], bool]) -> Plan:
    """Return the plan of those cases alone: suites, targets and files that only others need are not in it."""
    cases = tuple(case for case in plan.cases if keep(case))
    if len(cases) == len(plan.cases):
        return plan
    suites = {case.suite for case in cases}
    targets = {key for case in cases for key in _targets(case)}
    files = {sha256 for case in cases for sha256 in _files(case)}
    return sealed(
        plan.model_copy(
            update={
                "suites": tuple(suite for suite in plan.suites if suite.path in suites),
                "targets": {key: target for key, target in plan.targets.items() if key in targets},
                "files": {sha256: text for sha256, text in plan.files.items() if sha256 in files},
                "cases": cases,
            }
        )
    )


def _targets(case: PlanCase) -> Iterator[str]:
    yield case.target
    if case.judge_target is not None:
        yield case.judge_target
    for evaluator in flat(case.evaluators):
        match evaluator:
            case PlanLlmJudgeEvaluator() | PlanRubricEvaluator():
                yield evaluator.target
            case PlanCompositeEvaluator(aggregator=PlanLlmJudgeAggregator() as aggregator):
                yield aggregator.target
            case _:
                pass


def _files(case: PlanCase) -> Iterator[str]:
    for message in (*case.input_messages, *case.expected_messages):
        yield from _of_parts(message.content)
    for evaluator in flat(case.evaluators):
        yield from _of_evaluator(evaluator)


def _of_evaluator(evaluator: PlanEvaluator) -> Iterator[str]:
    parts = (evaluator, evaluator.aggregator) if isinstance(evaluator, PlanCompositeEvaluator) else (evaluator,)
    for part in parts:
        match part:
            case PlanCodeEvaluator() | PlanCodeAggregator():
                yield from (file.sha256 for file in part.files)
            case PlanLlmJudgeEvaluator() | PlanLlmJudgeAggregator():
                yield from _of_parts([part.prompt])
            case _:
                pass


def _of_parts(parts: Sequence[Part | None]) -> Iterator[str]:
    yield from (part.sha256 for part in parts if isinstance(part, FilePart))
