"""`agentv-ci history`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Literal, assert_never

import click

from agentv_ci.app.results.history import (
    DAYS,
    Added,
    add_results,
    health,
    import_results,
    results_named,
)
from agentv_ci.app.results.site import write_site
from agentv_ci.app.run.environment import system_environment
from agentv_ci.base.text import counted
from agentv_ci.cli.console import show_line, show_summary, show_warning
from agentv_ci.cli.defaults import repository, require_latest
from agentv_ci.cli.options import FILE, Command, Count, argument, option, part, takes
from agentv_ci.contracts.exchange import Environment
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.github.workflow import read_workflow
from agentv_ci.ledger.place import BRANCH, LedgerPlace
from agentv_ci.report.health import health_annotations, health_lines, health_text

MAX_DAYS = 36_500


@dataclass(frozen=True)
class PlaceOptions:
    """Where the ledger is."""

    branch: str | None = option(
        "--branch",
        metavar="NAME",
        help=f"Name the branch of git that holds the ledger (default: {BRANCH}).",
    )
    folder: str | None = option(
        "--dir", type=FILE, help="Keep the ledger in a folder instead of a branch."
    )

    def at(self, cwd: Path) -> LedgerPlace:
        """Return the place; raises UsageError."""
        if self.branch is not None and self.folder is not None:
            raise UsageError("--branch and --dir cannot be combined")
        if self.folder is not None:
            return LedgerPlace(cwd / self.folder, None)
        return LedgerPlace(repository(cwd), self.branch or BRANCH)


def _partial_option() -> bool:
    partial: bool = option(
        "--partial",
        is_flag=True,
        help="Add runs of selected cases, of experiments and of answers scored again, too.",
    )
    return partial


@dataclass(frozen=True)
class AddOptions:
    """Options of `history add`."""

    place: PlaceOptions = field(metadata=part(PlaceOptions))
    results: tuple[str, ...] = argument(nargs=-1, type=FILE, metavar="[RESULTS...]")
    run_url: str | None = option(
        "--run-url",
        metavar="URL",
        help="Link to this address of the run (default: that of the GitHub workflow).",
    )
    partial: bool = _partial_option()


@dataclass(frozen=True)
class ImportOptions:
    """Options of `history import`."""

    place: PlaceOptions = field(metadata=part(PlaceOptions))
    results: tuple[str, ...] = argument(nargs=-1, required=True, type=FILE, metavar="RESULTS...")
    partial: bool = _partial_option()


@dataclass(frozen=True)
class LookOptions:
    """Which runs of a ledger to look at."""

    place: PlaceOptions = field(metadata=part(PlaceOptions))
    days: int = option(
        "--days",
        type=Count(min=1, max=MAX_DAYS),
        default=DAYS,
        show_default=True,
        metavar="N",
        help="Look at the last N days.",
    )
    proof: str | None = option(
        "--proof",
        type=FILE,
        help="Say by this proof of `prove` whether null agents pass saturated cases, too.",
    )

    def since(self, environment: Environment) -> date:
        """Return the first day."""
        return environment.now().date() - timedelta(days=self.days)

    def proof_in(self, cwd: Path) -> Path | None:
        """Return the file of the proof; None without one."""
        return cwd / self.proof if self.proof is not None else None


@dataclass(frozen=True)
class HealthOptions:
    """Options of `history health`."""

    look: LookOptions = field(metadata=part(LookOptions))
    form: Literal["text", "json", "github"] = option(
        "--format",
        type=click.Choice(["text", "json", "github"]),
        default="text",
        show_default=True,
        help="Print text for people, JSON for programs, or annotations for a GitHub workflow.",
    )


@dataclass(frozen=True)
class SiteOptions:
    """Options of `history site`."""

    look: LookOptions = field(metadata=part(LookOptions))
    out: str = option(
        "--out", type=FILE, required=True, metavar="DIR", help="Write the pages into this folder."
    )


@click.group("history")
def command() -> None:
    """Keep what every case did in every run, in a branch of git or a folder, and find unhealthy cases.

    \b
    Examples:
      agentv-ci history add
      agentv-ci history health
      agentv-ci history site --out site/
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
      agentv-ci history add main.jsonl --branch eval-history
      agentv-ci history add main.jsonl --dir ledger/ --run-url https://ci.example/runs/7
    """
    cwd = Path.cwd()
    place = options.place.at(cwd)
    results = list(map(cwd.joinpath, options.results or (require_latest(cwd),)))
    workflow = read_workflow(os.environ)
    run_url = options.run_url
    if not run_url and workflow is not None:
        run_url = workflow.run_url
    if run_url is not None and not run_url.startswith(("https://", "http://")):
        raise UsageError(f"--run-url: '{run_url}' is not an address of the web")
    environment = system_environment(os.environ)
    work = add_results(results, place, environment, run_url=run_url, partial=options.partial)
    _show(asyncio.run(work), place)
    return PASSED


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
    environment = system_environment(os.environ)
    work = import_results(results, place, environment, partial=options.partial)
    _show(asyncio.run(work), place)
    return PASSED


@command.command("health", cls=Command, short_help="Find unhealthy cases, and who changed.")
@takes(HealthOptions)
def health_(options: HealthOptions) -> int:
    """Find cases that say nothing, and changes that no author made.

    A case is judged by the runs since it was changed last, at least 20: it is saturated, dead, flaky or redundant, its
    judge or provider drifts, its model changed, it is slow or expensive. It is broken if it crashes in its newest runs.
    Each finding says what to do. The exit code does not depend on findings; it is 3 if there are no runs, 4 if the
    ledger cannot be read.

    \b
    Examples:
      agentv-ci history health
      agentv-ci history health --proof .agentv/proof.json --days 90
      agentv-ci history health --dir ledger/ --format json
    """
    cwd = Path.cwd()
    environment = system_environment(os.environ)
    look = options.look
    report = asyncio.run(
        health(look.place.at(cwd), look.proof_in(cwd), environment, since=look.since(environment))
    )
    match options.form:
        case "text":
            show_summary(health_lines(report))
        case "json":
            click.echo(health_text(report), nl=False)
        case "github":
            click.echo(health_annotations(report), nl=False)
        case _:
            assert_never(options.form)
    return PASSED


@command.command("site", cls=Command, short_help="Write pages with trends and a heat map.")
@takes(SiteOptions)
def site(options: SiteOptions) -> int:
    """Write static pages of the ledger into a folder: trends, what every case did in every run, and health.

    The pages need no server and send no request, so that they open from a disk and on GitHub Pages. Beside index.html
    there are badge.svg, for a README, and status.json, the newest figures for programs. The exit code is 3 if there
    are no runs, 4 if the ledger cannot be read.

    \b
    Examples:
      agentv-ci history site --out site/
      agentv-ci history site --out site/ --days 90 --proof .agentv/proof.json
      agentv-ci history site --out site/ --dir ledger/
    """
    cwd = Path.cwd()
    environment = system_environment(os.environ)
    look = options.look
    place, proof = look.place.at(cwd), look.proof_in(cwd)
    since = look.since(environment)
    work = write_site(place, repository(cwd), cwd / options.out, proof, environment, since=since)
    page, *_ = asyncio.run(work)
    show_line(f"pages: {page}", "good")
    return PASSED


def _show(added: Added, place: LedgerPlace) -> None:
    for reason in added.refused:
        show_warning(f"left out: {reason}")
    where = f"branch {place.branch}" if place.branch is not None else str(place.folder)
    text = f"{counted(len(added.new), 'run')} added to {where}"
    if added.known:
        text += f"; {counted(added.known, 'run was', 'runs were')} in it already"
    show_line(text, "good" if added.new else "plain")
