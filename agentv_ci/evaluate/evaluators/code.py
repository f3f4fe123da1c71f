"""`type: code`: a script reads the case as JSON on stdin and prints the score as a JSON object."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import PlanCodeEvaluator
from agentv_ci.contracts.plan_parts import AttachmentPart, FilePart, Part, PlanMessage, TextPart
from agentv_ci.contracts.results import TraceSummary
from agentv_ci.evaluate.scripts import script_score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission, output_message, turn


async def code(
    settings: PlanCodeEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Run the script; a crash, a timeout or a missing score is an error, not a zero."""
    cwd = settings.cwd
    return await script_score(
        services,
        submission.label(settings),
        settings,
        _input(settings, submission, services),
        cwd=services.root / cwd if cwd else submission.request.cwd,
        timeout_s=settings.timeout_seconds or submission.case.timeout_seconds,
    )


def _input(
    settings: PlanCodeEvaluator, submission: Submission, services: EvaluatorServices
) -> JsonObject:
    case, response = submission.case, submission.response
    parts = list(chain.from_iterable(message.content for message in case.input_messages))
    guidelines = _located("guideline", parts, services)
    summary = TraceSummary.of(call.tool for call in response.calls)
    return {
        "eval_id": case.id,
        "question": submission.request.prompt,
        "expected_outcome": case.expected_outcome,
        "reference_answer": case.reference_answer,
        "candidate_answer": response.answer,
        "input_messages": _messages(case.input_messages, submission, services),
        "expected_messages": _messages(case.expected_messages, submission, services),
        "output_messages": list(map(output_message, response.messages)),
        "guideline_files": guidelines,
        "input_files": _located("file", parts, services),
        "has_trace": response.has_trace,
        "config": settings.config,
        # The names that scripts written for AgentV use.
        "guideline_paths": guidelines,
        "input_segments": [_part(part, submission, services) for part in parts],
        "candidate_trace_summary": summary.model_dump(mode="json") if response.has_trace else None,
    }


def _located(kind: str, parts: Iterable[Part], services: EvaluatorServices) -> list[JsonValue]:
    """Return the paths of the files of a kind among parts of messages."""
    files = (part for part in parts if isinstance(part, FilePart) and part.type == kind)
    return [str(services.locate(file)) for file in files]


def _messages(
    messages: Iterable[PlanMessage], submission: Submission, services: EvaluatorServices
) -> list[JsonValue]:
    return [_message(message, submission, services) for message in messages]


def _message(
    message: PlanMessage, submission: Submission, services: EvaluatorServices
) -> JsonObject:
    content: JsonValue = message.value
    if content is None:
        content = [_part(part, submission, services) for part in message.content]
    name: JsonObject = {"name": message.name} if message.name is not None else {}
    return {"role": message.role, **name, **turn(message, content)}


def _part(part: Part, submission: Submission, services: EvaluatorServices) -> JsonObject:
    match part:
        case FilePart():
            path = str(services.locate(part))
            return {"type": "file", "value": path, "text": submission.files[part.sha256].text}
        case TextPart():
            return {"type": "text", "value": part.text}
        case AttachmentPart():
            value = part.name if part.file is None else str(services.locate(part.file))
            return {"type": part.type, "value": value, "media_type": part.media_type}
