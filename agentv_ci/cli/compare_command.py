"""`agentv-ci compare`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import starmap
from pathlib import Path

import click

from agentv_ci import errors
from agentv_ci.analysis.comparison.comparison import CONFIDENCE
from agentv_ci.analysis.comparison.metric_changes import Limit
from agentv_ci.analysis.comparison.statement import Terms
from agentv_ci.analysis.gate import undecided_code
from agentv_ci.app.results.compare import compare_by_target, compare_files
from agentv_ci.app.run.environment import system_environment
from agentv_ci.base.text import counted
from agentv_ci.cli.console import short, show_line, show_summary, show_warning
from agentv_ci.cli.defaults import BASELINE, repository, require_latest
from agentv_ci.cli.options import (
    ALLOW_CHANGES,
    ALLOW_CHANGES_HELP,
    TEXT_OR_JSON,
    UNDECIDED,
    UNDECIDED_HELP,
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
from agentv_ci.contracts.gate import WhenUndecided
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED, UsageError
from agentv_ci.report.lines import Style, comparison_lines

WORST_FIRST = (FAILED, INFRASTRUCTURE, errors.UNDECIDED, PASSED)


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of `compare`."""

    base: str | None = argument(required=False, metavar="[BASE]")
    head: str | None = argument(required=False, metavar="[HEAD]")
    by: str | None = option(
        "--by",
        type=click.Choice(["target"]),
        help="Compare the targets of one results file with each other.",
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
        help="Set how sure the verdict is: "
        "with 0.95, at most 5% of runs that are no worse are called worse.",
    )
    allow_changes: bool = option(ALLOW_CHANGES, is_flag=True, help=ALLOW_CHANGES_HELP)
    undecided: WhenUndecided | None = option(  # noqa: RUF009  # a declaration
        UNDECIDED, type=click.Choice(["pass", "fail"]), help=UNDECIDED_HELP
    )
    increases: IncreaseOptions = field(metadata=part(IncreaseOptions))
    ledger: str | None = option(
        "--ledger",
        metavar="PLACE",
        help="Estimate from this ledger, a folder or else a branch, "
        "how alike the trials of one run are.",
    )
    form: str = option("--format", **TEXT_OR_JSON)

    def terms(self) -> Terms:
        """Return what the comparison is asked for."""
        limits = tuple(starmap(Limit, self.increases.limits().items()))
        return Terms(
            self.confidence,
            limits,
            allows_changes=self.allow_changes,
            when_undecided=self.undecided,
        )


@click.command("compare", cls=Command)
@takes(CompareOptions)
def command(options: CompareOptions) -> int:
    """Show whether HEAD is worse than BASE: results (.jsonl, .yaml) or a baseline (.json).

    BASE defaults to .agentv/baseline.json, HEAD to the latest results in .agentv/results/.

    With --by target, the only argument is a results file, by default the latest. Each of its targets is compared with
    the first one, or with that of --base.

    Cases are matched by suite and id. All cases together decide: their pass rate and mean score, single cases that got
    worse, and the limits of costs, tokens and times, which are those of HEAD's gate unless options set them. Run
    several trials (--repeat 5): a single one may be chance. Run both sides at the same time: the verdict takes trials
    as alike, whenever they ran.

    Exit code 1: worse; 3: no case is on both sides; 4: a case lost its verdict, a limit could not be checked, trials
    are missing that could decide, or judges, models or all cases differ; 6: undecided, since a case passes less often,
    which may be chance, or a limit is neither kept nor exceeded.

    \b
    Examples:
      agentv-ci compare
      agentv-ci compare main.jsonl --format json
      agentv-ci compare main.jsonl branch.jsonl --max-cost-increase 10% --max-p95-latency-increase 20%
      agentv-ci compare both.jsonl --by target --base small
      agentv-ci compare main.jsonl branch.jsonl --ledger agentv-history
    """
    cwd = Path.cwd()
    now, terms, base, head = datetime.now(UTC), options.terms(), options.base, options.head
    if options.by is not None:
        if head is not None:
            raise UsageError("--by target takes one results file")
        if options.ledger is not None:
            raise UsageError("--ledger is about two runs, not about the targets of one")
        name = base or require_latest(cwd)
        return _show_all(
            compare_by_target(cwd / name, options.base_target, terms, name=name, now=now),
            options.form,
        )
    if options.base_target is not None:
        raise UsageError("--base requires --by target")
    base = base or str(short(repository(cwd) / BASELINE, cwd))
    head = head or require_latest(cwd)
    comparison = compare_files(cwd / base, cwd / head, terms, names=(base, head), now=now)
    if options.ledger is not None:
        correlation = _correlation_in(options.ledger, cwd, now)
        comparison = comparison.model_copy(update={"trial_correlation": correlation})
    if options.form == "json":
        click.echo(json.dumps(_document(comparison), indent=2))
    else:
        _show(comparison)
    return _code(comparison)


