"""The ledger → its pages."""

from __future__ import annotations

from datetime import date
from itertools import chain
from pathlib import Path

from agentv_ci.analysis.health.report import health_of
from agentv_ci.app.documents.quarantine import entries_of, find_quarantine
from agentv_ci.app.prove.proof_file import read_proof
from agentv_ci.base.atomic import write_whole
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.ledger import Ledger
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.ledger.place import LedgerPlace, read_ledger
from agentv_ci.report.site.document import GENERATED, SiteView, render

BEGINNING = 4_096
"""Bytes of a page that say who has written it."""


async def write_site(
    place: LedgerPlace,
    root: Path,
    out: Path,
    proof: Path | None,
    environment: Environment,
    *,
    since: date,
) -> list[Path]:
    """Write the pages of a ledger's runs since a day into a folder, and return their paths.

    They replace older pages. `root` is the folder of the repository, whose quarantine is shown.

    Raises LedgerUnavailable, NothingToRun if there is no run since then, OSError, and UsageError
    for a file that agentv-ci has not written and for a file that is not a proof.
    """
    proven = read_proof(proof) if proof is not None else None
    ledger = await read_ledger(place, environment, since)
    if not ledger.runs and not ledger.damaged:
        raise NothingToRun(
            f"no run since {since} in {ledger.source}", hint="add one with `agentv-ci history add`"
        )
    _refuse_foreign(out)
    files = render(
        SiteView(
            ledger, health_of(ledger, proven), _quarantine(ledger, root, environment.now().date())
        )
    )
    for name, content in files.items():
        _write(out / name, content)
    return list(map(out.joinpath, files))


def _write(page: Path, content: bytes) -> None:
    write_whole(page, lambda file: file.write(content))


def _quarantine(ledger: Ledger, root: Path, today: date) -> tuple[Quarantine, ...]:
    """Return the entries of the repository's quarantine that have cases in the ledger.

    Raises UsageError.
    """
    path = find_quarantine(root)
    if path is None:
        return ()
    cases = {case.key for case in chain.from_iterable(run.cases for run in ledger.runs)}
    try:
        return entries_of(path, cases, cwd=root, today=today)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}") from error


def _refuse_foreign(out: Path) -> None:
    """Raise UsageError for what agentv-ci has not written.

    That is a page of others, and files beside which there is no page.
    """
    page = out / "index.html"
    foreign: list[Path] = []
    if not page.exists():
        files = (out / "badge.svg", out / "status.json")
        foreign += filter(Path.exists, files)
    else:
        with page.open("rb") as file:
            if GENERATED.encode() not in file.read(BEGINNING):
                foreign.append(page)
    if foreign:
        raise UsageError(
            f"'{foreign[0]}' is not a file of agentv-ci", hint="choose another folder with --out"
        )
