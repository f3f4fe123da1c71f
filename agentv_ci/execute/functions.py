"""A Python function as a provider: it gets the question as a text, and returns the answer."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import chain, count

from pydantic import BaseModel

from agentv_ci import plugins
from agentv_ci.base.installed_plugins import Plugin, error_line, is_offered, offered
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.contracts.targets import PluginTarget

Reply = str | plugins.Answer
AnswerFunction = Callable[[str], Reply | Awaitable[Reply]]
"""Question → answer; a plain function runs in a thread, so that it may block."""
OWN = "python"


class NoSettings(BaseModel):
    """The settings of a function."""


class _FunctionPlugin:
    """See agentv_ci.plugins.Provider."""

    settings = NoSettings

    def __init__(self, function: AnswerFunction) -> None:
        self._function = function

    async def ask(self, question: plugins.Question, _: BaseModel) -> plugins.Answer:
        """Return what the function returns; raises ProviderError for anything but an answer."""
        try:
            returned = await self._called(question.prompt)
        except (ProviderError, TimeoutError):
            raise
        except Exception as error:
            raise ProviderError("process", f"the function raised {error_line(error)}") from error
        if isinstance(returned, str):
            return plugins.Answer(text=returned)
        if isinstance(returned, plugins.Answer):
            return returned
        kind = type(returned).__name__
        raise ProviderError("malformed", f"the function returned {kind}, not a text or an Answer")

    async def _called(self, prompt: str) -> object:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(prompt)
        returned = await asyncio.to_thread(self._function, prompt)
        return await returned if inspect.isawaitable(returned) else returned


@contextmanager
def function_target(function: AnswerFunction) -> Iterator[PluginTarget]:
    """Offer a function as a provider, and yield a target that asks it, called like the function."""
    name = getattr(function, "__name__", type(function).__name__)
    slug = re.sub(r"[^a-z0-9_-]", "-", name.lower()).strip("-_") or "function"
    names = chain([slug], (f"{slug}-{number}" for number in count(2)))
    slug = next(name for name in names if not is_offered("provider", f"{OWN}/{name}"))
    plugin = Plugin("provider", f"{OWN}/{slug}", "this program", "0", _FunctionPlugin(function))
    with offered(plugin):
        yield PluginTarget(name=slug, provider=plugin.name)
