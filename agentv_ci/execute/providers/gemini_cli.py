"""`provider: gemini-cli`: Google's Gemini CLI, `gemini -o stream-json`.

https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/headless.md. A failure is a JSON
object at the end of standard error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial

from agentv_ci.base.json_access import count_at, json_or_none, text_at, value_at
from agentv_ci.contracts.agent_targets import GeminiCliTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.contracts.results import Usage
from agentv_ci.execute.agents.events import (
    AgentFailed,
    NotEvents,
    Progress,
    Spent,
    Turns,
    kind_of_reported,
    last_event,
    read_events,
    result_event,
)
from agentv_ci.execute.agents.program import Agent, AgentProvider, usual_arguments
from agentv_ci.execute.answers import error_message, of_type
from agentv_ci.execute.provider_services import ProviderServices

ENVIRONMENT = {"GEMINI_TELEMETRY_ENABLED": "false"}
STOPPED = re.compile(r"stopping execution|session turns exceeded", re.IGNORECASE)
"""Says that a run was stopped, also as a warning."""
MAX_FAILURE = 64 * 1024
"""Characters at the end of standard error in which a failure is searched."""
KNOWN = frozenset({"init", "message", "tool_use", "tool_result", "result", "error"})
PROGRESS = partial(Progress, final={"result"}, working={"message", "tool_use"})


def open_provider(target: GeminiCliTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target.

    `--skip-trust` because trust cannot be confirmed in a run.
    """
    first = ("-o", "stream-json", "--skip-trust")
    arguments = usual_arguments(target, *first, model="-m", folder="--include-directories")
    return AgentProvider(
        target,
        Agent("gemini", arguments, read_output, spent, KNOWN, PROGRESS, ENVIRONMENT),
        services,
    )


def read_output(finished: ProcessResult) -> Response | None:
    """Read the events; the answer is the assistant's text after its last tool call."""
    failure = _failure(finished.stderr) if finished.status else None
    try:
        events = read_events(finished.stdout, KNOWN)
    except NotEvents:
        if failure is None:
            raise
        events = []
    failure = failure or _reported_failure(events, is_error=finished.status != 0)
    if failure is not None:
        raise AgentFailed(
            error_message(_inner(failure)) or error_message(failure) or "no reason given",
            _kind(failure),
        )
    result_event(events)
    turns = _turns(events)
    return turns.response(turns.last, spent(events))


def spent(events: Sequence[JsonObject]) -> Spent:
    """Return what was used, as the result says."""
    stats = value_at(last_event(events, "result"), "stats")
    model = text_at(last_event(events, "init"), "model")
    return Spent(model=model, usage=None if stats is None else _usage(stats))


def _reported_failure(events: Sequence[JsonObject], *, is_error: bool) -> JsonObject | None:
    """Return the event that says why there is no whole answer, whatever the result says.

    None if it is whole.

    `is_error`: whether the exit code says that there is none.
    """
    result, errors = last_event(events, "result"), of_type(events, "error")
    if result is not None and result.get("error"):
        return result
    for error in filter(_stops, reversed(errors)):
        return error
    is_unsuccessful = result is not None and value_at(result, "status") != "success"
    if errors and (is_error or is_unsuccessful):
        return errors[-1]
    return result if is_unsuccessful else None


def _stops(error: JsonObject) -> bool:
    """Whether an error ends the run, such as at a limit of turns; others are warnings."""
    return (
        text_at(error, "severity") == "error"
        or STOPPED.search(text_at(error, "message") or "") is not None
    )


def _turns(events: Sequence[JsonObject]) -> Turns:
    """Join the pieces of each message, up to a tool call or the end."""
    turns, pieces = Turns(), ""
    for event in events:
        if "output" in event:
            turns.output(text_at(event, "tool_id"), event["output"])
        match text_at(event, "type"):
            case "message" if event.get("role") == "assistant":
                pieces += text_at(event, "content") or ""
            case "tool_use":
                if pieces:
                    turns.say(pieces)
                pieces = ""
                turns.call(
                    text_at(event, "tool_name"),
                    value_at(event, "parameters"),
                    call_id=text_at(event, "tool_id"),
                )
            case _:
                pass
    if pieces:
        turns.say(pieces)
    return turns


def _failure(stderr: str) -> JsonObject | None:
    """Return the last JSON object on standard error; hints and a stack trace may precede it."""
    lines = stderr[-MAX_FAILURE:].split("\n")
    for start in reversed(range(len(lines))):
        line = lines[start].rstrip()
        if line.endswith("{"):
            # A hint without a line break may precede it.
            last = json_or_none("\n".join(lines[start:])[len(line) - 1 :])
            if isinstance(last, dict):
                return last
    return None


def _inner(failure: JsonObject) -> JsonValue:
    """Return the API's error body from an error's message, bare or as `[API Error: {…}]`."""
    found = re.search(r"\{.*\}", text_at(failure, "error", "message") or "", re.DOTALL)
    return json_or_none(found[0]) if found else None


def _kind(failure: JsonObject) -> ErrorKind:
    if "API_KEY_INVALID" in json.dumps(_inner(failure)):
        # Gemini answers an invalid key with status 400.
        return "auth"
    if "safety settings" in (text_at(failure, "message") or ""):
        return "request"
    return kind_of_reported(
        count_at(_inner(failure), "error", "code") or count_at(failure, "error", "code")
    )


def _usage(stats: JsonValue) -> Usage:
    read, written = count_at(stats, "input_tokens"), count_at(stats, "output_tokens")
    total = count_at(stats, "total_tokens")
    if read is not None and written is not None and total is not None:
        # Thoughts are only in the total.
        written = max(written, total - read)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=total,
        cached_tokens=count_at(stats, "cached"),
    )
