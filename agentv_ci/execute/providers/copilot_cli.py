"""`provider: copilot-cli`: GitHub's Copilot CLI, `copilot --output-format json`.

https://docs.github.com/copilot/how-tos/copilot-cli. It does not report tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from agentv_ci.base.json_access import count_at, text_at, value_at
from agentv_ci.contracts.agent_targets import CopilotCliTarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.execute.agents.events import (
    AgentFailed,
    Progress,
    Spent,
    Turns,
    first_text,
    kind_of_reported,
    last_event,
    read_events,
    result_event,
)
from agentv_ci.execute.agents.program import Agent, AgentProvider, usual_arguments
from agentv_ci.execute.provider_services import ProviderServices

KNOWN = frozenset(
    {
        *(
            "user.message",
            "assistant.turn_start",
            "assistant.message",
            "session.error",
            "abort",
            "result",
        ),
        *("tool.execution_start", "tool.execution_complete"),
    }
)
PROGRESS = partial(
    Progress, final={"result"}, working={"assistant.turn_start", "assistant.message"}
)


def open_provider(target: CopilotCliTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target.

    All tools are allowed, as permission cannot be given in a run.
    """
    arguments = usual_arguments(
        target, "--output-format", "json", "--no-color", "--allow-all-tools"
    )
    return AgentProvider(
        target,
        Agent("copilot", arguments, read_output, spent, KNOWN, PROGRESS, {"CI": "1"}),
        services,
    )


def read_output(finished: ProcessResult) -> Response | None:
    """Read the events; the answer is the assistant's last message with text."""
    events = read_events(finished.stdout, KNOWN)
    turns = Turns()
    for event in events:
        _read_event(turns, event)
    status = value_at(last_event(events, "result"), "exitCode")
    failure = last_event(events, "session.error")
    if failure is not None and status != 0:
        raise AgentFailed(
            text_at(failure, "data", "message"),
            kind_of_reported(count_at(failure, "data", "statusCode")),
        )
    if (abort := last_event(events, "abort")) is not None:
        raise AgentFailed(
            f"the session was aborted: {text_at(abort, 'data', 'reason') or 'no reason given'}"
        )
    if value_at(result_event(events), "exitCode") != 0:
        raise AgentFailed(f"the session ended with exit code {status}")
    return turns.response(turns.last, spent(events))


def spent(events: Sequence[JsonObject]) -> Spent:
    """Return the model, which is all that Copilot reports."""
    return Spent(model=first_text(events, "data", "model"))


def _read_event(turns: Turns, event: JsonObject) -> None:
    call_id = text_at(event, "data", "toolCallId")
    match text_at(event, "type"):
        # What a subagent says is the output of a tool.
        case "assistant.message" if (
            text := text_at(event, "data", "content")
        ) and not _is_of_subagent(event):
            turns.say(text)
        case "tool.execution_start":
            turns.call(
                text_at(event, "data", "toolName"),
                value_at(event, "data", "arguments"),
                call_id=call_id,
            )
        case "tool.execution_complete":
            returned = value_at(event, "data", "result", "content")
            turns.output(call_id, returned or value_at(event, "data", "error", "message"))
        case _:
            pass


def _is_of_subagent(event: JsonObject) -> bool:
    return (
        text_at(event, "agentId") is not None
        or text_at(event, "data", "parentToolCallId") is not None
    )
