"""Who answers in a benchmark: a function of a program, a target by its name, or one by its kind."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind, ProviderError, Response
from agentv_ci.errors import UsageError
from agentv_ci.suggestions import did_you_mean, listed

if TYPE_CHECKING:
    from agentv_ci.contracts.plan import PlanMessage
    from agentv_ci.contracts.targets import Target

Message = JsonObject
"""`{"role": ..., "content": ...}`"""
Answer = str | JsonObject
AnswerFunction = Callable[[list[Message], JsonObject], Answer | Awaitable[Answer]]
"""Given a conversation and a configuration, returns what the runner says to it."""
Ask = Callable[[str | Sequence[Message], int | None], Awaitable[tuple[Answer, Response]]]
"""Asks a runner, with a text or a conversation and a seed; returns what it said, and what that took."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers: a function, or a target by its name or its kind."""

    key: str
    config: JsonObject
    function: AnswerFunction | None


def target_of(answering: Answering, known: Sequence[Target]) -> Target:
    """Return the target that a runner names, with its configuration over it; else one of the kind that it names."""
    named = {target.name: target for target in known}
    if answering.key in named and not answering.config:
        return named[answering.key]
    if answering.key in named:
        authored = named[answering.key].model_dump(mode="json", exclude_none=True)
        return _made({**authored, **answering.config, "name": f"{answering.key} (configured)"}, answering.key)
    if answering.key not in (kinds := _kinds()):
        choices = [*named, *kinds]
        close = did_you_mean(answering.key, choices)
        raise UsageError(f"unknown runner '{answering.key}'{close}; there are targets and kinds {listed(choices)}")
    return _made({"name": answering.key, "provider": answering.key, **answering.config}, answering.key)


def _kinds() -> list[str]:
    from typing import get_args

    from agentv_ci.contracts.targets import Target

    members = get_args(get_args(Target.__value__)[0])
    return [str(name) for member in members for name in get_args(member.model_fields["provider"].annotation)]


def _made(data: JsonObject, key: str) -> Target:
    from pydantic import ValidationError

    from agentv_ci.contracts.targets import TargetsDocument

    try:
        (target,) = TargetsDocument.model_validate({"targets": [data]}).targets
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(each) for each in first["loc"][3:]) or "provider"
        raise UsageError(f"runner '{key}': {field}: {first['msg']}") from error
    return target


async def call(function: AnswerFunction, messages: list[Message], config: JsonObject) -> Answer:
    """Return what a function says; raises ProviderError for what it raises, and for what is no answer."""
    try:
        # It may block; what it returns may be something to wait for.
        answer = await asyncio.to_thread(function, messages, dict(config))
        if inspect.isawaitable(answer):
            answer = await answer
    except ProviderError:
        raise
    except Exception as error:
        kind: ErrorKind = "timeout" if isinstance(error, TimeoutError) else "process"
        raise ProviderError(kind, f"the runner raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, (str, Mapping)):
        raise ProviderError("malformed", f"the runner returned {type(answer).__name__}, and not a text or a mapping")
    return answer


def text_of(answer: Answer) -> str:
    """Return an answer as a text; raises ProviderError for what is no JSON."""
    if isinstance(answer, str):
        return answer
    try:
        return json.dumps(answer, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ProviderError("malformed", f"the runner returned what is no JSON: {error}") from error


def messages_of(said: str | Sequence[Message]) -> list[PlanMessage]:
    """Return a text or a conversation as turns; raises ValueError for what is neither."""
    from typing import get_args

    from agentv_ci.contracts.evals import Role
    from agentv_ci.contracts.plan import PlanMessage, TextPart

    def made(role: JsonValue, content: JsonValue) -> PlanMessage:
        if role not in get_args(Role) or not isinstance(content, str):
            raise ValueError("a message is {role: system|user|assistant|tool, content: text}")
        return PlanMessage.model_validate({"role": role, "content": (TextPart(text=content),)})

    if isinstance(said, str):
        return [made("user", said)]
    return [made(each.get("role"), each.get("content")) for each in said]
