"""The family of evaluators: each scores an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import assert_never

from msgspec.structs import replace

from agentv_ci.base.installed_plugins import UnusablePlugin, find_plugin, refused_settings
from agentv_ci.contracts.answer_evaluators import (
    PACKAGE_HINT,
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    ContainsEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    FieldAccuracyEvaluator,
    IsJsonEvaluator,
    RegexEvaluator,
    SimilarityEvaluator,
    StartsWithEvaluator,
)
from agentv_ci.contracts.evaluators import PluginEvaluator
from agentv_ci.contracts.exchange import Grade, Score, about_case
from agentv_ci.contracts.outcome_evaluators import FileEvaluator, StateEvaluator
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import (
    PlanCodeEvaluator,
    PlanCommandEvaluator,
    PlanCompositeEvaluator,
    PlanDiffEvaluator,
    PlanEvaluator,
    PlanJunitEvaluator,
    PlanLlmJudgeEvaluator,
    PlanPairwiseJudgeEvaluator,
    PlanRubricEvaluator,
    PlanSchemaEvaluator,
    flat,
)
from agentv_ci.contracts.trace_evaluators import (
    CostEvaluator,
    LatencyEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.errors import UsageError
from agentv_ci.evaluate.evaluators import (
    code,
    composite,
    limits,
    llm_judge,
    pairwise_judge,
    similarity,
    structured,
    text,
    tool_trajectory,
)
from agentv_ci.evaluate.expected import compares_answer, masked_expectation, masked_miss
from agentv_ci.evaluate.scoring import Assessment, assessment_of, combine
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

Scorer = Callable[[Submission, EvaluatorServices], Awaitable[Score]]
"""Returns the score of an answer; when it cannot score, a Score with an error."""


def scorer_of(evaluator: PlanEvaluator) -> Scorer:  # noqa: C901, PLR0912  # a branch a kind
    """Return the scorer of an evaluator; what few plans need is imported for them."""
    match evaluator:
        case PlanCodeEvaluator():
            return partial(code.code, evaluator)
        case PlanLlmJudgeEvaluator():
            return partial(llm_judge.llm_judge, evaluator)
        case PlanRubricEvaluator():
            return partial(llm_judge.rubric, evaluator)
        case PlanPairwiseJudgeEvaluator():
            return partial(pairwise_judge.pairwise_judge, evaluator)
        case PlanCompositeEvaluator():
            return partial(composite.composite, evaluator, assess=assess)
        case PlanSchemaEvaluator():
            from agentv_ci.evaluate.evaluators.schema import schema

            return partial(schema, evaluator)
        case ToolTrajectoryEvaluator():
            return partial(tool_trajectory.tool_trajectory, evaluator)
        case ContainsEvaluator():
            return partial(text.contains, evaluator)
        case ContainsAnyEvaluator():
            return partial(text.contains_any, evaluator)
        case ContainsAllEvaluator():
            return partial(text.contains_all, evaluator)
        case EqualsEvaluator():
            return partial(text.equals, evaluator)
        case RegexEvaluator():
            return partial(text.regex, evaluator)
        case StartsWithEvaluator():
            return partial(text.starts_with, evaluator)
        case EndsWithEvaluator():
            return partial(text.ends_with, evaluator)
        case IsJsonEvaluator():
            return partial(structured.is_json, evaluator)
        case FieldAccuracyEvaluator():
            return partial(structured.field_accuracy, evaluator)
        case SimilarityEvaluator():
            return partial(similarity.similarity, evaluator)
        case LatencyEvaluator():
            return partial(limits.latency, evaluator)
        case CostEvaluator():
            return partial(limits.cost, evaluator)
        case TokenUsageEvaluator():
            return partial(limits.token_usage, evaluator)
        case ToolCallsEvaluator():
            return partial(limits.tool_calls, evaluator)
        case FileEvaluator():
            from agentv_ci.evaluate.evaluators import file

            return partial(file.file, evaluator)
        case PlanDiffEvaluator():
            from agentv_ci.evaluate.evaluators import diff

            return partial(diff.diff, evaluator)
        case PlanCommandEvaluator() | PlanJunitEvaluator():
            return _scorer_of_command(evaluator)
        case StateEvaluator():
            from agentv_ci.evaluate.evaluators import state

            return partial(state.state, evaluator)
        case PluginEvaluator():
            from agentv_ci.evaluate.evaluators import plugin

            return partial(plugin.plugin, evaluator)
        case _:
            assert_never(evaluator)


def _scorer_of_command(evaluator: PlanCommandEvaluator | PlanJunitEvaluator) -> Scorer:
    from agentv_ci.evaluate.evaluators import command

    if isinstance(evaluator, PlanJunitEvaluator):
        return partial(command.junit, evaluator)
    return partial(command.command, evaluator)


async def evaluate(submission: Submission, services: EvaluatorServices) -> Grade:
    """Score an answer with all evaluators of its case, concurrently.

    Does not raise when an evaluator fails: its error is part of the grade, and the others keep
    their scores.
    """
    assessments = await assess(submission.case.evaluators, submission, services)
    return services.with_judges(combine(assessments, submission.case.threshold))


async def assess(
    evaluators: Sequence[PlanEvaluator], submission: Submission, services: EvaluatorServices
) -> list[Assessment]:
    """Return the assessment of each evaluator, in their order.

    Evaluators that do not wait share one task: a task of its own would first yield to all other
    cases of the run.
    """
    if sum(evaluator.waits for evaluator in evaluators) > 1:
        return list(
            await asyncio.gather(
                *(_assess(evaluator, submission, services) for evaluator in evaluators)
            )
        )
    return [await _assess(evaluator, submission, services) for evaluator in evaluators]


async def _assess(
    evaluator: PlanEvaluator, submission: Submission, services: EvaluatorServices
) -> Assessment:
    """Return the assessment of one evaluator; does not raise when it fails."""
    try:
        score = masked_expectation(evaluator, submission, services)
        if score is None:
            score = await scorer_of(evaluator)(submission, services)
            score = masked_miss(evaluator, score, submission, services) or score
    except Exception as error:  # noqa: BLE001  # one that fails must not stop the others
        score = Score(error=f"unexpected {type(error).__name__}: {error}")
    for problem in _problems(score):
        services.warn(about_case(f"evaluator '{evaluator.name}'{problem}", submission.case.id))
    assessment = assessment_of(evaluator, score, submission.case.threshold)
    result, is_masked = services.clean(assessment.result)
    services.masked |= is_masked
    if submission.response.masked and compares_answer(evaluator):
        result = result.model_copy(update={"compared_masked": True})
    return replace(assessment, result=result)


def _problems(score: Score) -> Iterator[str]:
    if score.error is None and not 0 <= score.score <= 1:
        counted = min(1, max(0, score.score))
        yield f" scored {score.score:g}, outside 0 to 1; it counts as {counted:g}"
    if score.broken_contract is not None:
        yield f": {score.broken_contract}"


def load_evaluators(case: PlanCase) -> None:
    """Import what evaluators need; raises UsageError for a package or plugin that is of no use."""
    for evaluator in flat(case.evaluators):
        package = None
        if isinstance(evaluator, SimilarityEvaluator):
            package = evaluator.package
        if package is not None and find_spec(package) is None:
            raise UsageError(
                (
                    f"{case.source.path}:{case.source.line}: "
                    f"evaluator '{evaluator.name}' needs the package "
                    f"'{package}'"
                ),
                hint=PACKAGE_HINT,
            )
        if isinstance(evaluator, PluginEvaluator):
            _require_plugin(evaluator, f"{case.source.path}:{case.source.line}")
        scorer_of(evaluator)


def needing_packages(plan: Plan) -> Plan:
    """Return a plan with one case for each package or plugin that evaluators need."""
    cases: dict[str, PlanCase] = {}
    for case in plan.cases:
        for evaluator in flat(case.evaluators):
            if isinstance(evaluator, PluginEvaluator):
                cases.setdefault(evaluator.type, case)
            elif isinstance(evaluator, SimilarityEvaluator) and evaluator.package is not None:
                cases.setdefault(evaluator.package, case)
    return plan.model_copy(update={"cases": tuple(cases.values())})


def _require_plugin(evaluator: PluginEvaluator, place: str) -> None:
    found = find_plugin("evaluator", evaluator.type, evaluator.version)
    if isinstance(found, UnusablePlugin):
        raise UsageError(f"{place}: {found.message}", hint=found.hint)
    for refused in refused_settings(found, evaluator.settings):
        where = ".".join(map(str, refused.place))
        raise UsageError(f"{place}: {found.label} refuses its settings: {where}: {refused.message}")
