"""Where a ledger is: a branch or a folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from msgspec import Struct

from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.ledger import Ledger
from agentv_ci.errors import LedgerUnavailable
from agentv_ci.ledger.branch import add_to_branch, read_branch
from agentv_ci.ledger.folder import add_to_folder, read_folder

BRANCH = "agentv-history"
"""The branch that holds the ledger unless another is named."""


class LedgerPlace(Struct, frozen=True):
    """The place of a ledger."""

    folder: Path
    """The ledger itself, or any folder of the repository with the branch."""
    branch: str | None = BRANCH
    """None: the folder is the ledger."""


async def read_ledger(place: LedgerPlace, environment: Environment, since: date | None = None) -> Ledger:
    """Return the runs of a ledger since a day; raises LedgerUnavailable. What is damaged is reported, never fatal."""
    if place.branch is not None:
        return await read_branch(place.folder, place.branch, environment, since)
    try:
        return read_folder(place.folder, since)
    except OSError as error:
        raise LedgerUnavailable(f"cannot read the ledger in '{place.folder}': {error.strerror}") from error


async def add_to_ledger(place: LedgerPlace, files: Mapping[str, bytes], environment: Environment) -> list[str]:
    """Add runs that a ledger does not have yet, and return their paths in it; raises LedgerUnavailable."""
    if place.branch is not None:
        return await add_to_branch(place.folder, place.branch, files, environment)
    try:
        return add_to_folder(place.folder, files)
    except OSError as error:
        raise LedgerUnavailable(f"cannot write the ledger in '{place.folder}': {error.strerror}") from error
