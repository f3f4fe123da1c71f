"""`type: code`: a script reads the case as JSON on stdin and prints the score as a JSON object."""

from __future__ import annotations

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
    attached = [
        part
        for part in chain.from_iterable(message.content for message in case.input_messages)
        if isinstance(part, FilePart)
    ]
    guidelines = [part for part in attached if part.type == "guideline"]
    others = [part for part in attached if part.type == "file"]
    inputs: list[JsonValue] = [
        _message(message, submission, services) for message in case.input_messages
    ]
    guideline_files: list[JsonValue] = [str(services.locate(part)) for part in guidelines]
    segments: list[JsonValue] = [
        _part(part, submission, services)
        for part in chain.from_iterable(message.content for message in case.input_messages)
    ]
    summary = TraceSummary.of(call.tool for call in response.calls)
    return {
        "eval_id": case.id,
        "question": submission.request.prompt,
        "expected_outcome": case.expected_outcome,
        "reference_answer": case.reference_answer,
        "candidate_answer": response.answer,
        "input_messages": inputs,
        "expected_messages": [
            _message(message, submission, services) for message in case.expected_messages
        ],
        "output_messages": list(map(output_message, response.messages)),
        "guideline_files": guideline_files,
        "input_files": [str(services.locate(part)) for part in others],
        "has_trace": response.has_trace,
        "config": settings.config,
        # The names that scripts written for AgentV use.
        "guideline_paths": guideline_files,
        "input_segments": segments,
        "candidate_trace_summary": summary.model_dump(mode="json") if response.has_trace else None,
    }


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
