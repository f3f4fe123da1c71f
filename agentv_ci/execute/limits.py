"""How many questions are asked at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from agentv_ci.contracts.targets import Target, at_most, cases_at_once, own_workers


class Limits:
    """`--workers` bounds the whole run and each target; without it a target's `workers` bounds that target."""

    def __init__(self, workers: int | None, targets: Mapping[str, Target], answering: Iterable[str]) -> None:
        self._slots = {
            key: asyncio.Semaphore(at_most(target, workers or own_workers(target))) for key, target in targets.items()
        }
        self.width = cases_at_once(workers, [targets[key] for key in dict.fromkeys(answering)])
        """Cases at once."""

    def slot(self, target: str) -> asyncio.Semaphore:
        """Return what a question to a target must hold while it is asked."""
        return self._slots[target]