def _correlation_in(place: str, cwd: Path, now: datetime) -> float | None:
    # Few comparisons have a ledger.
    from agentv_ci.app.results.history import DAYS, correlation_in
    from agentv_ci.ledger.place import LedgerPlace

    folder = cwd / place
    ledger = LedgerPlace(folder, None) if folder.is_dir() else LedgerPlace(repository(cwd), place)
    correlation = asyncio.run(
        correlation_in(
            ledger, system_environment(os.environ), since=now.date() - timedelta(days=DAYS)
        )
    )
    if correlation is None:
        show_warning(
            f"too few runs in the ledger '{place}' to estimate how alike the trials of one run are"
        )
    return correlation


def _show_all(comparisons: Sequence[Comparison], form: str) -> int:
    """Show the comparisons of targets, and return the worst exit code."""
    code = min(map(_code, comparisons), key=WORST_FIRST.index)
    if form == "json":
        document = {"comparisons": list(map(_document, comparisons)), "exit_code": code}
        click.echo(json.dumps(document, indent=2))
    else:
        for each in comparisons:
            _show(each)
    return code


def _code(comparison: Comparison) -> int:
    is_decided = not _withheld(comparison) and not comparison.unmeasured
    if comparison.reasons:
        return FAILED
    if not comparison.compared or comparison.lost or not is_decided:
        return INFRASTRUCTURE
    if comparison.undecided:
        return undecided_code(comparison.when_undecided)
    return PASSED


def _document(comparison: Comparison) -> JsonObject:
    return {**comparison.model_dump(), "exit_code": _code(comparison)}


def _withheld(comparison: Comparison) -> Sequence[str]:
    if comparison.statement is None:
        return ()
    return comparison.statement.withheld


def _is_incomparable(comparison: Comparison) -> bool:
    """Whether more than missing trials withholds the statement."""
    statement = comparison.statement
    return statement is not None and len(statement.withheld) > statement.missing_decide


def _show(comparison: Comparison) -> None:
    show_summary(comparison_lines(comparison))
    verdict, style, reasons = _conclusion(comparison)
    show_line(f"compare: {verdict}", style)
    for reason in reasons:
        show_line(f"  {reason}", style)
    if _is_incomparable(comparison) and not comparison.reasons:
        show_line(f"  hint: run both sides alike, or compare them with {ALLOW_CHANGES}", "plain")


def _conclusion(comparison: Comparison) -> tuple[str, Style, Sequence[str]]:
    """Return the verdict, how it is shown, and its reasons."""
    if not comparison.compared:
        return "no case has a verdict on both sides", "bad", ()
    if comparison.reasons:
        return "worse", "bad", comparison.reasons
    if withheld := _withheld(comparison):
        why = "trials are missing"
        if _is_incomparable(comparison):
            why = "the sides cannot be compared"
        return f"no decision, since {why}", "bad", withheld
    if comparison.unmeasured:
        return "a limit was not checked", "bad", comparison.unmeasured
    if comparison.lost:
        return f"verdict lost for {counted(comparison.lost, 'case')}", "bad", ()
    return _decided(comparison)


def _decided(comparison: Comparison) -> tuple[str, Style, Sequence[str]]:
    if comparison.undecided:
        passes = undecided_code(comparison.when_undecided) == PASSED
        return "undecided, which passes" if passes else "undecided", "warn", comparison.undecided
    is_better = comparison.statement is not None and comparison.statement.verdict == "better"
    return "better" if is_better else "no regression shown", "good", ()
