"""`agentv-ci baseline`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv_ci.app.compare import accept_baseline
from agentv_ci.cli.console import show_line, show_warning
from agentv_ci.cli.options import FILE, color_option
from agentv_ci.errors import UsageError
from agentv_ci.text import counted

BASELINE = Path(".agentv", "baseline.json")


@click.group("baseline")
def command() -> None:
    """Accept a run as the baseline for later runs.

    \b
    Examples:
      agentv-ci baseline accept results.jsonl
      agentv-ci eval evals/ --repeat 5 --baseline .agentv/baseline.json
    """


@command.command("accept", short_help="Write a baseline from results.")
@click.argument("results", type=FILE, metavar="RESULTS")
@click.option("--out", type=FILE, help=f"Write the baseline to FILE (default: {BASELINE}).")
@color_option
def accept(results: str, out: str | None) -> int:
    """Write a baseline from RESULTS: one line per case, to commit and review like code.

    \b
    Examples:
      agentv-ci baseline accept results.jsonl
      agentv-ci eval evals/ --baseline .agentv/baseline.json
    """
    cwd = Path.cwd()
    path = Path(out) if out else BASELINE
    if path.suffix != ".json":
        raise UsageError(f"--out: '{path}' must end in .json")
    baseline, warnings = accept_baseline(cwd / results, cwd / path)
    for warning in warnings:
        show_warning(warning)
    show_line(f"baseline with {counted(len(baseline.cases), 'case')} written to {path}", "good")
    return 0
