"""`provider: copilot-cli`: GitHub's Copilot CLI, `copilot --output-format json`.

https://docs.github.com/copilot/how-tos/copilot-cli. It does not report tokens.
"""

from __future__ import annotations

from agentv_ci.contracts.agent_targets import CopilotCliTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.execute.agents.events import AgentFailed, Turns, kind_of_reported, last_event, read_events, result_event
from agentv_ci.execute.agents.program import Agent, AgentProvider, usual_arguments
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.json_access import count_at, text_at, value_at

KNOWN = frozenset({"assistant.message", "user.message", "session.error", "result", "assistant.turn_start"})


def open_provider(target: CopilotCliTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target; all tools are allowed, as permission cannot be given in a run."""
    arguments = usual_arguments(target, "--output-format", "json", "--no-color", "--allow-all-tools")
    return AgentProvider(target, Agent("copilot", arguments, read_output, {"CI": "1"}), services)


def read_output(finished: ProcessResult) -> Response | None:
    """Read the events; the answer is the assistant's last message with text."""
    events = read_events(finished.stdout, KNOWN)
    turns = Turns()
    for event in events:
        _read_event(turns, event)
    failure = last_event(events, "session.error")
    if failure is not None and value_at(last_event(events, "result"), "exitCode") != 0:
        raise AgentFailed(
            text_at(failure, "data", "message"), kind_of_reported(count_at(failure, "data", "statusCode"))
        )
    status = value_at(result_event(events), "exitCode")
    if status != 0:
        raise AgentFailed(f"the session ended with exit code {status}")
    model = next((model for event in events if (model := text_at(event, "data", "model"))), None)
    return turns.response(turns.last, model=model)


def _read_event(turns: Turns, event: JsonObject) -> None:
    call_id = text_at(event, "data", "toolCallId")
    match text_at(event, "type"):
        case "assistant.message" if text := text_at(event, "data", "content"):
            turns.say(text)
        case "tool.execution_start":
            turns.call(text_at(event, "data", "toolName"), value_at(event, "data", "arguments"), call_id=call_id)
        case "tool.execution_complete":
            returned = value_at(event, "data", "result", "content")
            turns.output(call_id, returned or value_at(event, "data", "error", "message"))
        case _:
            pass
