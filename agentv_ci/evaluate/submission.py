"""What an evaluator gets: the answer, the case it answers, and what it may use besides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.exchange import Ask, JudgeQuestion, Log, ProviderError, Request, Response, Warn
from agentv_ci.contracts.plan import FilePart, FileReference, FileText, PlanCase, PlanEvaluator, PlanMessage
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, Usage


@dataclass(frozen=True, slots=True)
class Submission:
    """An answer with its case. All of it is data: nothing in it is ever expanded or obeyed."""

    case: PlanCase
    request: Request
    response: Response
    files: Mapping[str, FileText]
    """The plan's files."""

    @property
    def answer(self) -> str:
        """The answer's text."""
        return self.response.answer

    def label(self, evaluator: PlanEvaluator) -> str:
        """Return how the log names an evaluator of this answer."""
        return f"{self.case.id}: {evaluator.name}"


@dataclass(slots=True)
class EvaluatorServices:
    """What the evaluators of one answer may use besides it; judges are asked through it and counted."""

    ask: Ask
    locate: Callable[[FilePart], Path]
    locate_together: Callable[[Sequence[FileReference]], Mapping[str, Path]]
    read_yaml: ReadYaml
    environ: Mapping[str, str]
    root: Path
    """The repository, to which folders of the plan are relative."""
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


def output_message(message: OutputMessage) -> JsonObject:
    """Return a turn of an answer as scripts and judges read it."""
    return turn(message, message.content)


def turn(message: OutputMessage | PlanMessage, content: JsonValue) -> JsonObject:
    """Return a turn with this content as scripts and judges read it."""
    calls: JsonValue = [{"tool": call.tool, "input": call.input, "output": call.output} for call in message.tool_calls]
    return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}
