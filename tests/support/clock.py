"""An environment in which waiting takes no time and chance is even."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agentv_ci.contracts.exchange import Environment

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(slots=True)
class FakeClock:
    """A clock that only sleeping moves; `slept` lists the seconds of each wait."""

    variables: Mapping[str, str] = field(default_factory=dict)
    slept: list[float] = field(default_factory=list)

    def environment(self) -> Environment:
        """Return an environment with this clock."""

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        return Environment(
            variables=self.variables,
            now=lambda: NOW,
            monotonic=lambda: sum(self.slept),
            sleep=sleep,
            uniform=lambda _low, _high: 1.0,
        )
