"""What tests of providers are built from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from agentv_ci.contracts.exchange import Environment, ProviderError, Request, Response
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.providers import open_provider
from tests.support import FakeClock


def context(
    root: Path = Path("/"),
    *,
    environment: Environment | None = None,
    log: list[str] | None = None,
    warned: list[str] | None = None,
    redact: Callable[[str], str] = lambda text: text,
) -> ProviderServices:
    """What providers work with; lines and warnings go into the lists."""
    known = environment or FakeClock().environment()
    return ProviderServices(
        root=root,
        logs=root / "logs",
        environment=known,
        log=([] if log is None else log).append,
        warn=([] if warned is None else warned).append,
        redact=redact,
        pause=lambda _, wait_s: known.sleep(wait_s),
    )


def ask_all(
    asked: Target, requests: Sequence[Request], context: ProviderServices
) -> Sequence[Response | ProviderError]:
    """Open a target, ask one question after the other, close it; return answers and failures."""

    async def main() -> Sequence[Response | ProviderError]:
        provider = open_provider(asked, context)
        found: list[Response | ProviderError] = []
        try:
            await provider.check()
            for request in requests:
                try:
                    found.append(await provider.ask(request))
                except ProviderError as error:
                    found.append(error)
        finally:
            await provider.close()
        return found

    return asyncio.run(main())
