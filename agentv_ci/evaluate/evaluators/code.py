"""`type: code`: a script scores. It reads the case as JSON on stdin and prints one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Response, Score
from agentv_ci.contracts.plan import FilePart, FileReference, Part, PlanCodeEvaluator, PlanMessage, TextPart
from agentv_ci.contracts.results import TraceSummary
from agentv_ci.evaluate.scripts import Scripts
from agentv_ci.evaluate.submission import Submission, output_message


class Code:
    """See Evaluator."""

    def __init__(
        self, settings: PlanCodeEvaluator, *, scripts: Scripts, locate: Callable[[FileReference], Path]
    ) -> None:
        self._settings = settings
        self._scripts = scripts
        self._locate = locate

    async def evaluate(self, submission: Submission) -> Score:
        """Run the script; a crash, a time-out or anything but a score on stdout is an error, not a zero."""
        cwd = self._settings.cwd
        return await self._scripts.score(
            f"{submission.case.id}: {self._settings.name}",
            self._settings,
            self._input(submission),
            cwd=self._scripts.root / cwd if cwd else submission.folder,
            timeout_s=self._settings.timeout_seconds or submission.case.timeout_seconds,
        )

    def _input(self, submission: Submission) -> JsonObject:
        case, response = submission.case, submission.response
        attached = [part for message in case.input_messages for part in message.content if isinstance(part, FilePart)]
        guidelines = [part for part in attached if part.type == "guideline"]
        others = [part for part in attached if part.type == "file"]
        inputs: list[JsonValue] = [self._message(message, submission) for message in case.input_messages]
        guideline_files: list[JsonValue] = [str(self._locate_part(part)) for part in guidelines]
        segments: list[JsonValue] = [
            self._part(part, submission) for each in case.input_messages for part in each.content
        ]
        return {
            "eval_id": case.id,
            "question": submission.request.prompt,
            "expected_outcome": case.expected_outcome,
            "reference_answer": case.reference_answer,
            "candidate_answer": response.answer,
            "input_messages": inputs,
            "expected_messages": [self._message(message, submission) for message in case.expected_messages],
            "output_messages": [output_message(message) for message in response.messages],
            "guideline_files": guideline_files,
            "input_files": [str(self._locate_part(part)) for part in others],
            "has_trace": response.has_trace,
            "config": self._settings.config,
            # What scripts written for AgentV know these by.
            "guideline_paths": guideline_files,
            "input_segments": segments,
            "candidate_trace_summary": _trace(response),
        }

    def _message(self, message: PlanMessage, submission: Submission) -> JsonObject:
        content: JsonValue = message.value
        if content is None:
            content = [self._part(part, submission) for part in message.content]
        calls: JsonValue = [call.model_dump(mode="json") for call in message.tool_calls]
        name: JsonObject = {"name": message.name} if message.name is not None else {}
        return {"role": message.role, **name, "content": content, **({"tool_calls": calls} if calls else {})}

    def _part(self, part: Part, submission: Submission) -> JsonObject:
        match part:
            case FilePart():
                path = str(self._locate_part(part))
                return {"type": "file", "value": path, "text": submission.files[part.sha256].text}
            case TextPart():
                return {"type": "text", "value": part.text}

    def _locate_part(self, part: FilePart) -> Path:
        return self._locate(FileReference(path=part.path, sha256=part.sha256))


def _trace(response: Response) -> JsonObject | None:
    if not response.has_trace:
        return None
    summary: JsonObject = TraceSummary.of(call.tool for call in response.calls).model_dump(mode="json")
    return summary
