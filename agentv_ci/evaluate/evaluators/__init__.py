"""The family of evaluators: how an answer is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, assert_never

from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.evaluators import ContainsEvaluator, RegexEvaluator, ToolTrajectoryEvaluator
from agentv_ci.contracts.exchange import Ask, Log, Response, Score, Usage
from agentv_ci.contracts.plan import (
    FileReference,
    NotRunYet,
    PlanCodeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanSchemaEvaluator,
)
from agentv_ci.evaluate.submission import Submission


class Evaluator(Protocol):
    """Scores answers."""

    async def evaluate(self, submission: Submission) -> Score:
        """Return the score; what cannot be scored is a Score with an error, never an exception."""
        ...


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
    judge_usage: Usage | None = None
    """What judges have used so far."""

    async def ask_judge(
        self, target: str, *, system: str, user: str, temperature: float | None, max_output_tokens: int | None
    ) -> Response:
        """Ask a judge and keep count of its tokens; raises ProviderError."""
        response = await self.ask(
            target, system=system, user=user, temperature=temperature, max_output_tokens=max_output_tokens
        )
        self.judge_usage = _sum(self.judge_usage, response.usage)
        return response


def open_evaluator(evaluator: PlanEvaluator, tools: Tools) -> Evaluator:
    """Return what scores as the plan says. The modules load when they are needed."""
    assert not isinstance(evaluator, NotRunYet), "a plan with such an evaluator is refused"
    match evaluator:
        case PlanCodeEvaluator():
            from agentv_ci.evaluate.evaluators.code import Code

            return Code(
                evaluator,
                locate=tools.locate,
                locate_together=tools.locate_together,
                environ=tools.environ,
                root=tools.root,
                log=tools.log,
            )
        case PlanLlmJudgeEvaluator():
            from agentv_ci.evaluate.evaluators.llm_judge import LlmJudge

            return LlmJudge(evaluator, ask=tools.ask_judge, log=tools.log)
        case ContainsEvaluator():
            from agentv_ci.evaluate.evaluators.contains import Contains

            return Contains(evaluator)
        case RegexEvaluator():
            from agentv_ci.evaluate.evaluators.regex import Regex

            return Regex(evaluator)
        case PlanSchemaEvaluator():
            from agentv_ci.evaluate.evaluators.schema import Schema

            return Schema(evaluator, read_yaml=tools.read_yaml)
        case ToolTrajectoryEvaluator():
            from agentv_ci.evaluate.evaluators.tool_trajectory import ToolTrajectory

            return ToolTrajectory(evaluator)
        case _:
            assert_never(evaluator)


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    return replace(
        first,
        **{
            name: (getattr(first, name) or 0) + (getattr(second, name) or 0)
            for name in ("input_tokens", "output_tokens", "total_tokens", "cached_tokens")
            if getattr(first, name) is not None or getattr(second, name) is not None
        },
    )
