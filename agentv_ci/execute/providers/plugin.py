"""`provider: acme/bot`: a provider of an installed package."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Annotated

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentv_ci import plugins
from agentv_ci.base.installed_plugins import Plugin, UnusablePlugin, error_line, find_plugin
from agentv_ci.base.model_errors import sentence
from agentv_ci.base.retry import RetryPolicy
from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.base import ErrorKind, Items, JsonObject
from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage, Usage
from agentv_ci.contracts.targets import PluginTarget
from agentv_ci.errors import UsageError
from agentv_ci.execute.answers import answered
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.retries import logged_retries

KINDS = frozenset(
    {"timeout", "rate_limit", "auth", "network", "server", "request", "malformed", "process"}
)
"""Kinds of errors that a plugin may raise."""


def open_provider(target: PluginTarget, services: ProviderServices) -> PluginProvider:
    """Return the provider of a resolved target; raises UsageError if the plugin cannot be used."""
    found = find_plugin("provider", target.provider, target.version)
    if isinstance(found, UnusablePlugin):
        raise UsageError(found.message, hint=found.hint)
    return PluginProvider(target, found, services)


class PluginProvider:
    """See Provider."""

    def __init__(self, target: PluginTarget, plugin: Plugin, services: ProviderServices) -> None:
        self._target = target
        self._plugin = plugin
        self._services = services
        self._policy = RetryPolicy()
        self._settings = plugin.settings.model_validate(target.settings)

    async def check(self) -> None:
        """Do nothing: the settings were checked when they were resolved."""

    async def ask(self, request: Request) -> Response:
        """Call the plugin, again after errors that it says may pass."""
        question = _question(request)

        async def once() -> Response:
            try:
                asked = self._plugin.implementation.ask(question, self._settings)
                returned = await asked if inspect.isawaitable(asked) else asked
            except ProviderError as error:
                raise _checked_error(error) from error
            except (Exception, SystemExit) as error:
                kind: ErrorKind = "timeout" if isinstance(error, TimeoutError) else "process"
                raise ProviderError(kind, f"the plugin raised {error_line(error)}") from error
            return _response(returned)

        response, tries = await logged_retries(
            once, self._policy, self._target.name, self._services, timeout_s=request.timeout_s
        )
        self._services.warn_if_cut(
            response, self._target.name, request.case_id, setting="max_output_tokens"
        )
        return replace(response, requests=tries)

    async def close(self) -> None:
        """A plugin holds nothing for a target."""


def _question(request: Request) -> plugins.Question:
    return plugins.Question(
        case_id=request.case_id,
        prompt=request.prompt,
        messages=request.chat,
        guidelines=request.guidelines,
        files=tuple(file.path for file in request.files),
        cwd=request.cwd,
        timeout_s=request.timeout_s,
        attempt=request.attempt,
        seed=request.seed,
        system_prompt=request.system_prompt,
        temperature=request.temperature,
        max_output_tokens=request.max_output_tokens,
    )


def _checked_error(error: ProviderError) -> ProviderError:
    """Return an error of a plugin.

    An unknown kind becomes `process`. An invalid usage or cost is left out.
    """
    checked = error
    if error.kind not in KINDS:
        checked = ProviderError(
            "process", f"{error.detail} (the plugin gave it the unknown kind '{error.kind}')"
        )
    try:
        used = _Used(model=error.model, usage=error.usage, cost_usd=error.cost_usd)
    except ValidationError as invalid:
        checked.detail += f" (the plugin gave it an invalid usage or cost: {sentence(invalid)})"
        used = _Used()
    checked.model, checked.usage, checked.cost_usd = used.model, used.usage, used.cost_usd
    return checked


def _response(returned: object) -> Response:
    """Return an answer as a response; raises ProviderError for anything else."""
    if not isinstance(returned, plugins.Answer):
        kind = type(returned).__name__
        raise ProviderError(
            "malformed", f"the plugin returned {kind}, not agentv_ci.plugins.Answer"
        )
    answer = _accepted(returned)
    response = answered(
        well_formed_text(answer.text),
        (),
        model=answer.model,
        usage=answer.usage,
        finish_reason=answer.finish_reason,
    )
    response = replace(response, cost_usd=answer.cost_usd, request=answer.request)
    if answer.messages:
        return replace(response, messages=answer.messages, has_trace=True)
    return response


def _accepted(returned: plugins.Answer) -> _Answer:
    values = {field.name: getattr(returned, field.name) for field in fields(returned)}
    try:
        return _Answer.model_validate(values)
    except ValidationError as error:
        raise ProviderError(
            "malformed", f"the plugin returned an invalid answer: {sentence(error)}"
        ) from error


class _Used(BaseModel):
    """What is accepted of the usage and cost of a plugin's error."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    model: str | None = None
    usage: Usage | None = None
    cost_usd: Annotated[float, Field(ge=0)] | None = None


class _Answer(BaseModel):
    """What is accepted of a plugin's answer."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    text: str
    messages: Items[OutputMessage]
    usage: Usage | None
    cost_usd: Annotated[float, Field(ge=0)] | None
    model: str | None
    finish_reason: str | None
    request: JsonObject
