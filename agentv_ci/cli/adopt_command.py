"""`agentv-ci adopt`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.app.adopting import COLUMNS, KINDS, AdoptWish, adopted
from agentv_ci.cli.console import show_outcome
from agentv_ci.cli.options import (
    BASELINE_HELP,
    FILE,
    SHARE,
    Command,
    ReportOptions,
    argument,
    gate_option,
    option,
    part,
    takes,
)
from agentv_ci.errors import UsageError
from agentv_ci.text import did_you_mean, listed


@dataclass(frozen=True, kw_only=True)
class AdoptOptions:
    """Options of `adopt`."""

    results: tuple[str, ...] = argument(nargs=-1, required=True, type=FILE, metavar="RESULTS...")
    kind: str = option("--from", type=click.Choice(KINDS), required=True, help="Name the tool that wrote them.")
    out: str = option(
        "--out", "-o", type=FILE, default="results.jsonl", show_default=True, help="Write the rows to FILE."
    )
    columns: tuple[str, ...] = option(
        "--map", multiple=True, metavar="FIELD=PATH", help="For jsonl: the path of the column of a field."
    )
    threshold: float = option(
        "--threshold",
        type=SHARE,
        default=0.8,
        show_default=True,
        help="Set the score that passes where the tool has only scores.",
    )
    min_pass_rate: float | None = gate_option(
        "--min-pass-rate", type=SHARE, metavar="X", help="Require this share of graded cases to pass (default: 1)."
    )
    baseline: str | None = gate_option("--baseline", type=FILE, help=BASELINE_HELP)
    reports: ReportOptions = field(metadata=part(ReportOptions))


@click.command("adopt", cls=Command)
@takes(AdoptOptions)
def command(options: AdoptOptions) -> int:
    """Turn results of another tool into results that `report`, `compare`, `baseline` and the GitHub Action read.

    Prints the summary, applies the gate and writes reports, like `report`. Verdicts are the tool's own. The fields of
    `--map` are those of the lines by default; a path is a name, or names with dots: `--map id=case.name`.

    \b
    Examples:
      agentv-ci adopt results.json --from promptfoo --html report.html
      agentv-ci adopt junit.xml --from junit --out results.jsonl --baseline main.jsonl
      agentv-ci adopt scores.jsonl --from jsonl --map id=name --map answer=output.text --threshold 0.7
    """
    return adopt(options, Path.cwd())


def adopt(options: AdoptOptions, cwd: Path) -> int:
    """Adopt results, print the summary, and return the exit code of the gate."""
    wish = AdoptWish(
        options.results,
        next(kind for kind in KINDS if kind == options.kind),
        Path(options.out),
        dict(_pair(each) for each in options.columns),
        options.threshold,
        options.min_pass_rate,
    )
    baseline = cwd / options.baseline if options.baseline else None
    outcome, files = adopted(wish, options.reports.at(cwd), baseline=baseline, cwd=cwd, now=datetime.now(UTC))
    show_outcome(outcome, files.written, cwd)
    return outcome.report.gate.exit_code


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise UsageError(f"--map {text}: expected FIELD=PATH")
    if name not in COLUMNS:
        raise UsageError(f"--map {text}: unknown field '{name}'{did_you_mean(name, COLUMNS)}", hint=listed(COLUMNS))
    return name, path
