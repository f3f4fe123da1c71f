"""`agentv-ci history`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

import click

from agentv_ci.app.environment import system_environment
from agentv_ci.app.history import Added, add_results, import_results, results_named
from agentv_ci.cli.console import show_line, show_warning
from agentv_ci.cli.defaults import repository, require_latest
from agentv_ci.cli.options import FILE, Command, argument, option, part, takes
from agentv_ci.errors import UsageError
from agentv_ci.ledger.place import BRANCH, LedgerPlace
from agentv_ci.publish.workflow import read_workflow
from agentv_ci.text import counted


@dataclass(frozen=True)
class PlaceOptions:
    """Where the ledger is."""

    branch: str | None = option(
        "--branch", metavar="NAME", help=f"Name the branch of git that holds the ledger (default: {BRANCH})."
    )
    folder: str | None = option("--dir", type=FILE, help="Keep the ledger in a folder instead of a branch.")

    def at(self, cwd: Path) -> LedgerPlace:
        """Return the place; raises UsageError."""
        if self.branch is not None and self.folder is not None:
            raise UsageError("--branch and --dir cannot be combined")
        if self.folder is not None:
            return LedgerPlace(cwd / self.folder, None)
        return LedgerPlace(repository(cwd), self.branch or BRANCH)


@dataclass(frozen=True)
class AddOptions:
    """Options of `history add`."""

    place: PlaceOptions = field(metadata=part(PlaceOptions))
    results: tuple[str, ...] = argument(nargs=-1, type=FILE, metavar="[RESULTS...]")
    run_url: str | None = option(
        "--run-url", metavar="URL", help="Link to this address of the run (default: that of the GitHub workflow)."
    )


@dataclass(frozen=True)
class ImportOptions:
    """Options of `history import`."""

    place: PlaceOptions = field(metadata=part(PlaceOptions))
    results: tuple[str, ...] = argument(nargs=-1, required=True, type=FILE, metavar="RESULTS...")


@click.group("history")
def command() -> None:
    """Keep what every case did in every run, in a branch of git or a folder, and find unhealthy cases.

    \b
    Examples:
      agentv-ci history add
      agentv-ci history health
    """


@command.command("add", cls=Command, short_help="Add results to the ledger.")
@takes(AddOptions)
def add(options: AddOptions) -> int:
    """Add RESULTS to the ledger: a line for each case, with its verdict, score, cost and time, but no answers.

    RESULTS defaults to the latest in .agentv/results/; each file is a run. A run that the ledger has already is not
    added again. With a remote `origin`, the branch is fetched and pushed; the work tree, the index and HEAD stay as
    they are.

    \b
    Examples:
      agentv-ci history add
      agentv-ci history add nightly.jsonl --branch eval-history
      agentv-ci history add results.yaml --dir ledger/
    """
    cwd = Path.cwd()
    place = options.place.at(cwd)
    results = [cwd / each for each in options.results or (require_latest(cwd),)]
    workflow = read_workflow(os.environ)
    run_url = options.run_url or (workflow.run_url if workflow is not None else None)
    if run_url is not None and not run_url.startswith(("https://", "http://")):
        raise UsageError(f"--run-url: '{run_url}' is not an address of the web")
    work = add_results(results, place, system_environment(os.environ), run_url=run_url)
    _show(asyncio.run(work), place)
    return 0


@command.command("import", cls=Command, short_help="Add older results files to the ledger.")
@takes(ImportOptions)
def import_(options: ImportOptions) -> int:
    """Add older RESULTS, files or globs of them, to the ledger, each at the time of its last row.

    Files that cannot be a run, such as those of dry runs, are named and left out.

    \b
    Examples:
      agentv-ci history import '.agentv/results/eval_*.jsonl'
      agentv-ci history import 'artifacts/**/results.jsonl' --dir ledger/
    """
    cwd = Path.cwd()
    place = options.place.at(cwd)
    results = results_named(options.results, cwd)
    _show(asyncio.run(import_results(results, place, system_environment(os.environ))), place)
    return 0


def _show(added: Added, place: LedgerPlace) -> None:
    for reason in added.refused:
        show_warning(f"left out: {reason}")
    where = f"branch {place.branch}" if place.branch is not None else str(place.folder)
    known = f"; {counted(added.known, 'run was', 'runs were')} in it already" if added.known else ""
    show_line(f"{counted(len(added.new), 'run')} added to {where}{known}", "good" if added.new else "plain")
