"""`provider: claude-code`: Anthropic's Claude Code, `claude -p --output-format stream-json`.

Its events: https://code.claude.com/docs/en/headless. The words of a result lie: an API error comes with the subtype
`success`, so `is_error` decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentv_ci.contracts.agent_targets import ClaudeCodeTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind
from agentv_ci.execute.agents.events import Heard, Turns, kind_of_reported, read_events
from agentv_ci.execute.agents.program import AgentProvider
from agentv_ci.execute.answers import anthropic_usage
from agentv_ci.execute.services import ProviderServices
from agentv_ci.json_access import amount_at, count_at, objects_at, text_at, value_at
from agentv_ci.process import Finished

KNOWN = frozenset({"system", "assistant", "user", "result"})


def open_provider(target: ClaudeCodeTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target."""
    return AgentProvider(target, ClaudeCode(target), services)


class ClaudeCode:
    """See Agent."""

    kind = "claude-code"
    program = "claude"
    environment: Mapping[str, str] = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }

    def __init__(self, target: ClaudeCodeTarget) -> None:
        self._target = target

    def arguments(self, workspace: Path) -> Sequence[str]:
        """Return the arguments; it may read the workspace also when it works elsewhere."""
        return [
            *("-p", "--output-format", "stream-json", "--verbose"),
            *(("--model", self._target.model) if self._target.model else ()),
            *(("--add-dir", str(workspace)) if self._target.cwd else ()),
            *(self._target.args or ()),
        ]

    def hear(self, finished: Finished) -> Heard:
        """Return what the events say; the last one is the result."""
        turns = Turns()
        outputs: dict[str | None, JsonValue] = {}
        result: JsonObject | None = None
        events = read_events(finished.stdout, KNOWN)
        for event in events:
            for block in objects_at(event, "message", "content"):
                if value_at(block, "type") == "tool_result":
                    outputs[text_at(block, "tool_use_id")] = value_at(block, "content")
        for event in events:
            match text_at(event, "type"):
                case "assistant":
                    _hear_blocks(turns, objects_at(event, "message", "content"), outputs)
                case "result":
                    result = event
                case _:
                    pass
        model = next((found for event in events if (found := text_at(event, "message", "model"))), None)
        if result is None:
            return Heard(turns.messages, error="its events end before the result")
        if value_at(result, "is_error"):
            return Heard(turns.messages, error=_reason(result), kind=_kind(result))
        return Heard(
            turns.messages,
            answer=text_at(result, "result"),
            model=model,
            usage=anthropic_usage(value_at(result, "usage")),
            finish_reason=text_at(result, "stop_reason"),
            cost_usd=amount_at(result, "total_cost_usd"),
        )


def _hear_blocks(turns: Turns, blocks: Sequence[JsonObject], outputs: Mapping[str | None, JsonValue]) -> None:
    for block in blocks:
        match text_at(block, "type"):
            case "text" if text := text_at(block, "text"):
                turns.say(text)
            case "tool_use":
                turns.call(text_at(block, "name") or "", value_at(block, "input"), outputs.get(text_at(block, "id")))
            case _:
                pass


def _reason(result: JsonObject) -> str:
    listed = value_at(result, "errors")
    errors = "; ".join(map(str, listed)) if isinstance(listed, list) else ""
    return text_at(result, "result") or errors or text_at(result, "subtype") or "without a reason"


def _kind(result: JsonObject) -> ErrorKind:
    if value_at(result, "terminal_reason") == "max_turns" or value_at(result, "stop_reason") == "refusal":
        return "request"
    return kind_of_reported(count_at(result, "api_error_status"))
