"""Runners of a benchmark: a function of a program, a target by its name, or one by its provider."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError

from agentv_ci.base.json_access import read_json
from agentv_ci.base.model_errors import refusals
from agentv_ci.base.text import did_you_mean, listed, well_formed_text
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue, is_plugin, members_of
from agentv_ci.contracts.benchmark import RunnerSpec
from agentv_ci.contracts.evals import ROLES
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.plan_parts import PlanMessage, TextPart
from agentv_ci.contracts.targets import Target, TargetsDocument
from agentv_ci.errors import UsageError

T = TypeVar("T")

Message = JsonObject
"""`{"role": ..., "content": ...}`"""
Answer = str | JsonObject
AnswerFunction = Callable[[list[Message], JsonObject], Answer | Awaitable[Answer]]
"""Given a conversation and a configuration, returns an answer."""
AskRunner = Callable[
    [str | Sequence[Message], int | None], Awaitable[tuple[Answer, Response | None]]
]
"""Asks a runner, with a text or a conversation and a seed; returns its answer, and the response of
a target.
"""


def target_of(spec: RunnerSpec, known: Sequence[Target]) -> Target:
    """Return the target named by a runner, with the runner's configuration.

    Else one of the provider it names.
    """
    named = {target.name: target for target in known}
    if spec.key in named and not spec.config:
        return named[spec.key]
    if spec.key in named:
        authored = named[spec.key].model_dump(mode="json", exclude_none=True)
        return _configured(
            {**authored, **spec.config, "name": f"{spec.key} (configured)"}, spec.key, named
        )
    kinds = members_of(Target, "provider")
    if spec.key not in kinds and not is_plugin(spec.key):
        choices = [*named, *kinds]
        close = did_you_mean(spec.key, choices)
        known_names = f"available targets and providers: {listed(choices)}"
        raise UsageError(f"unknown runner '{spec.key}'{close}; {known_names}")
    return _configured({"name": spec.key, "provider": spec.key, **spec.config}, spec.key, named)


def _configured(data: JsonObject, key: str, known: Collection[str]) -> Target:
    try:
        (target,) = TargetsDocument.model_validate({"targets": [data]}).targets
    except ValidationError as error:
        first = refusals(error)[0]
        field = ".".join(map(str, first.place[2:])) or "provider"
        raise UsageError(f"runner '{key}': {field}: {first.message}") from error
    judge = target.judge_target
    if judge is not None and judge not in known:
        raise UsageError(
            f"runner '{key}': unknown judge target '{judge}'{did_you_mean(judge, known)}"
        )
    return target


async def call(function: AnswerFunction, messages: list[Message], config: JsonObject) -> Answer:
    """Return the answer of a function.

    Raises ProviderError for its exceptions and for invalid answers.
    """
    try:
        # The function may block, and may return an awaitable.
        own_messages = list(map(dict, messages))
        answer = await in_a_thread(function, own_messages, private_copy(config))
        if inspect.isawaitable(answer):
            answer = await answer
    except ProviderError:
        raise
    except (Exception, SystemExit) as error:
        kind: ErrorKind = "timeout" if isinstance(error, TimeoutError) else "process"
        raise ProviderError(kind, f"the runner raised {error_text(error)}") from error
    if isinstance(answer, str):
        return well_formed_text(answer)
    if not isinstance(answer, Mapping):
        raise ProviderError(
            "malformed", f"the runner must return a text or a mapping, not {type(answer).__name__}"
        )
    try:
        return json_copy(answer)
    except ValueError as error:
        raise ProviderError(
            "malformed", f"the runner returned a value that is not JSON: {error}"
        ) from error


class FunctionEnded(Exception):
    """A function raised an exception that a thread cannot pass on."""


async def in_a_thread(function: Callable[..., T], *arguments: object) -> T:
    """Call a function that may block in a thread; returns and raises what it does."""

    def guarded() -> T:
        try:
            return function(*arguments)
        except (StopIteration, SystemExit, asyncio.CancelledError) as error:
            raise FunctionEnded(error_text(error)) from error

    return await asyncio.to_thread(guarded)


def error_text(error: BaseException) -> str:
    """Return an exception as a sentence, even if its `__str__` fails."""
    name = type(error).__name__
    if isinstance(error, FunctionEnded):
        return str(error)
    try:
        return well_formed_text(f"{name}: {error}")
    except Exception:  # noqa: BLE001  # `__str__` may raise anything
        return name


def json_copy(value: Mapping[str, object]) -> JsonObject:
    """Return a copy of a mapping as JSON, NaN as null.

    Raises ValueError for values that are not JSON.
    """
    try:
        copied = read_json(json.dumps(dict(value), default=_unmapped))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    assert isinstance(copied, dict), "a mapping becomes an object"
    return copied


def _unmapped(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def private_copy(value: T) -> T:
    """Return a deep copy of a value, or the value itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  # values may be of any type, such as an open connection
        return value


def text_of(answer: Answer) -> str:
    """Return an answer as a text."""
    if isinstance(answer, str):
        return answer
    return json.dumps(answer, ensure_ascii=False)


def messages_of(question: str | Sequence[Message]) -> list[PlanMessage]:
    """Return a text or a conversation as messages of a plan.

    Raises ValueError for an invalid one.
    """

    def made(role: JsonValue, content: JsonValue) -> PlanMessage:
        if role not in ROLES or not isinstance(content, str):
            raise ValueError("a message must be {role: system|user|assistant|tool, content: text}")
        return PlanMessage.model_validate({"role": role, "content": (TextPart(text=content),)})

    if isinstance(question, str):
        return [made("user", question)]
    return [made(message.get("role"), message.get("content")) for message in question]
