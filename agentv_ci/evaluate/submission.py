"""What evaluators get: the answer, its case, and services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.exchange import (
    Ask,
    Grade,
    JudgeQuestion,
    Log,
    ProviderError,
    Request,
    Response,
    Score,
    Warn,
)
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.plan_parts import (
    AttachmentPart,
    FilePart,
    FileReference,
    Part,
    PlanFile,
    PlanMessage,
    TextPart,
    part_outline,
)
from agentv_ci.contracts.results import (
    EvaluatorResult,
    Expense,
    OutputMessage,
    Usage,
    total_cost,
    total_usage,
)
from agentv_ci.workspaces.places import Work


class OtherArms(Struct, frozen=True):
    """The known answers of other arms of an experiment to the same trial of a case.

    There is at least one.
    """

    request: str
    """What the base was asked: its text is shown to judges whatever the order in which arms answer.
    """
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

    def text_of(self, part: Part) -> str:
        """Return a part of a message as text: of a file its content, of an attachment its name."""
        match part:
            case FilePart():
                return self.files[part.sha256].text
            case TextPart():
                return part.text
            case AttachmentPart():
                return part_outline(part)

    def label(self, evaluator: PlanEvaluator) -> str:
        """Return how the log names an evaluator of this answer."""
        return f"{self.case.id}: {evaluator.name}"


def without_work(reason: str | None) -> Score:
    """Return the score of an evaluator of outcomes without what the agent has left behind.

    See Submission.
    """
    if reason is not None:
        return Score(error=reason)
    return Score(unmeasured="what the agent left behind")


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
    masked: bool = False
    """Whether a secret was masked in the output of a judge or a script."""
    _priced: list[Expense] = field(default_factory=list)
    """What judges have used so far whose cost is known."""
    _unpriced: list[Expense] = field(default_factory=list)

    async def ask_judge(self, target: str, question: JudgeQuestion) -> Response:
        """Ask a judge and count its tokens; raises ProviderError."""
        try:
            response = await self.ask(target, question)
        except ProviderError as error:
            self.masked |= error.masked
            self._count(error.expenses)
            raise
        self.masked |= response.masked
        answer = Expense(usage=response.usage or Usage(), cost_usd=response.cost_usd)
        self._count([*response.expenses, answer])
        return response

    def _count(self, expenses: Iterable[Expense]) -> None:
        for expense in expenses:
            (self._unpriced if expense.cost_usd is None else self._priced).append(expense)

    def with_judges(self, grade: Grade) -> Grade:
        """Return a grade with what judges have used, and whether a secret was masked."""
        usage = total_usage([*self._priced, *self._unpriced])
        parts = []
        if self._priced and self._unpriced:
            parts = [self._priced, self._unpriced]
        return replace(
            grade,
            judge_usage=usage if usage != Usage() else None,
            judge_cost_usd=total_cost(self._priced),
            judge_expenses=tuple(
                Expense(is_judge=True, usage=total_usage(part), cost_usd=total_cost(part))
                for part in parts
            ),
            masked=self.masked,
        )


def output_message(message: OutputMessage) -> JsonObject:
    """Return a turn of an answer as scripts and judges read it."""
    return turn(message, message.content)


def turn(message: OutputMessage | PlanMessage, content: JsonValue) -> JsonObject:
    """Return a turn with this content as scripts and judges read it."""
    calls: JsonValue = [
        {"tool": call.tool, "input": call.input, "output": call.output}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}
