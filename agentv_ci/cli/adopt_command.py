"""`agentv-ci adopt`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.app.results.adopting import COLUMNS, KINDS, AdoptWish, adopted
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.cli.console import show_outcome
from agentv_ci.cli.options import (
    BASELINE_HELP,
    FILE,
    SHARE,
    Command,
    argument,
    gate_option,
    option,
    part,
    path_in,
    takes,
)
from agentv_ci.cli.report_options import ReportOptions
from agentv_ci.contracts.other_tools import HowToRead, Scale
from agentv_ci.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class AdoptOptions:
    """Options of `adopt`."""

    results: tuple[str, ...] = argument(nargs=-1, required=True, type=FILE, metavar="RESULTS...")
    kind: str = option(
        "--from", type=click.Choice(KINDS), required=True, help="Name the tool that wrote them."
    )
    out: str = option(
        "--out",
        "-o",
        type=FILE,
        default="results.jsonl",
        show_default=True,
        help="Write the rows to FILE.",
    )
    maps: tuple[str, ...] = option(
        "--map",
        multiple=True,
        metavar="NAME=VALUE",
        help="FIELD=PATH: for jsonl, the path of the column of a field. "
        "TEXT=SCORE: the score that a text stands for.",
    )
    scales: tuple[str, ...] = option(
        "--scale",
        multiple=True,
        metavar="[NAME=]WORST:BEST",
        help="State the scale of the score NAME, or of all scores, unless it is 0:1.",
    )
    ignored: tuple[str, ...] = option(
        "--ignore",
        multiple=True,
        metavar="NAME",
        help="Leave out the score NAME; "
        "for jsonl, also a column that differs between trials of one case.",
    )
    threshold: float = option(
        "--threshold",
        type=SHARE,
        default=0.8,
        show_default=True,
        help="Set the score that passes where the tool has only scores.",
    )
    min_pass_rate: float | None = gate_option(
        "--min-pass-rate",
        type=SHARE,
        metavar="X",
        help="Require this share of graded cases to pass (default: 1).",
    )
    baseline: str | None = gate_option("--baseline", type=FILE, help=BASELINE_HELP)
    reports: ReportOptions = field(metadata=part(ReportOptions))


@click.command("adopt", cls=Command)
@takes(AdoptOptions)
def command(options: AdoptOptions) -> int:
    """Turn results of another tool into results that `report`, `compare`, `baseline` and the GitHub Action read.

    Prints the summary, applies the gate and writes reports, like `report`. Verdicts are the tool's own. The fields of
    `--map` are those of the lines by default; a path is a name, or names with dots: `--map id=case.name`.

    A score that is not a number from 0 to 1 is an error of its result, unless `--scale` or `--map` says how to read it.
    The gate does not pass if the file lacks results that it counts, or if the run did not finish.

    \b
    Examples:
      agentv-ci adopt results.json --from promptfoo --html report.html
      agentv-ci adopt junit.xml --from junit --out results.jsonl --baseline main.jsonl
      agentv-ci adopt scores.jsonl --from jsonl --map id=name --map answer=output.text --threshold 0.7
      agentv-ci adopt stars.jsonl --from jsonl --map score=rating --scale 1:5
      agentv-ci adopt log.json --from inspect --map A=1 --map B=0.5 --scale risk=10:0 --ignore length
    """
    return adopt(options, Path.cwd())


def adopt(options: AdoptOptions, cwd: Path) -> int:
    """Adopt results, print the summary, and return the exit code of the gate."""
    wish = AdoptWish(
        options.results,
        next(kind for kind in KINDS if kind == options.kind),
        Path(options.out),
        _how(options),
        options.min_pass_rate,
    )
    baseline = path_in(cwd, options.baseline)
    outcome, files = adopted(
        wish, options.reports.at(cwd), baseline=baseline, cwd=cwd, now=datetime.now(UTC)
    )
    show_outcome(outcome, files.written, cwd)
    return outcome.report.gate.exit_code


def _how(options: AdoptOptions) -> HowToRead:
    columns: dict[str, str] = {}
    grades: dict[str, float] = {}
    for written in options.maps:
        name, equals, value = written.rpartition("=")
        if not equals or not name or not value:
            raise UsageError(f"--map {written}: expected FIELD=PATH or TEXT=SCORE")
        share = _number(value)
        if name in columns or name.strip() in grades:
            raise UsageError(f"--map {written}: '{name}' is mapped twice")
        if name in COLUMNS and options.kind == "jsonl":
            columns[name] = value
        elif share is not None and 0 <= share <= 1:
            grades[name.strip()] = share
        else:
            raise _unusable(written, name, options.kind)
    if options.kind == "junit" and (grades or options.scales or options.ignored):
        raise UsageError("JUnit XML has no scores: --map, --scale and --ignore are of no use")
    scales: dict[str, Scale] = {}
    for written in options.scales:
        name, scale = _scale(written)
        if name in scales:
            raise UsageError(f"--scale {written}: this scale is stated twice")
        scales[name] = scale
    return HowToRead(options.threshold, columns, grades, scales, frozenset(options.ignored))


def _unusable(written: str, name: str, kind: str) -> UsageError:
    if kind != "jsonl":
        message = f"--map {written}: expected TEXT=SCORE, with a score from 0 to 1"
        return UsageError(message, hint="only jsonl has columns to map")
    message = f"--map {written}: unknown field '{name}'{did_you_mean(name, COLUMNS)}"
    return UsageError(
        message, hint=f"fields: {listed(COLUMNS)}; or TEXT=SCORE, with a score from 0 to 1"
    )


def _scale(written: str) -> tuple[str, Scale]:
    name, _, limits = written.rpartition("=")
    worst, best = map(_number, limits.partition(":")[::2])
    if worst is None or best is None or worst == best:
        raise UsageError(
            f"--scale {written}: expected WORST:BEST or NAME=WORST:BEST, such as 1:5 or risk=10:0"
        )
    return name, Scale(worst, best)


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
