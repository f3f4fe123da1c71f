"""`provider: claude-code`: Anthropic's Claude Code, `claude -p --output-format stream-json`.

Its events: https://code.claude.com/docs/en/headless. An API error has the subtype `success` and
`is_error`; a run that was stopped has another subtype, not always with `is_error`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from agentv_ci.base.json_access import (
    amount_at,
    count_at,
    json_or_none,
    objects_at,
    text_at,
    value_at,
)
from agentv_ci.base.mappings import present
from agentv_ci.contracts.agent_targets import ClaudeCodeTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.contracts.results import Usage
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
from agentv_ci.execute.answers import anthropic_usage, of_type, summed
from agentv_ci.execute.provider_services import ProviderServices

KNOWN = frozenset({"system", "assistant", "user", "result"})

STOPPED = frozenset(
    {
        *("max_turns", "prompt_too_long", "blocking_limit", "rapid_refill_breaker"),
        *("aborted_streaming", "aborted_tools", "model_error", "image_error"),
    }
)
"""Values of `terminal_reason` of a run that did not end by itself."""

AGENT_TASK = "local_agent"
ENDED = frozenset({"completed", "failed", "killed", "stopped"})

NO_REASON = frozenset({"success", "completed"})
"""What a result is called that ended by itself."""

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code itself writes."""

DISAGREES = "the result and the last message of the events contradict each other"

ENVIRONMENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}

BY_MODEL = {
    "input_tokens": "inputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
    "output_tokens": "outputTokens",
}
"""Anthropic's name of a count → that of Claude Code by model."""


class ClaudeProgress(Progress):
    """Waits for agents in the background, too: their ends are turns of their own."""

    def __init__(self) -> None:
        super().__init__(final={"result"}, working={"assistant", "user"})
        self._running: set[str | None] = set()

    def is_complete_after(self, event: JsonObject) -> bool:
        """See Progress; commands in the background, such as servers, are not waited for."""
        task = text_at(event, "task_id")
        match text_at(event, "subtype"):
            case "init":
                # A turn begins; its first message may take long.
                self._is_complete = False
            case "task_started" if (
                text_at(event, "subagent_type") or text_at(event, "task_type") == AGENT_TASK
            ):
                self._running.add(task)
            case "task_notification":
                self._running.discard(task)
            case "task_updated" if text_at(event, "patch", "status") in ENDED:
                self._running.discard(task)
            case _:
                pass
        return super().is_complete_after(event) and not self._running


