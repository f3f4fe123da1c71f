"""`agentv-ci baseline`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv_ci.app.results.compare import accept_baseline
from agentv_ci.base.text import counted
from agentv_ci.cli.console import short, show_line, show_warning
from agentv_ci.cli.defaults import BASELINE, repository, require_latest
from agentv_ci.cli.options import FILE, color_option, path_in
from agentv_ci.errors import UsageError


@click.group("baseline")
def command() -> None:
    """Accept a run as the baseline for later runs.

    \b
    Examples:
      agentv-ci baseline accept
      agentv-ci eval evals/ --repeat 5 --baseline .agentv/baseline.json
    """


@command.command("accept", short_help="Write a baseline from results.")
@click.argument("results", type=FILE, required=False, metavar="[RESULTS]")
@click.option("--out", type=FILE, help=f"Write the baseline to FILE (default: {BASELINE}).")
@click.option(
    "--partial", is_flag=True, help="Begin a baseline although only some cases were selected."
)
@color_option
def accept(results: str | None, out: str | None, *, partial: bool) -> int:
    """Write a baseline from RESULTS: one line per case, to commit and review like code.

    RESULTS defaults to the latest in .agentv/results/.

    \b
    Examples:
      agentv-ci baseline accept
      agentv-ci baseline accept main.jsonl
      agentv-ci eval evals/ --baseline .agentv/baseline.json
    """
    cwd = Path.cwd()
    path = path_in(cwd, out) or repository(cwd) / BASELINE
    if path.suffix != ".json":
        raise UsageError(f"--out: '{out}' must end in .json")
    run = cwd / (results or require_latest(cwd))
    baseline, warnings = accept_baseline(run, path, partial=partial)
    for warning in warnings:
        show_warning(warning)
    show_line(
        f"baseline with {counted(len(baseline.cases), 'case')} written to {short(path, cwd)}",
        "good",
    )
    return 0
