"""The family of evaluators: how an answer is scored."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, assert_never

from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.evaluators import (
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    ContainsEvaluator,
    CostEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    FieldAccuracyEvaluator,
    IsJsonEvaluator,
    LatencyEvaluator,
    RegexEvaluator,
    SimilarityEvaluator,
    StartsWithEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.exchange import Ask, JudgeQuestion, Log, ProviderError, Response, Score, Warn
from agentv_ci.contracts.plan import (
    FileReference,
    PlanCodeEvaluator,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanRubricEvaluator,
    PlanSchemaEvaluator,
)
from agentv_ci.contracts.results import EvaluatorResult, Usage
from agentv_ci.evaluate.judging import Judges
from agentv_ci.evaluate.scoring import Assessment, assessment_of
from agentv_ci.evaluate.scripts import Scripts
from agentv_ci.evaluate.submission import Submission


class Evaluator(Protocol):
    """Scores answers."""

    async def evaluate(self, submission: Submission) -> Score:
        """Return the score; what cannot be scored is a Score with an error, never an exception."""
        ...


def load_evaluators(evaluators: Iterable[PlanEvaluator]) -> None:
    """Import what these evaluators need."""
    for kind in sorted({each.type for each in evaluators}):
        importlib.import_module(f"{__name__}.{kind}")


@dataclass(slots=True)
class Tools:
    """What evaluators may use besides the answer."""

    ask: Ask
    locate: Callable[[FileReference], Path]
    locate_together: Callable[[Sequence[FileReference]], Mapping[str, Path]]
    read_yaml: ReadYaml
    environ: Mapping[str, str]
    root: Path
    log: Log
    warn: Warn
    clean: Callable[[EvaluatorResult], tuple[EvaluatorResult, bool]]
    """Takes the secrets out of a result before others read it, and says whether there were any."""
    judge_usage: Usage | None = None
    """What judges have used so far."""
    masked: bool = False
    """Whether a secret was taken out of what a judge or a script said."""
    _judge_costs: list[float | None] = field(default_factory=list)

    async def ask_judge(self, target: str, question: JudgeQuestion) -> Response:
        """Ask a judge and keep count of its tokens; raises ProviderError."""
        try:
            response = await self.ask(target, question)
        except ProviderError as error:
            self.masked |= error.masked
            raise
        self.masked |= response.masked
        self.judge_usage = response.usage if self.judge_usage is None else self.judge_usage.plus(response.usage)
        self._judge_costs.append(response.cost_usd)
        return response

    @property
    def judge_cost_usd(self) -> float | None:
        """What judges have cost so far; None when there were none, or one whose price is not known."""
        known = [cost for cost in self._judge_costs if cost is not None]
        return math.fsum(known) if known and len(known) == len(self._judge_costs) else None

    @property
    def judges(self) -> Judges:
        """Judges, asked until they can be understood."""
        return Judges(self.ask_judge, self.log)

    @property
    def scripts(self) -> Scripts:
        """Scripts, run until they end."""
        return Scripts(self.locate_together, self.environ, self.root, self.log)


async def score_one(evaluator: PlanEvaluator, submission: Submission, tools: Tools) -> Assessment:
    """Return what one evaluator makes of an answer; never raises for one that breaks."""
    try:
        score = await open_evaluator(evaluator, tools).evaluate(submission)
    except Exception as error:  # noqa: BLE001  # whatever breaks one evaluator, the others have scored
        score = Score(error=f"it broke: {type(error).__name__}: {error}")
    if score.error is None and not 0 <= score.score <= 1:
        counted = min(1, max(0, score.score))
        tools.warn(
            f"evaluator '{evaluator.name}' gave {score.score:g}; scores end at 0 and 1, it counts as {counted:g}"
        )
    assessment = assessment_of(evaluator, score, submission.case.threshold)
    result, is_masked = tools.clean(assessment.result)
    tools.masked |= is_masked
    return replace(assessment, result=result)


def open_evaluator(evaluator: PlanEvaluator, tools: Tools) -> Evaluator:  # noqa: C901, PLR0912  # a branch a kind
    """Return what scores as the plan says. The modules load when they are needed."""
    match evaluator:
        case PlanCodeEvaluator():
            from agentv_ci.evaluate.evaluators.code import Code

            return Code(evaluator, scripts=tools.scripts, locate=tools.locate)
        case PlanLlmJudgeEvaluator():
            from agentv_ci.evaluate.evaluators.llm_judge import LlmJudge

            return LlmJudge(evaluator, tools.judges)
        case PlanRubricEvaluator():
            from agentv_ci.evaluate.evaluators.rubric import Rubric

            return Rubric(evaluator, tools.judges)
        case PlanCompositeEvaluator():
            from agentv_ci.evaluate.evaluators.composite import Composite

            async def score(member: PlanEvaluator, submission: Submission) -> Assessment:
                return await score_one(member, submission, tools)

            return Composite(evaluator, score=score, judges=tools.judges, scripts=tools.scripts)
        case PlanSchemaEvaluator():
            from agentv_ci.evaluate.evaluators.schema import Schema

            return Schema(evaluator, read_yaml=tools.read_yaml, environ=tools.environ)
        case ToolTrajectoryEvaluator():
            from agentv_ci.evaluate.evaluators.tool_trajectory import ToolTrajectory

            return ToolTrajectory(evaluator)
        case ContainsEvaluator():
            from agentv_ci.evaluate.evaluators.contains import Contains

            return Contains(evaluator)
        case ContainsAnyEvaluator():
            from agentv_ci.evaluate.evaluators.contains_any import ContainsAny

            return ContainsAny(evaluator)
        case ContainsAllEvaluator():
            from agentv_ci.evaluate.evaluators.contains_all import ContainsAll

            return ContainsAll(evaluator)
        case EqualsEvaluator():
            from agentv_ci.evaluate.evaluators.equals import Equals

            return Equals(evaluator)
        case RegexEvaluator():
            from agentv_ci.evaluate.evaluators.regex import Regex

            return Regex(evaluator)
        case StartsWithEvaluator():
            from agentv_ci.evaluate.evaluators.starts_with import StartsWith

            return StartsWith(evaluator)
        case EndsWithEvaluator():
            from agentv_ci.evaluate.evaluators.ends_with import EndsWith

            return EndsWith(evaluator)
        case IsJsonEvaluator():
            from agentv_ci.evaluate.evaluators.is_json import IsJson

            return IsJson(evaluator)
        case FieldAccuracyEvaluator():
            from agentv_ci.evaluate.evaluators.field_accuracy import FieldAccuracy

            return FieldAccuracy(evaluator)
        case SimilarityEvaluator():
            from agentv_ci.evaluate.evaluators.similarity import Similarity

            return Similarity(evaluator)
        case LatencyEvaluator():
            from agentv_ci.evaluate.evaluators.latency import Latency

            return Latency(evaluator)
        case CostEvaluator():
            from agentv_ci.evaluate.evaluators.cost import Cost

            return Cost(evaluator)
        case TokenUsageEvaluator():
            from agentv_ci.evaluate.evaluators.token_usage import TokenUsage

            return TokenUsage(evaluator)
        case ToolCallsEvaluator():
            from agentv_ci.evaluate.evaluators.tool_calls import ToolCalls

            return ToolCalls(evaluator)
        case _:
            assert_never(evaluator)
