"""`agentv-ci compare`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.analysis.comparison import CONFIDENCE
from agentv_ci.app.compare import compare_files
from agentv_ci.cli.console import show_line, show_summary
from agentv_ci.cli.options import FILE, Range, color_option
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED
from agentv_ci.report.lines import comparison_lines
from agentv_ci.text import counted


@click.command("compare")
@click.argument("base", type=FILE, metavar="BASE")
@click.argument("head", type=FILE, metavar="HEAD")
@click.option(
    "--confidence",
    type=Range(0.5, 0.9999),
    default=CONFIDENCE,
    show_default=True,
    metavar="X",
    help="Of the interval in which the change of a case's pass rate lies.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@color_option
def command(base: str, head: str, confidence: float, form: str) -> int:
    """Say what has become worse from BASE to HEAD: results (.jsonl, .yaml) or a baseline (.json).

    Cases are matched by suite and id. With one trial a side a worse verdict is a regression, and possibly noise; with
    several (--repeat) only a fall of the pass rate that chance does not explain is one. Exit status 1 is a regression,
    4 that a case has no verdict any more, 3 that no case is on both sides.

    \b
    Examples:
      agentv-ci compare main.jsonl branch.jsonl
      agentv-ci compare .agentv/baseline.json .agentv/results/eval.jsonl
      agentv-ci compare before.jsonl after.jsonl --format json
    """
    cwd = Path.cwd()
    comparison = compare_files(cwd / base, cwd / head, names=(base, head), confidence=confidence, now=datetime.now(UTC))
    is_whole = comparison.compared > 0 and comparison.lost == 0
    code = FAILED if comparison.reasons else PASSED if is_whole else INFRASTRUCTURE
    if form == "json":
        click.echo(json.dumps({**comparison.model_dump(), "exit_code": code}, indent=2))
        return code
    show_summary(comparison_lines(comparison))
    if not comparison.compared:
        show_line("compare: no case has a verdict on both sides", "bad")
    elif not comparison.reasons and comparison.lost:
        show_line(f"compare: {counted(comparison.lost, 'case')} had a verdict and have none now", "bad")
    elif not comparison.reasons:
        show_line("compare: no regression", "good")
    else:
        show_line("compare: regressed", "bad")
        for reason in comparison.reasons:
            show_line(f"  {reason}", "bad")
    return code
