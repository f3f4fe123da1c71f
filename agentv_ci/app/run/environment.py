"""The environment of this process: variables, clock, sleep and randomness."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from agentv_ci.contracts.exchange import Environment


def system_environment(variables: Mapping[str, str]) -> Environment:
    """Return the environment of this process, with these variables."""
    return Environment(
        variables=variables,
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        sleep=asyncio.sleep,
        uniform=random.uniform,
    )
