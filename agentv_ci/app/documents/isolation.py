"""Which isolation of workspaces this machine has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import get_args

from agentv_ci.contracts.workspaces import Isolation
from agentv_ci.workspaces.isolation import Means, means_of


def every_means(environ: Mapping[str, str]) -> list[Means]:
    """Return what this machine can do for each kind of isolation, tried on a harmless command."""

    async def tried() -> list[Means]:
        return [await means_of(isolation, environ) for isolation in get_args(Isolation)]

    return asyncio.run(tried())
