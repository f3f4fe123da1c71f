"""A question as model APIs take it: instructions, turns, and the settings of its target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ChatMessage, Request

DEFAULT_SYSTEM_PROMPT = "You are a careful assistant. Follow the instructions and make nothing up."

EFFORTS = ((0, "none"), (2_048, "low"), (8_192, "medium"), (24_576, "high"))
"""Most tokens of thought → the level of effort that is nearest; above the last one it is `xhigh`."""


def instructions_and_turns(request: Request) -> tuple[str, list[ChatMessage]]:
    """Return the system message, or a default one, and the other turns."""
    system = [each.content for each in request.chat if each.role == "system" and each.content.strip()]
    turns = [each for each in request.chat if each.role != "system"]
    return "\n\n".join(system) or DEFAULT_SYSTEM_PROMPT, turns


def alternating(turns: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return turns for APIs that want user and assistant in turn, the user first and last, and no empty turn.

    Anthropic's newer models refuse a chat that ends with the assistant, which they would have to complete.
    """
    found: list[ChatMessage] = []
    for turn in turns:
        if not turn.content.strip():
            continue
        if found and found[-1].role == turn.role:
            found[-1] = ChatMessage(turn.role, f"{found[-1].content}\n\n{turn.content}")
        else:
            found.append(turn)
    begins = not found or found[0].role != "user"
    ends = bool(found) and found[-1].role != "user"
    first = [ChatMessage("user", "Begin.")] if begins else []
    last = [ChatMessage("user", "Continue.")] if ends else []
    return [*first, *found, *last]


def temperature_of(target: HttpTarget, request: Request) -> JsonValue:
    """Return the temperature to ask with; None: the model's own."""
    return target.temperature if request.temperature is None else request.temperature


def limit_of(target: HttpTarget, request: Request) -> int | None:
    """Return the most tokens of an answer, thoughts not included; None: the model's own limit."""
    limit = request.max_output_tokens or target.max_output_tokens
    return None if limit is None else int(limit)


def whole_limit_of(target: HttpTarget, request: Request) -> int | None:
    """Return the most tokens a model may write, thoughts included, as APIs count; None: the model's own limit."""
    limit = limit_of(target, request)
    return None if limit is None else limit + (budget_of(target) or 0)


def budget_of(target: HttpTarget) -> int | None:
    """Return the tokens a model may think; None: as it likes."""
    return None if target.thinking_budget is None else int(target.thinking_budget)


def effort(budget: int) -> str:
    """Return the level of effort nearest to a budget, for models that know levels only."""
    return next((level for most, level in EFFORTS if budget <= most), "xhigh")


def with_extra(body: JsonObject, extra: JsonObject | None) -> JsonObject:
    """Return a body with the target's further keys; inside objects they are merged key by key."""
    merged = dict(body)
    for key, value in (extra or {}).items():
        present = merged.get(key)
        merged[key] = with_extra(present, value) if isinstance(present, dict) and isinstance(value, dict) else value
    return merged


def sent(body: JsonObject, keys: Sequence[str]) -> JsonObject:
    """Return the part of a body that is the question, for the record."""
    return {key: body[key] for key in keys if key in body}
