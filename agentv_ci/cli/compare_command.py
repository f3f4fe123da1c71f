"""`agentv-ci compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.analysis.comparison import CONFIDENCE
from agentv_ci.app.compare import compare_by_target, compare_files
from agentv_ci.cli.console import short, show_line, show_summary
from agentv_ci.cli.defaults import BASELINE, repository, require_latest
from agentv_ci.cli.options import FILE, TEXT_OR_JSON, Range, color_option
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.comparison import Comparison
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED, UsageError
from agentv_ci.report.lines import comparison_lines
from agentv_ci.text import counted


@click.command("compare")
@click.argument("base", type=FILE, required=False, metavar="[BASE]")
@click.argument("head", type=FILE, required=False, metavar="[HEAD]")
@click.option("--by", type=click.Choice(["target"]), help="Compare the targets of one results file with each other.")
@click.option("--base", "base_target", metavar="NAME", help="Compare with this target (default: the first of the run).")
@click.option(
    "--confidence",
    type=Range(0.5, 0.9999),
    default=CONFIDENCE,
    show_default=True,
    metavar="X",
    help="Set the confidence level of the interval for each case's change in pass rate.",
)
@click.option("--format", "form", **TEXT_OR_JSON)
@color_option
def command(
    base: str | None, head: str | None, by: str | None, base_target: str | None, confidence: float, form: str
) -> int:
    """Show what got worse from BASE to HEAD: results (.jsonl, .yaml) or a baseline (.json).

    BASE defaults to .agentv/baseline.json, HEAD to the latest results in .agentv/results/.

    With --by target, the only argument is a results file, by default the latest. Each of its targets is compared with
    the first one, or with that of --base.

    Cases are matched by suite and id. With one trial per side, any worse verdict is a regression, and possibly noise.
    With several trials (--repeat), only a drop in pass rate that chance does not explain is one. Exit code 1: a case
    regressed; 3: no case is on both sides; 4: a case lost its verdict.

    \b
    Examples:
      agentv-ci compare
      agentv-ci compare main.jsonl --format json
      agentv-ci compare main.jsonl branch.jsonl
      agentv-ci compare both.jsonl --by target --base small
    """
    cwd = Path.cwd()
    now = datetime.now(UTC)
    if by is not None:
        if head is not None:
            raise UsageError("--by target takes one results file")
        name = base or require_latest(cwd)
        return _show_all(compare_by_target(cwd / name, base_target, name=name, confidence=confidence, now=now), form)
    if base_target is not None:
        raise UsageError("--base requires --by target")
    base = base or str(short(repository(cwd) / BASELINE, cwd))
    head = head or require_latest(cwd)
    comparison = compare_files(cwd / base, cwd / head, names=(base, head), confidence=confidence, now=now)
    if form == "json":
        click.echo(json.dumps(_document(comparison), indent=2))
    else:
        _show(comparison)
    return _code(comparison)


def _show_all(comparisons: Sequence[Comparison], form: str) -> int:
    """Show the comparisons of targets, and return the worst exit code."""
    codes = {_code(each) for each in comparisons}
    code = next(each for each in (FAILED, INFRASTRUCTURE, PASSED) if each in codes)
    if form == "json":
        click.echo(json.dumps({"comparisons": [_document(each) for each in comparisons], "exit_code": code}, indent=2))
    else:
        for each in comparisons:
            _show(each)
    return code


def _code(comparison: Comparison) -> int:
    is_whole = comparison.compared > 0 and comparison.lost == 0
    return FAILED if comparison.reasons else PASSED if is_whole else INFRASTRUCTURE


def _document(comparison: Comparison) -> JsonObject:
    return {**comparison.model_dump(), "exit_code": _code(comparison)}


def _show(comparison: Comparison) -> None:
    show_summary(comparison_lines(comparison))
    if not comparison.compared:
        show_line("compare: no case has a verdict on both sides", "bad")
    elif not comparison.reasons and comparison.lost:
        show_line(f"compare: verdict lost for {counted(comparison.lost, 'case')}", "bad")
    elif not comparison.reasons:
        show_line("compare: no regression", "good")
    else:
        show_line("compare: regressed", "bad")
        for reason in comparison.reasons:
            show_line(f"  {reason}", "bad")
