"""`type: acme/politeness`: an evaluator of an installed package."""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

from agentv_ci import plugins
from agentv_ci.base.installed_plugins import UnusablePlugin, error_line, find_plugin
from agentv_ci.base.text import shortened, well_formed_text
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evaluators import PluginEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_parts import PlanMessage
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.evaluate.submission import EvaluatorServices, Submission


async def plugin(settings: PluginEvaluator, submission: Submission, _: EvaluatorServices) -> Score:
    """Call the plugin; an exception, a timeout or anything but a score is an error, not a zero."""
    found = find_plugin("evaluator", settings.type, settings.version)
    if isinstance(found, UnusablePlugin):
        return Score(error=found.message)
    score = found.implementation.score
    timeout_s = submission.case.timeout_seconds
    limit = asyncio.timeout(timeout_s)
    try:
        call = partial(
            score, _answered(submission), found.settings.model_validate(settings.settings)
        )
        async with limit:
            returned = call() if inspect.iscoroutinefunction(score) else await _in_a_thread(call)
            if inspect.isawaitable(returned):
                returned = await returned
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything
        is_late = isinstance(error, TimeoutError) and limit.expired()
        return Score(error=f"no score within {timeout_s:g} s" if is_late else error_line(error))
    return _checked(returned)


def _answered(submission: Submission) -> plugins.AnsweredCase:
    case, response = submission.case, submission.response
    message = partial(_message, submission)
    return plugins.AnsweredCase(
        case_id=case.id,
        candidate_answer=response.answer,
        question=submission.request.prompt,
        expected_outcome=case.expected_outcome,
        reference_answer=case.reference_answer,
        input_messages=tuple(map(message, case.input_messages)),
        expected_messages=tuple(map(message, case.expected_messages)),
        output_messages=response.messages,
        has_trace=response.has_trace,
        usage=response.usage,
        cost_usd=response.cost_usd,
        duration_ms=response.duration_ms,
        seed=submission.request.seed,
        metadata=copy.deepcopy(case.metadata),
    )


def _message(submission: Submission, message: PlanMessage) -> OutputMessage:
    calls = tuple(
        ToolCall(tool=call.tool, input=call.input, output=call.output)
        for call in message.tool_calls
    )
    content: JsonValue = copy.deepcopy(message.value)
    if content is None:
        content = message.text(submission.text_of)
    return OutputMessage(role=message.role, content=content, tool_calls=calls)


async def _in_a_thread(call: Callable[[], Any]) -> Any:  # noqa: ANN401  # it is the plugin's
    """Call a function in a thread that the end of the program does not wait for."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()

    def settle(returned: object, error: Exception | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(returned)

    def run() -> None:
        returned, failed = None, None
        try:
            returned = call()
        except BaseException as error:  # noqa: BLE001  # a plugin may raise anything
            # A future does not take StopIteration, and SystemExit would end the run.
            failed = None
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                failed = error
            failed = failed or RuntimeError(error_line(error))
        with suppress(RuntimeError):  # the run has ended
            loop.call_soon_threadsafe(settle, returned, failed)

    Thread(target=run, daemon=True).start()
    return await ended


def _checked(returned: object) -> Score:
    if not isinstance(returned, plugins.Score):
        kind = type(returned).__name__
        return Score(error=f"the plugin returned {kind}, not agentv_ci.plugins.Score")
    score: object = returned.score
    if not isinstance(score, (int, float)) or not math.isfinite(score):
        shown = shortened(repr(score), 100)
        return Score(error=f"the plugin returned the score {shown}, which is not a finite number")
    for name in ("hits", "misses"):
        if not _are_texts(getattr(returned, name)):
            return Score(error=f"the plugin returned '{name}' that are not a list of texts")
    reasoning: object = returned.reasoning
    if not isinstance(reasoning, str):
        kind = type(reasoning).__name__
        return Score(error=f"the plugin returned a reasoning that is {kind}, not a text")
    hits = tuple(map(well_formed_text, returned.hits))
    misses = tuple(map(well_formed_text, returned.misses))
    return Score(float(score), hits, misses, well_formed_text(reasoning))


def _are_texts(values: object) -> bool:
    return (
        isinstance(values, Iterable)
        and not isinstance(values, str)
        and all(isinstance(value, str) for value in values)
    )
