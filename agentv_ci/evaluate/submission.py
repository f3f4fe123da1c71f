"""What an evaluator sees: the answer, and the case it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.contracts.plan import FileText, PlanCase, PlanEvaluator, PlanMessage
from agentv_ci.contracts.results import OutputMessage


@dataclass(frozen=True, slots=True)
class Submission:
    """An answer with its case. All of it is data: nothing in it is ever expanded or obeyed."""

    case: PlanCase
    request: Request
    response: Response
    files: Mapping[str, FileText]
    """The plan's files."""
    folder: Path
    """The eval file's folder."""

    @property
    def answer(self) -> str:
        """The answer's text."""
        return self.response.answer

    def label(self, evaluator: PlanEvaluator) -> str:
        """Return how the log names an evaluator of this answer."""
        return f"{self.case.id}: {evaluator.name}"


def output_message(message: OutputMessage) -> JsonObject:
    """Return a turn of an answer as scripts and judges read it."""
    return turn(message, message.content)


def turn(message: OutputMessage | PlanMessage, content: JsonValue) -> JsonObject:
    """Return a turn with this content as scripts and judges read it."""
    calls: JsonValue = [{"tool": call.tool, "input": call.input, "output": call.output} for call in message.tool_calls]
    return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}
