"""`provider: gemini-cli`: Google's Gemini CLI, `gemini -o stream-json`.

https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/headless.md. When it fails, the reason is a JSON object
at the end of its standard error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentv_ci.contracts.agent_targets import GeminiCliTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind
from agentv_ci.contracts.results import Usage
from agentv_ci.execute.agents.events import Heard, NotEvents, Turns, kind_of_reported, last_event, read_events
from agentv_ci.execute.agents.program import AgentProvider
from agentv_ci.execute.answers import error_message
from agentv_ci.execute.services import ProviderServices
from agentv_ci.json_access import count_at, read_json, text_at, value_at
from agentv_ci.process import Finished

KNOWN = frozenset({"init", "message", "tool_use", "tool_result", "result", "error"})


def open_provider(target: GeminiCliTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target."""
    return AgentProvider(target, GeminiCli(target), services)


class GeminiCli:
    """See Agent."""

    kind = "gemini-cli"
    program = "gemini"
    environment: Mapping[str, str] = {"GEMINI_TELEMETRY_ENABLED": "false"}

    def __init__(self, target: GeminiCliTarget) -> None:
        self._target = target

    def arguments(self, workspace: Path) -> Sequence[str]:
        """Return the arguments; nobody is there to trust the folder."""
        return [
            *("-o", "stream-json", "--skip-trust"),
            *(("-m", self._target.model) if self._target.model else ()),
            *(("--include-directories", str(workspace)) if self._target.cwd else ()),
            *(self._target.args or ()),
        ]

    def hear(self, finished: Finished) -> Heard:
        """Return what the events say: the assistant's text after its last tool call."""
        failure = _failure(finished.stderr) if finished.status else None
        try:
            events = read_events(finished.stdout, KNOWN)
        except NotEvents:
            if failure is None:
                raise
            events = []
        turns, result = _turns(events), last_event(events, "result")
        if failure is None and result is not None and value_at(result, "status") != "success":
            failure = result if "error" in result else last_event(events, "error") or result
        if failure is not None:
            return Heard(turns.messages, error=_sentence(failure), kind=_kind(failure))
        if result is None:
            return Heard(turns.messages, error="its events end before the result")
        model = text_at(last_event(events, "init"), "model")
        return Heard(turns.messages, answer=turns.last, model=model, usage=_usage(value_at(result, "stats")))


def _turns(events: Sequence[JsonObject]) -> Turns:
    """A text comes in pieces; a tool call or the end makes it whole."""
    outputs = {text_at(event, "tool_id"): value_at(event, "output") for event in events if "output" in event}
    turns, pieces = Turns(), ""
    for event in events:
        match text_at(event, "type"):
            case "message" if event.get("role") == "assistant":
                pieces += text_at(event, "content") or ""
            case "tool_use":
                if pieces:
                    turns.say(pieces)
                pieces = ""
                turns.call(
                    text_at(event, "tool_name") or "",
                    value_at(event, "parameters"),
                    outputs.get(text_at(event, "tool_id")),
                )
            case _:
                pass
    if pieces:
        turns.say(pieces)
    return turns


def _failure(stderr: str) -> JsonObject | None:
    """The object that stands last on standard error, behind advice and a stack trace."""
    lines = stderr.split("\n")
    for start in reversed([number for number, line in enumerate(lines) if line.rstrip() == "{"]):
        try:
            found = read_json("\n".join(lines[start:]))
        except ValueError:
            continue
        return found if isinstance(found, dict) else None
    return None


def _inner(failure: JsonObject) -> JsonValue:
    """The body of an API's answer inside an error's message, bare or as `[API Error: {…}]`."""
    found = re.search(r"\{.*\}", text_at(failure, "error", "message") or "", re.DOTALL)
    try:
        return read_json(found[0]) if found else None
    except ValueError:
        return None


def _sentence(failure: JsonObject) -> str:
    return error_message(_inner(failure)) or error_message(failure) or "without a reason"


def _kind(failure: JsonObject) -> ErrorKind:
    if "API_KEY_INVALID" in json.dumps(_inner(failure)):
        # Gemini answers a wrong key with status 400.
        return "auth"
    if "safety settings" in (text_at(failure, "message") or ""):
        return "request"
    return kind_of_reported(count_at(_inner(failure), "error", "code") or count_at(failure, "error", "code"))


def _usage(stats: JsonValue) -> Usage:
    return Usage(
        input_tokens=count_at(stats, "input_tokens"),
        output_tokens=count_at(stats, "output_tokens"),
        total_tokens=count_at(stats, "total_tokens"),
        cached_tokens=count_at(stats, "cached"),
    )
