"""`provider: claude-code`: Anthropic's Claude Code, `claude -p --output-format stream-json`.

Its events: https://code.claude.com/docs/en/headless. An API error has the subtype `success`, so `is_error` decides.
"""

from __future__ import annotations

from agentv_ci.contracts.agent_targets import ClaudeCodeTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject
from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.contracts.results import Usage
from agentv_ci.execute.agents.events import AgentFailed, Turns, kind_of_reported, read_events, result_event
from agentv_ci.execute.agents.program import Agent, AgentProvider, usual_arguments
from agentv_ci.execute.answers import anthropic_usage
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.json_access import amount_at, count_at, objects_at, text_at, value_at

KNOWN = frozenset({"system", "assistant", "user", "result"})


ENVIRONMENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}

BY_MODEL = {
    "input_tokens": "inputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
    "output_tokens": "outputTokens",
}
"""Anthropic's name of a count → that of Claude Code by model."""


def open_provider(target: ClaudeCodeTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target."""
    arguments = usual_arguments(target, "-p", "--output-format", "stream-json", "--verbose")
    return AgentProvider(target, Agent("claude", arguments, read_output, ENVIRONMENT), services)


def read_output(finished: ProcessResult) -> Response | None:
    """Read the events; the last one is the result."""
    turns = Turns()
    events = read_events(finished.stdout, KNOWN)
    for event in events:
        for block in objects_at(event, "message", "content"):
            _read_block(turns, block, speaks=text_at(event, "type") == "assistant")
    result = result_event(events)
    model = next((model for event in events if (model := text_at(event, "message", "model"))), None)
    usage, cost_usd = _usage(result), amount_at(result, "total_cost_usd")
    if value_at(result, "is_error"):
        raise AgentFailed(_reason(result), _kind(result), model=model, usage=usage, cost_usd=cost_usd)
    return turns.response(
        text_at(result, "result"),
        model=model,
        usage=usage,
        finish_reason=text_at(result, "stop_reason"),
        cost_usd=cost_usd,
    )


def _usage(result: JsonObject) -> Usage | None:
    """Return the tokens of the result; where it counts none, the sum of those by model."""
    usage = anthropic_usage(value_at(result, "usage"))
    by_model = value_at(result, "modelUsage")
    if (usage is None or not usage.input_tokens) and isinstance(by_model, dict) and by_model:
        usage = None
        for model in by_model.values():
            of_model = anthropic_usage({name: count_at(model, theirs) for name, theirs in BY_MODEL.items()})
            usage = of_model if usage is None else usage.plus(of_model)
    return usage


def _read_block(turns: Turns, block: JsonObject, *, speaks: bool) -> None:
    match text_at(block, "type"):
        case "tool_result":
            turns.output(text_at(block, "tool_use_id"), value_at(block, "content"))
        case "text" if speaks and (text := text_at(block, "text")):
            turns.say(text)
        case "tool_use" if speaks:
            turns.call(text_at(block, "name"), value_at(block, "input"), call_id=text_at(block, "id"))
        case _:
            pass


def _reason(result: JsonObject) -> str:
    listed = value_at(result, "errors")
    errors = "; ".join(map(str, listed)) if isinstance(listed, list) else ""
    return text_at(result, "result") or errors or text_at(result, "subtype") or "no reason given"


def _kind(result: JsonObject) -> ErrorKind:
    if value_at(result, "terminal_reason") == "max_turns" or value_at(result, "stop_reason") == "refusal":
        return "request"
    return kind_of_reported(count_at(result, "api_error_status"))
