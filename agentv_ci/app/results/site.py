"""The ledger → its pages."""

from __future__ import annotations

from datetime import date
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
    """Write the pages of a ledger's runs since a day into a folder, over older ones, and return their paths.

    `root`: the folder of the repository, whose quarantine is shown.
    Raises LedgerUnavailable, NothingToRun if there is no run since then, UsageError for a file that agentv-ci has not
    written and for a file that is not a proof, OSError.
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
        write_whole(out / name, lambda file, content=content: file.write(content))  # type: ignore[misc]  # bound
    return [out / name for name in files]


def _quarantine(ledger: Ledger, root: Path, today: date) -> tuple[Quarantine, ...]:
    """Return the entries of the repository's quarantine that have cases in the ledger.

    Raises UsageError.
    """
    path = find_quarantine(root)
    if path is None:
        return ()
    cases = {case.key for run in ledger.runs for case in run.cases}
    try:
        return entries_of(path, cases, cwd=root, today=today)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}") from error


def _refuse_foreign(out: Path) -> None:
    """Raise UsageError for a page that agentv-ci has not written, and for files beside which there is no page."""
    page = out / "index.html"
    if page.exists():
        with page.open("rb") as file:
            foreign = [] if GENERATED.encode() in file.read(BEGINNING) else [page]
    else:
        foreign = [path for name in ("badge.svg", "status.json") if (path := out / name).exists()]
    if foreign:
        raise UsageError(
            f"'{foreign[0]}' is not a file of agentv-ci", hint="choose another folder with --out"
        )
