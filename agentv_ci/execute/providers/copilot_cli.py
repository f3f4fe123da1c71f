"""`provider: copilot-cli`: GitHub's Copilot CLI, `copilot --output-format json`.

https://docs.github.com/copilot/how-tos/copilot-cli. It reports no tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentv_ci.contracts.agent_targets import CopilotCliTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind
from agentv_ci.execute.agents.events import Heard, Turns, kind_of_reported, last_event, read_events
from agentv_ci.execute.agents.program import AgentProvider
from agentv_ci.execute.services import ProviderServices
from agentv_ci.json_access import count_at, text_at, value_at
from agentv_ci.process import Finished

KNOWN = frozenset({"assistant.message", "user.message", "session.error", "result", "assistant.turn_start"})


def open_provider(target: CopilotCliTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target."""
    return AgentProvider(target, CopilotCli(target), services)


class CopilotCli:
    """See Agent."""

    kind = "copilot-cli"
    program = "copilot"
    environment: Mapping[str, str] = {"CI": "1"}

    def __init__(self, target: CopilotCliTarget) -> None:
        self._target = target

    def arguments(self, workspace: Path) -> Sequence[str]:
        """Return the arguments; nobody is there to allow a tool, so all are."""
        return [
            *("--output-format", "json", "--no-color", "--allow-all-tools"),
            *(("--model", self._target.model) if self._target.model else ()),
            *(("--add-dir", str(workspace)) if self._target.cwd else ()),
            *(self._target.args or ()),
        ]

    def hear(self, finished: Finished) -> Heard:
        """Return what the events say: the last message of the assistant that has a text."""
        events = read_events(finished.stdout, KNOWN)
        turns = _turns(events)
        result = last_event(events, "result")
        failure = last_event(events, "session.error")
        if failure is not None and (result is None or value_at(result, "exitCode") != 0):
            return Heard(turns.messages, error=text_at(failure, "data", "message"), kind=_kind(failure))
        if result is None:
            return Heard(turns.messages, error="its events end before the result")
        if value_at(result, "exitCode") != 0:
            return Heard(turns.messages, error=f"its session ended with {value_at(result, 'exitCode')}")
        model = next((found for event in events if (found := text_at(event, "data", "model"))), None)
        return Heard(turns.messages, answer=turns.last, model=model)


def _turns(events: Sequence[JsonObject]) -> Turns:
    outputs: dict[str | None, JsonValue] = {}
    for event in events:
        if text_at(event, "type") == "tool.execution_complete":
            returned = value_at(event, "data", "result", "content")
            outputs[text_at(event, "data", "toolCallId")] = returned or value_at(event, "data", "error", "message")
    turns = Turns()
    for event in events:
        match text_at(event, "type"):
            case "assistant.message" if text := text_at(event, "data", "content"):
                turns.say(text)
            case "tool.execution_start":
                name = text_at(event, "data", "toolName") or ""
                turns.call(
                    name, value_at(event, "data", "arguments"), outputs.get(text_at(event, "data", "toolCallId"))
                )
            case _:
                pass
    return turns


def _kind(failure: JsonObject) -> ErrorKind:
    return kind_of_reported(count_at(failure, "data", "statusCode"))
