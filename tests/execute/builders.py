"""What tests of providers are built from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from agentv_ci.contracts.exchange import ProviderError, Request, Response, World
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.context import Context
from agentv_ci.execute.providers import open_provider
from tests.conftest import Waits


def context(
    root: Path = Path("/"),
    *,
    world: World | None = None,
    log: list[str] | None = None,
    warned: list[str] | None = None,
    redact: Callable[[str], str] = lambda text: text,
) -> Context:
    """What providers work with; lines and warnings go into the lists."""
    known = world or Waits().world()
    return Context(
        root=root,
        logs=root / "logs",
        world=known,
        log=([] if log is None else log).append,
        warn=([] if warned is None else warned).append,
        redact=redact,
        pause=lambda _, wait_s: known.sleep(wait_s),
    )


def ask_all(asked: Target, requests: Sequence[Request], context: Context) -> Sequence[Response | ProviderError]:
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
