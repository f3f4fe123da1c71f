"""Where a ledger is: a branch or a folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

from msgspec import Struct

from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.ledger import Damage, Ledger
from agentv_ci.errors import LedgerUnavailable
from agentv_ci.ledger.branch import add_to_branch, read_branch
from agentv_ci.ledger.folder import add_to_folder, read_folder

BRANCH = "agentv-history"
"""The branch that holds the ledger unless another is named."""
MAX_AHEAD = timedelta(days=1)
"""How much later than now a run may be, by a clock that is wrong: others would seem old beside it.
"""


class LedgerPlace(Struct, frozen=True):
    """The place of a ledger."""

    folder: Path
    """The ledger itself, or any folder of the repository with the branch."""
    branch: str | None = BRANCH
    """None: the folder is the ledger."""


async def read_ledger(
    place: LedgerPlace, environment: Environment, since: date | None = None
) -> Ledger:
    """Return the runs of a ledger since a day; raises LedgerUnavailable.

    What is damaged is reported, never fatal.
    """
    if place.branch is not None:
        return _until_now(
            await read_branch(place.folder, place.branch, environment, since), environment
        )
    try:
        return _until_now(read_folder(place.folder, since), environment)
    except OSError as error:
        raise LedgerUnavailable(
            f"cannot read the ledger in '{place.folder}': {error.strerror}"
        ) from error


def _until_now(ledger: Ledger, environment: Environment) -> Ledger:
    """Return a ledger whose runs in the future are damage."""
    latest = f"{environment.now() + MAX_AHEAD:%Y-%m-%dT%H:%M:%SZ}"
    future = tuple(
        Damage(f"run {run.head.run}", f"its time is in the future: {run.head.time}")
        for run in ledger.runs
        if run.head.time > latest
    )
    return Ledger(
        ledger.source, ledger.runs[: len(ledger.runs) - len(future)], (*ledger.damaged, *future)
    )


async def add_to_ledger(
    place: LedgerPlace, files: Mapping[str, bytes], environment: Environment
) -> list[str]:
    """Add runs that a ledger does not have yet, and return their paths in it.

    Raises LedgerUnavailable.
    """
    if place.branch is not None:
        return await add_to_branch(place.folder, place.branch, files, environment)
    try:
        return add_to_folder(place.folder, files)
    except OSError as error:
        raise LedgerUnavailable(
            f"cannot write the ledger in '{place.folder}': {error.strerror}"
        ) from error
