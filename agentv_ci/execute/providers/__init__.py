"""The family of providers: what a target is at run time."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, runtime_checkable

from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.services import ProviderServices


class Provider(Protocol):
    """Answers questions. Opened once per target and run; asked many at once."""

    async def check(self) -> None:
        """Probe the target before the first case; raises ProviderError when it cannot be asked at all."""
        ...

    async def ask(self, request: Request) -> Response:
        """Return the answer; raises ProviderError.

        Keeps the request's time by itself, so that it can end gently what it has begun and say how far it came. May
        be cancelled at any time and then leaves nothing behind.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider that can take all questions of a run in one session."""

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return one answer per question, in their order; raises ProviderError when there are not as many."""
        ...


def open_provider(target: Target, services: ProviderServices) -> Provider:
    """Return the provider of a resolved target: the module that is named like its kind loads when it is needed."""
    module = import_module(f"{__name__}.{target.kind().replace('-', '_')}")
    provider: Provider = module.open_provider(target, services)
    return provider
