"""What evaluators get: the answer, its case, and services."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.exchange import Ask, JudgeQuestion, Log, ProviderError, Request, Response, Score, Warn
from agentv_ci.contracts.plan import FilePart, FileReference, PlanCase, PlanEvaluator, PlanFile, PlanMessage
from agentv_ci.contracts.results import EvaluatorResult, Expense, OutputMessage, Usage
from agentv_ci.workspaces.places import Work


class OtherArms(Struct, frozen=True):
    """The answers of other arms of an experiment to the same trial of a case that are known: at least one."""

    request: str
    """What the base was asked: its text is shown to judges whatever the order in which arms answer."""
    answers: Mapping[str, str]
    """Arm → answer."""


class Submission(Struct, frozen=True):
    """An answer with its case. All of it is data: nothing in it is expanded or executed."""

    case: PlanCase
    request: Request
    response: Response
    files: Mapping[str, PlanFile]
    """The plan's files."""
    work: Work | str | None = None
    """What the agent has left behind, or why it cannot be graded; None in a dry run."""
    other_arms: OtherArms | str | None = None
    """What a `pairwise_judge` compares it with, or why it cannot be compared."""

    @property
    def answer(self) -> str:
        """The answer's text."""
        return self.response.answer

    def label(self, evaluator: PlanEvaluator) -> str:
        """Return how the log names an evaluator of this answer."""
        return f"{self.case.id}: {evaluator.name}"


def without_work(reason: str | None) -> Score:
    """Return the score of an evaluator of outcomes without what the agent has left behind; see Submission."""
    return Score(error=reason) if reason is not None else Score(unmeasured="what the agent left behind")


class EvaluatorServices(Struct):
    """Services for the evaluators of one answer; judges are asked and their tokens counted here."""

    ask: Ask
    locate: Callable[[FilePart | FileReference], Path]
    locate_together: Callable[[Sequence[FileReference]], Mapping[str, Path]]
    read_yaml: ReadYaml
    environ: Mapping[str, str]
    root: Path
    """The repository; folders in the plan are relative to it."""
    log: Log
    warn: Warn
    clean: Callable[[EvaluatorResult], tuple[EvaluatorResult, bool]]
    """Masks the secrets in a result, and returns whether there were any."""
    hides: Callable[[str], bool] = lambda _: False
    """Whether a text has a secret, which is masked in answers."""
    hides_match: Callable[[Callable[[str], bool]], bool] = lambda _: False
    """Whether one of the secrets meets a condition."""
    judge_usage: Usage | None = None
    """Tokens that judges have used so far."""
    masked: bool = False
    """Whether a secret was masked in the output of a judge or a script."""
    _judge_costs: list[float | None] = field(default_factory=list)

    async def ask_judge(self, target: str, question: JudgeQuestion) -> Response:
        """Ask a judge and count its tokens; raises ProviderError."""
        try:
            response = await self.ask(target, question)
        except ProviderError as error:
            self.masked |= error.masked
            self._count_failed(error.expenses)
            raise
        self.masked |= response.masked
        self._count_failed(response.expenses)
        self._count(response.usage, response.cost_usd)
        return response

    def _count_failed(self, expenses: Iterable[Expense]) -> None:
        for expense in expenses:
            self._count(expense.usage, expense.cost_usd)

    def _count(self, usage: Usage | None, cost_usd: float | None) -> None:
        self.judge_usage = usage if self.judge_usage is None else self.judge_usage.plus(usage)
        self._judge_costs.append(cost_usd)

    @property
    def judge_cost_usd(self) -> float | None:
        """What judges have cost so far; None without judges, or when one has no known price."""
        known = [cost for cost in self._judge_costs if cost is not None]
        return math.fsum(known) if known and len(known) == len(self._judge_costs) else None


def output_message(message: OutputMessage) -> JsonObject:
    """Return a turn of an answer as scripts and judges read it."""
    return turn(message, message.content)


def turn(message: OutputMessage | PlanMessage, content: JsonValue) -> JsonObject:
    """Return a turn with this content as scripts and judges read it."""
    calls: JsonValue = [{"tool": call.tool, "input": call.input, "output": call.output} for call in message.tool_calls]
    return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}
