"""`agentv-ci compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.analysis.comparison import CONFIDENCE
from agentv_ci.analysis.metric_changes import Limit
from agentv_ci.analysis.statement import Terms
from agentv_ci.app.compare import compare_by_target, compare_files
from agentv_ci.cli.console import short, show_line, show_summary
from agentv_ci.cli.defaults import BASELINE, repository, require_latest
from agentv_ci.cli.options import (
    ALLOW_CHANGES,
    ALLOW_CHANGES_HELP,
    TEXT_OR_JSON,
    Command,
    IncreaseOptions,
    Range,
    argument,
    option,
    part,
    takes,
)
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.comparison import Comparison
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED, UsageError
from agentv_ci.report.lines import comparison_lines
from agentv_ci.text import counted


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of `compare`."""

    base: str | None = argument(required=False, metavar="[BASE]")
    head: str | None = argument(required=False, metavar="[HEAD]")
    by: str | None = option(
        "--by", type=click.Choice(["target"]), help="Compare the targets of one results file with each other."
    )
    base_target: str | None = option(
        "--base", metavar="NAME", help="Compare with this target (default: the first of the run)."
    )
    confidence: float = option(
        "--confidence",
        type=Range(0.5, 0.9999),
        default=CONFIDENCE,
        show_default=True,
        metavar="X",
        help="Set the confidence of the whole comparison; of the cases that are called changed, at most 1-X are not.",
    )
    allow_changes: bool = option(ALLOW_CHANGES, is_flag=True, help=ALLOW_CHANGES_HELP)
    increases: IncreaseOptions = field(metadata=part(IncreaseOptions))
    form: str = option("--format", **TEXT_OR_JSON)

    def terms(self) -> Terms:
        """Return what the comparison is asked for."""
        limits = tuple(Limit(metric, share) for metric, share in self.increases.limits().items())
        return Terms(self.confidence, limits, allows_changes=self.allow_changes)


@click.command("compare", cls=Command)
@takes(CompareOptions)
def command(options: CompareOptions) -> int:
    """Show whether HEAD is worse than BASE: results (.jsonl, .yaml) or a baseline (.json).

    BASE defaults to .agentv/baseline.json, HEAD to the latest results in .agentv/results/.

    With --by target, the only argument is a results file, by default the latest. Each of its targets is compared with
    the first one, or with that of --base.

    Cases are matched by suite and id. All cases together decide: their pass rate and mean score, single cases that got
    worse, and the limits of costs, tokens and times, which are those of HEAD's gate unless options set them. Run
    several trials (--repeat 5): a single one may be noise. Exit code 1: worse; 3: no case is on both sides; 4: a case
    lost its verdict, a limit could not be checked, or judges, models or all cases differ.

    \b
    Examples:
      agentv-ci compare
      agentv-ci compare main.jsonl --format json
      agentv-ci compare main.jsonl branch.jsonl --max-cost-increase 10% --max-p95-latency-increase 20%
      agentv-ci compare both.jsonl --by target --base small
    """
    cwd = Path.cwd()
    now, terms, base, head = datetime.now(UTC), options.terms(), options.base, options.head
    if options.by is not None:
        if head is not None:
            raise UsageError("--by target takes one results file")
        name = base or require_latest(cwd)
        return _show_all(compare_by_target(cwd / name, options.base_target, terms, name=name, now=now), options.form)
    if options.base_target is not None:
        raise UsageError("--base requires --by target")
    base = base or str(short(repository(cwd) / BASELINE, cwd))
    head = head or require_latest(cwd)
    comparison = compare_files(cwd / base, cwd / head, terms, names=(base, head), now=now)
    if options.form == "json":
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
    is_decided = not _withheld(comparison) and not comparison.unmeasured
    is_whole = comparison.compared > 0 and comparison.lost == 0 and is_decided
    return FAILED if comparison.reasons else PASSED if is_whole else INFRASTRUCTURE


def _document(comparison: Comparison) -> JsonObject:
    return {**comparison.model_dump(), "exit_code": _code(comparison)}


def _withheld(comparison: Comparison) -> Sequence[str]:
    return comparison.statement.withheld if comparison.statement is not None else ()


def _show(comparison: Comparison) -> None:
    show_summary(comparison_lines(comparison))
    if not comparison.compared:
        show_line("compare: no case has a verdict on both sides", "bad")
    elif comparison.reasons:
        show_line("compare: worse", "bad")
        for reason in comparison.reasons:
            show_line(f"  {reason}", "bad")
    elif withheld := _withheld(comparison):
        show_line("compare: no decision, since the sides differ", "bad")
        for reason in withheld:
            show_line(f"  {reason}", "bad")
        show_line(f"  hint: run both sides alike, or compare them with {ALLOW_CHANGES}", "plain")
    elif comparison.unmeasured:
        show_line("compare: a limit was not checked", "bad")
        for reason in comparison.unmeasured:
            show_line(f"  {reason}", "bad")
    elif comparison.lost:
        show_line(f"compare: verdict lost for {counted(comparison.lost, 'case')}", "bad")
    else:
        show_line("compare: no regression shown", "good")
