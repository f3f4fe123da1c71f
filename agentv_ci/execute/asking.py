"""Questions to one target without a plan: what a program asks that has its own idea of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentv_ci.contracts.config import Price
from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.plan import PlanMessage
from agentv_ci.contracts.targets import Target
from agentv_ci.costs import cost_of_response
from agentv_ci.errors import TargetUnavailable
from agentv_ci.execute.prompt import plain_request
from agentv_ci.execute.providers import open_provider
from agentv_ci.execute.services import ProviderServices
from agentv_ci.redaction import Redactor

TIMEOUT_S = 600.0


class Asking:
    """A resolved target, asked one question after the other."""

    def __init__(
        self, target: Target, services: ProviderServices, redactor: Redactor, prices: Mapping[str, Price]
    ) -> None:
        self._target = target
        self._services = services
        self._redactor = redactor
        self._prices = prices
        self._provider = open_provider(target, services)

    async def open(self) -> None:
        """Probe the target; raises TargetUnavailable."""
        try:
            await self._provider.check()
        except ProviderError as error:
            self._redactor.clean(error)
            raise TargetUnavailable(f"target '{self._target.name}' is not available: {error.detail}") from error

    async def ask(self, messages: Sequence[PlanMessage], *, name: str, cwd: Path, seed: int | None) -> Response:
        """Return the answer to a conversation; raises ProviderError, free of secrets."""
        request: Request = plain_request(messages, name=name, cwd=cwd, seed=seed, timeout_s=TIMEOUT_S)
        try:
            response = self._redactor.response(await self._provider.ask(request))
        except ProviderError as error:
            self._redactor.clean(error)
            raise
        return replace(response, cost_usd=cost_of_response(self._target, response, self._prices))

    async def close(self) -> None:
        """Let go of connections and files."""
        await self._provider.close()
