"""All questions of one target in one session, for providers that can (`provider_batching`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from agentv_ci.contracts.exchange import Environment, Log, ProviderError, Request, Response
from agentv_ci.execute.providers import BatchProvider
from agentv_ci.results.rows import TrialKey


@dataclass(slots=True)
class Batch:
    """Asks everything when the first answer is wanted; every trial then takes its own."""

    name: str
    """Of the target."""
    provider: BatchProvider
    requests: Mapping[TrialKey, Request]
    slot: AbstractAsyncContextManager[None]
    environment: Environment
    log: Log
    _asking: asyncio.Task[dict[TrialKey, Response]] | None = field(default=None, init=False)

    async def answer(self, key: TrialKey) -> Response | None:
        """Return the answer to a trial's question; None when it is not among them, or the batch failed."""
        if key not in self.requests:
            return None
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        # Shielded: a trial that is cancelled does not take the others' answers with it.
        answers = await asyncio.shield(self._asking)
        return answers.pop(key, None)

    async def _ask(self) -> dict[TrialKey, Response]:
        self.log(f"{self.name}: asks {len(self.requests)} questions in one batch")
        begun = self.environment.monotonic()
        try:
            async with self.slot:
                answers = await self.provider.ask_together(list(self.requests.values()))
        except ProviderError as error:
            self.log(f"{self.name}: provider_batching was requested but not applied: {error.detail}; asks case by case")
            return {}
        share_ms = round((self.environment.monotonic() - begun) * 1000 / len(self.requests))
        timed = (replace(answer, duration_ms=share_ms) for answer in answers)
        return dict(zip(self.requests, timed, strict=True))

    async def close(self) -> None:
        """End what is still being asked."""
        if self._asking is not None:
            self._asking.cancel()
            # What went wrong has reached every trial that waited for it.
            await asyncio.gather(self._asking, return_exceptions=True)
