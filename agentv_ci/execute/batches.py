"""All questions of one target in one session, for providers that can (`provider_batching`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from agentv_ci.contracts.exchange import Environment, Log, ProviderError, Request, Response
from agentv_ci.execute.providers import BatchProvider
from agentv_ci.results.rows import TrialKey


class Batch:
    """Asks everything when the first answer is wanted; every trial then takes its own."""

    def __init__(
        self,
        name: str,
        provider: BatchProvider,
        requests: Mapping[TrialKey, Request],
        *,
        slot: AbstractAsyncContextManager[None],
        environment: Environment,
        log: Log,
    ) -> None:
        self._name = name
        self._slot = slot
        self._environment = environment
        self._provider = provider
        self._requests = requests
        self._log = log
        self._asking: asyncio.Task[dict[TrialKey, Response]] | None = None

    def __contains__(self, key: TrialKey) -> bool:
        """Whether a trial's question is among those that are asked together."""
        return key in self._requests

    async def answer(self, key: TrialKey) -> Response | None:
        """Return the answer to a trial's question; None when the batch failed and the question is still open."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        # Shielded: a trial that is cancelled does not take the others' answers with it.
        answers = await asyncio.shield(self._asking)
        return answers.pop(key, None)

    async def _ask(self) -> dict[TrialKey, Response]:
        self._log(f"{self._name}: asks {len(self._requests)} questions in one batch")
        begun = self._environment.monotonic()
        try:
            async with self._slot:
                answers = await self._provider.ask_together(list(self._requests.values()))
        except ProviderError as error:
            self._log(
                f"{self._name}: provider_batching was requested but not applied: {error.detail}; asks case by case"
            )
            return {}
        share_ms = round((self._environment.monotonic() - begun) * 1000 / len(self._requests))
        timed = (replace(answer, duration_ms=share_ms) for answer in answers)
        return dict(zip(self._requests, timed, strict=True))

    async def close(self) -> None:
        """End what is still being asked."""
        if self._asking is not None:
            self._asking.cancel()
            # What went wrong has been told to every trial that waited for it.
            await asyncio.gather(self._asking, return_exceptions=True)
