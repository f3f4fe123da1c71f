"""What answers in a benchmark: a function of a program, a target by its name, or one by its kind."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar, get_args

from pydantic import ValidationError

from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue, members_of
from agentv_ci.contracts.benchmark import RunnerSpec
from agentv_ci.contracts.evals import Role
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.plan import PlanMessage, TextPart
from agentv_ci.contracts.targets import Target, TargetsDocument
from agentv_ci.errors import UsageError
from agentv_ci.json_access import read_json
from agentv_ci.model_errors import refusals
from agentv_ci.text import did_you_mean, listed, well_formed_text

T = TypeVar("T")

Message = JsonObject
"""`{"role": ..., "content": ...}`"""
Answer = str | JsonObject
AnswerFunction = Callable[[list[Message], JsonObject], Answer | Awaitable[Answer]]
"""Given a conversation and a configuration, returns what the runner answers."""
AskRunner = Callable[[str | Sequence[Message], int | None], Awaitable[tuple[Answer, Response | None]]]
"""Asks a runner, with a text or a conversation and a seed; returns its answer, and the response of a target."""


def target_of(spec: RunnerSpec, known: Sequence[Target]) -> Target:
    """Return the target that a runner names, with its configuration over it; else one of the kind that it names."""
    named = {target.name: target for target in known}
    if spec.key in named and not spec.config:
        return named[spec.key]
    if spec.key in named:
        authored = named[spec.key].model_dump(mode="json", exclude_none=True)
        return _configured({**authored, **spec.config, "name": f"{spec.key} (configured)"}, spec.key, named)
    kinds = members_of(Target, "provider")
    if spec.key not in kinds:
        choices = [*named, *kinds]
        close = did_you_mean(spec.key, choices)
        raise UsageError(f"unknown runner '{spec.key}'{close}; there are targets and kinds {listed(choices)}")
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
        raise UsageError(f"runner '{key}': unknown judge target '{judge}'{did_you_mean(judge, known)}")
    return target


async def call(function: AnswerFunction, messages: list[Message], config: JsonObject) -> Answer:
    """Return the answer of a function; raises ProviderError for what it raises, and for what is no answer."""
    try:
        # It may block; what it returns may be something to wait for.
        answer = await in_a_thread(function, [dict(each) for each in messages], private_copy(config))
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
        raise ProviderError("malformed", f"the runner returned {type(answer).__name__}, and not a text or a mapping")
    try:
        return json_copy(answer)
    except ValueError as error:
        raise ProviderError("malformed", f"the runner returned what is no JSON: {error}") from error


class FunctionEnded(Exception):
    """A function ended with what a thread cannot hand on."""


async def in_a_thread(function: Callable[..., T], *arguments: object) -> T:
    """Return what a function that may block returns, and raise what it raises."""

    def guarded() -> T:
        try:
            return function(*arguments)
        except (StopIteration, SystemExit, asyncio.CancelledError) as error:
            raise FunctionEnded(error_text(error)) from error

    return await asyncio.to_thread(guarded)


def error_text(error: BaseException) -> str:
    """Return an exception as a sentence, also one that cannot say what it is."""
    name = type(error).__name__
    if isinstance(error, FunctionEnded):
        return str(error)
    try:
        return well_formed_text(f"{name}: {error}")
    except Exception:  # noqa: BLE001  # its own __str__ may raise
        return name


def json_copy(value: Mapping[str, object]) -> JsonObject:
    """Return a copy of a mapping as JSON has it, NaN as null; raises ValueError for what is none."""
    try:
        copied = read_json(json.dumps(dict(value), default=_unmapped))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    assert isinstance(copied, dict), "a mapping stays one"
    return copied


def _unmapped(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")


def private_copy(value: T) -> T:
    """Return a deep copy of a value, so that changes do not reach the original; what cannot be copied is shared."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  # a parameter may be anything, such as an open connection
        return value


def text_of(answer: Answer) -> str:
    """Return an answer as a text."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def messages_of(question: str | Sequence[Message]) -> list[PlanMessage]:
    """Return a text or a conversation as turns; raises ValueError for what is neither."""

    def made(role: JsonValue, content: JsonValue) -> PlanMessage:
        if role not in get_args(Role) or not isinstance(content, str):
            raise ValueError("a message is {role: system|user|assistant|tool, content: text}")
        return PlanMessage.model_validate({"role": role, "content": (TextPart(text=content),)})

    if isinstance(question, str):
        return [made("user", question)]
    return [made(each.get("role"), each.get("content")) for each in question]