def open_provider(target: ClaudeCodeTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target."""
    arguments = usual_arguments(target, "-p", "--output-format", "stream-json", "--verbose")
    return AgentProvider(
        target,
        Agent("claude", arguments, read_output, spent, KNOWN, ClaudeProgress, ENVIRONMENT),
        services,
    )


def read_output(finished: ProcessResult) -> Response | None:
    """Read the events.

    The last one is the result, which must agree with the agent's last message.
    """
    turns = Turns()
    events = read_events(finished.stdout, KNOWN)
    for event in events:
        for block in objects_at(event, "message", "content"):
            _read_block(turns, block, event)
    result = result_event(events)
    if value_at(result, "is_error") or _was_stopped(result):
        raise AgentFailed(_reason(result), _kind(result))
    return turns.response(
        _answer(result, turns), spent(events), finish_reason=text_at(result, "stop_reason")
    )


def spent(events: Sequence[JsonObject]) -> Spent:
    """Return what was used."""
    result = last_event(events, "result")
    model = first_text(events, "message", "model")
    return Spent(model=model, usage=_usage(result, events), cost_usd=_cost_usd(result))


def _read_block(turns: Turns, block: JsonObject, event: JsonObject) -> None:
    speaks = text_at(event, "type") == "assistant"
    # What a subagent says is the output of a tool.
    is_answer = (
        value_at(event, "parent_tool_use_id") is None
        and text_at(event, "message", "model") != SYNTHETIC
    )
    match text_at(block, "type"):
        case "tool_result":
            turns.output(text_at(block, "tool_use_id"), value_at(block, "content"))
        case "text" if speaks and is_answer and (text := text_at(block, "text")):
            turns.say(text, text_at(event, "message", "id"))
        case "tool_use" | "server_tool_use" if speaks:
            turns.call(
                text_at(block, "name"), value_at(block, "input"), call_id=text_at(block, "id")
            )
        case _:
            pass


def _answer(result: JsonObject, turns: Turns) -> str | None:
    """Return the structured output of a result, or its text; None without an answer.

    The text may be empty or only a part of the last message, which counts then. Raises AgentFailed
    when they contradict each other.
    """
    text, said = text_at(result, "result"), turns.last
    structured = value_at(result, "structured_output")
    if structured is not None:
        written = json_or_none(text or "")
        if isinstance(written, (dict, list)) and written != structured:
            raise AgentFailed(DISAGREES, "malformed")
        return json.dumps(structured, ensure_ascii=False)
    if text is None or said is None:
        is_silent = text == "" and turns.has_calls
        return text or said or ("" if is_silent else None)
    one, other = "".join(text.split()), "".join(said.split())
    if other in one:
        return text
    if one in other:
        return said
    raise AgentFailed(DISAGREES, "malformed")


def _usage(result: JsonObject | None, events: Sequence[JsonObject]) -> Usage | None:
    """Return the larger of the tokens of the result, those by model, and those of all messages.

    The first leave out subagents; the last, most of what was written. They are all there is without
    a result.
    """
    reported = anthropic_usage(value_at(result, "usage"))
    of_models = _sum(
        anthropic_usage({name: count_at(model, theirs) for name, theirs in BY_MODEL.items()})
        for model in _by_model(result)
    )
    if result is not None and reported is None and of_models is None:
        return None
    # A message has an event for each of its blocks; the last one counts the most.
    of_messages = {
        text_at(event, "message", "id"): anthropic_usage(value_at(event, "message", "usage"))
        for event in of_type(events, "assistant")
    }
    known = list(present((reported, of_models, _sum(of_messages.values()))))
    if not known:
        return None
    return summed(
        _largest(usage.input_tokens for usage in known),
        _largest(usage.output_tokens for usage in known),
        _largest(usage.cached_tokens for usage in known),
    )


def _by_model(result: JsonObject | None) -> list[JsonValue]:
    by_model = value_at(result, "modelUsage")
    if isinstance(by_model, dict):
        return list(by_model.values())
    return []


def _sum(usages: Iterable[Usage | None]) -> Usage | None:
    total: Usage | None = None
    for usage in usages:
        total = usage.plus(total) if usage is not None else total
    return total


def _largest(counts: Iterable[int | None]) -> int | None:
    return max(present(counts), default=None)


def _cost_usd(result: JsonObject | None) -> float | None:
    """Return the larger of the cost of the result and the sum of the costs by model."""
    costs = [
        cost for model in _by_model(result) if (cost := amount_at(model, "costUSD")) is not None
    ]
    reported = amount_at(result, "total_cost_usd")
    if reported is None and not costs:
        return None
    return max(reported or 0.0, sum(costs))


def _was_stopped(result: JsonObject) -> bool:
    """Whether a run did not end by itself: it reached a limit, or was aborted."""
    is_failed = (text_at(result, "subtype") or "").startswith("error")
    return is_failed or text_at(result, "terminal_reason") in STOPPED


def _reason(result: JsonObject) -> str:
    listed = value_at(result, "errors")
    errors = "; ".join(map(str, listed)) if isinstance(listed, list) else ""
    # Without `is_error`, it is what was written until the run was stopped.
    said = text_at(result, "result") if value_at(result, "is_error") else None
    names = (text_at(result, "subtype"), text_at(result, "terminal_reason"))
    return (
        errors
        or said
        or next((name for name in names if name and name not in NO_REASON), "no reason given")
    )


def _kind(result: JsonObject) -> ErrorKind:
    if value_at(result, "stop_reason") == "refusal":
        return "request"
    return kind_of_reported(count_at(result, "api_error_status"))
