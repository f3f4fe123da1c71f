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
    """Keep what a run came to, for later runs to be compared with.

    \b
    Examples:
      agentv-ci baseline accept .agentv/results/eval.jsonl
      agentv-ci eval evals/ --repeat 5 --baseline .agentv/baseline.json
    """


@command.command("accept")
@click.argument("results", type=FILE, metavar="RESULTS")
@click.option("--out", type=FILE, metavar="FILE", help=f"Where it goes; default: {BASELINE}.")
@color_option
def accept(results: str, out: str | None) -> int:
    """Write the baseline of RESULTS: a line for each case, to be committed and reviewed like code.

    \b
    Examples:
      agentv-ci baseline accept .agentv/results/eval.jsonl
      agentv-ci eval evals/ --baseline .agentv/baseline.json
    """
    cwd = Path.cwd()
    path = Path(out) if out else BASELINE
    if path.suffix != ".json":
        raise UsageError(f"a baseline is JSON, and '{path}' is not called so", hint="give it a name in .json")
    baseline, warnings = accept_baseline(cwd / results, cwd / path)
    for warning in warnings:
        show_warning(warning)
    show_line(f"baseline of {counted(len(baseline.cases), 'case')}: {path}", "good")
    return 0
