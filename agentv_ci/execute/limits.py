"""How many questions are asked at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from agentv_ci.contracts.targets import Target


class Limits:
    """`--workers` bounds the whole run and each target; without it a target's `workers` bounds that target."""

    def __init__(self, workers: int | None, targets: Mapping[str, Target], answering: Iterable[str]) -> None:
        self._slots = {key: asyncio.Semaphore(workers or _own(target)) for key, target in targets.items()}
        own = [_own(targets[key]) for key in dict.fromkeys(answering)]
        self.width = workers or (sum(own) if any(each > 1 for each in own) else 1)
        """Cases at once. With nothing said anywhere it is 1: in order, one at a time."""

    def slot(self, target: str) -> asyncio.Semaphore:
        """Return what a question to a target must hold while it is asked."""
        return self._slots[target]


def _own(target: Target) -> int:
    # A reference is still one in a dry run, which reads no environment.
    return target.workers if isinstance(target.workers, int) else 1
