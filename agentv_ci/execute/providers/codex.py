"""`provider: codex`: OpenAI's Codex, `codex exec --json`.

Its events, one JSON object a line, are described in the documentation of `codex exec`,
https://developers.openai.com/codex/noninteractive. Profiles and configuration are Codex's own business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from agentv_ci.contracts.agent_targets import CodexTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind, Request
from agentv_ci.contracts.results import Usage
from agentv_ci.execute.agents.events import Heard, Turns, kind_of_reported, read_events
from agentv_ci.execute.agents.program import AgentProvider
from agentv_ci.execute.agents.run_log import run_log
from agentv_ci.execute.answers import error_message, summed
from agentv_ci.execute.services import ProviderServices
from agentv_ci.json_access import count_at, read_json, text_at, value_at
from agentv_ci.process import Finished, Listener

LOGS_SWITCH = "AGENTV_CODEX_STREAM_LOGS"
OFF = frozenset({"false", "0", "off"})

KNOWN = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed", "error"})
PASSING = "Reconnecting"
"""An error that begins so is none: Codex goes on."""
STATUS = re.compile(r"\b(?:unexpected status|last status:) (\d{3})\b")
DISCONNECTED = re.compile(
    r"stream disconnected|error sending request|connection (?:refused|reset|failed)", re.IGNORECASE
)


def open_provider(target: CodexTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target, which writes a log of every run."""
    shown = None if target.log_format == "json" else summary

    def listen(request: Request, argv: Sequence[str]) -> AbstractContextManager[Listener | None]:
        if services.environment.variables.get(LOGS_SWITCH, "").strip().lower() in OFF:
            return nullcontext()
        folder = services.place(target.log_dir) if target.log_dir else services.logs / "codex"
        return run_log(folder, target.name, request, argv, services=services, shown=shown)

    return AgentProvider(target, Codex(target), services, listen=listen)


class Codex:
    """See Agent."""

    kind = "codex"
    program = "codex"
    environment: Mapping[str, str] = {}

    def __init__(self, target: CodexTarget) -> None:
        self._target = target

    def arguments(self, workspace: Path) -> Sequence[str]:
        """Return the arguments; `--ask-for-approval` is global and stands before `exec`, `-` is the prompt's place."""
        target = self._target
        chosen = {"--profile": target.profile, "--model": target.model, "--sandbox": target.sandbox}
        return [
            "--ask-for-approval",
            target.approval or str(target.implied["approval"]),
            *("exec", "--json", "--color", "never", "--skip-git-repo-check"),
            *(word for option, value in chosen.items() if value is not None for word in (option, value)),
            *(("--add-dir", str(workspace)) if target.cwd and target.sandbox == "workspace-write" else ()),
            *(target.args or ()),
            "-",
        ]

    def hear(self, finished: Finished) -> Heard:
        """Return what the events say: the last message of the agent, once its turn is completed."""
        turns, usage, completed = Turns(), None, False
        failure = warning = None
        for event in read_events(finished.stdout, KNOWN):
            match text_at(event, "type"):
                case "item.completed":
                    _hear_item(turns, value_at(event, "item"))
                case "turn.completed":
                    completed, usage = True, _usage(event)
                case "turn.failed":
                    failure = text_at(event, "error", "message") or "the turn failed"
                case "error" if not (text_at(event, "message") or "").startswith(PASSING):
                    warning = text_at(event, "message")
                case _:
                    pass
        error = failure or (None if completed else warning or "its events end before the turn is completed")
        if error is not None:
            return Heard(error=_sentence(error), kind=_kind(error), messages=turns.messages)
        return Heard(turns.messages, answer=turns.last, usage=usage)


def _hear_item(turns: Turns, item: JsonValue) -> None:
    match text_at(item, "type"):
        case "agent_message" if (text := text_at(item, "text")) is not None:
            turns.say(text)
        case "command_execution":
            turns.call("command_execution", {"command": value_at(item, "command")}, value_at(item, "aggregated_output"))
        case "file_change":
            turns.call("file_change", {"changes": value_at(item, "changes")})
        case "mcp_tool_call":
            name = f"{text_at(item, 'server')}.{text_at(item, 'tool')}"
            turns.call(name, value_at(item, "arguments"), value_at(item, "result") or value_at(item, "error"))
        case "web_search":
            turns.call("web_search", {"query": value_at(item, "query")})
        case _:
            pass


def _usage(event: JsonObject) -> Usage:
    read, written = count_at(event, "usage", "input_tokens"), count_at(event, "usage", "output_tokens")
    return summed(read, written, count_at(event, "usage", "cached_input_tokens"))


def _sentence(error: str) -> str:
    """The sentence of an error, which may be the body of an API's answer."""
    try:
        return error_message(read_json(error)) or error
    except ValueError:
        return error


def _kind(error: str) -> ErrorKind:
    if match := STATUS.search(error):
        return kind_of_reported(int(match[1]))
    if error.lstrip().startswith("{"):
        return "request"
    return "network" if DISCONNECTED.search(error) else "process"


def summary(event: JsonObject) -> Iterator[str]:
    """Yield what the log says of an event."""
    item = value_at(event, "item")
    match text_at(event, "type"), text_at(item, "type"):
        case "item.completed", "command_execution":
            yield f"command (exit {value_at(item, 'exit_code')}): {text_at(item, 'command')}"
        case "item.completed", "file_change":
            yield f"files changed: {json.dumps(value_at(item, 'changes'), ensure_ascii=False)}"
        case "item.completed", "mcp_tool_call":
            yield f"tool called: {text_at(item, 'server')}.{text_at(item, 'tool')}"
        case "item.completed", str(kind):
            yield f"{kind}: {text_at(item, 'text') or text_at(item, 'message') or ''}"
        case ("turn.completed" | "turn.failed" | "error") as kind, _:
            said = text_at(event, "message") or text_at(event, "error", "message")
            yield f"{kind}: {said or json.dumps(value_at(event, 'usage'))}"
        case str(kind), None:
            yield kind
        case _:
            pass
