"""Options that several commands have."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from agentv_ci.cli.console import wants_color
from agentv_ci.errors import UsageError

if TYPE_CHECKING:
    from agentv_ci.app.compile import Selection
    from agentv_ci.app.report_files import Reports
    from agentv_ci.report.renderers import ReportFormat
    from agentv_ci.results.files import ResultsFormat

F = TypeVar("F", bound=Callable[..., object])
Options = TypeVar("Options")


def takes(options: Callable[..., Options]) -> Callable[[Callable[[Options], int]], Callable[..., int]]:
    """Give a command its options as one record, made of what click hands over by name."""

    def decorate(command: Callable[[Options], int]) -> Callable[..., int]:
        @wraps(command)
        def called(**given: object) -> int:
            return command(options(**given))

        return called

    return decorate


class FileName(click.ParamType[str]):
    """The name of a file or folder. Nothing is none: `--replay "$UNSET"` is a mistake, not a wish to ask everybody."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; says that it is missing."""
        if not value.strip():
            self.fail("the name is empty", param, ctx)
        return value


FILE = FileName()


class Count(click.IntRange):
    """A number of things; whatever is none is refused with the least that there can be."""

    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; click says what is wrong with one that is out of range. `value` may be any text."""
        try:
            int(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a whole number of at least {self.min}.", param, ctx)
        number: int = super().convert(value, param, ctx)
        return number


targets_option = click.option(
    "--targets",
    type=FILE,
    metavar="FILE",
    help="The targets file; default: targets.yaml or .agentv/targets.yaml beside the eval file or above it.",
)


def _one(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> str | None:
    if len(names) > 1:
        raise click.BadParameter("a run has one; several targets are several runs, for `compare`", ctx, param)
    return names[0] if names else None


target_option = click.option(
    "--target",
    metavar="NAME",
    multiple=True,
    callback=_one,
    help="Target of all cases; 'default' means no override.",
)
eval_id_option = click.option(
    "--eval-id", "eval_ids", metavar="ID", multiple=True, help="Only this case; globs; may be given again."
)


def selection_options(command: F) -> F:
    """Which cases, and what answers them; `SelectionOptions` has them with the paths."""
    return targets_option(target_option(eval_id_option(command)))


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which cases, and what answers them."""

    paths: tuple[str, ...]
    targets: str | None
    target: str | None
    eval_ids: tuple[str, ...]

    @property
    def selection(self) -> Selection:
        """The same for the application."""
        from agentv_ci.app.compile import Selection

        return Selection(self.paths, self.targets, self.target, self.eval_ids)


form_option = click.option(
    "--output-format",
    "form",
    type=click.Choice(["jsonl", "yaml"]),
    help="How rows are written; default: as the name of --out says, else jsonl.",
)
REPORTS: Mapping[ReportFormat, str] = {
    "html": "Write one HTML file too, to open in a browser.",
    "junit": "Write JUnit XML too, for CI servers.",
    "markdown": "Write Markdown too, for a job summary or a comment (at most 60,000 characters).",
    "sarif": "Write SARIF too, for code scanning.",
}
verbose_option = click.option(
    "--verbose", is_flag=True, help="Tell every question, retry and verdict on standard error."
)
workers_option = click.option(
    "--workers",
    type=Count(min=1),
    metavar="N",
    help="Cases at once (default: 1, in order, one at a time; more run in parallel and end in any order). "
    "Overrides the targets' own `workers`.",
)


class Range(click.FloatRange):
    """A range of numbers; NaN, which compares with nothing, is in none, and nothing is infinite."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; click says what is wrong with another one."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


SHARE = Range(0, 1)


def form_and_name(form: ResultsFormat | None, out: str | None) -> ResultsFormat:
    """Return how rows are written: as is said, else as the name says; raises UsageError where the two disagree.

    Readers of the file go by its name.
    """
    from agentv_ci.results.files import form_of

    if out is None:
        return form or "jsonl"
    named = form_of(Path(out))
    if form is not None and form != named:
        other = ".yaml" if form == "yaml" else ".jsonl"
        raise UsageError(f"--output-format {form} does not go with --out {out}", hint=f"give it a name in {other}")
    return named


def report_options(command: F) -> F:
    """Reports beside the results; `ReportOptions` has their files."""
    for name, says in reversed(tuple(REPORTS.items())):
        option = click.option(
            f"--{name}", type=FILE, metavar="FILE", help=says, expose_value=False, callback=_collect_report
        )
        command = option(command)
    return command


def _collect_report(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Hand all reports over as one option: `ReportOptions` does not name them."""
    ctx.params.setdefault("report_files", {})[param.name] = path


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The file of each report."""

    report_files: Mapping[ReportFormat, str | None]

    def reports(self, cwd: Path) -> Reports:
        """Return the reports to write; raises UsageError for standard output."""
        from agentv_ci.app.report_files import reports_in_workflow

        for name, path in self.report_files.items():
            if path == "-":
                raise UsageError(f"--{name} takes a file; standard output has the summary")
        files = {name: cwd / path for name, path in self.report_files.items() if path is not None}
        return reports_in_workflow(files, os.environ, cwd)


def gate_options(command: F) -> F:
    """What moves the gate; flags override the eval file."""
    options = (
        click.option("--threshold", type=SHARE, metavar="X", help="Score at which a case passes (default: 0.8)."),
        click.option("--min-pass-rate", type=SHARE, metavar="X", help="Gate: least share of graded cases that pass."),
        click.option("--min-mean-score", type=SHARE, metavar="X", help="Gate: least mean score."),
        click.option("--max-errors", type=Count(min=0), metavar="N", help="Gate: most errors."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What moves the gate; None leaves the eval file's own."""

    threshold: float | None
    min_pass_rate: float | None
    min_mean_score: float | None
    max_errors: int | None


def color_option(command: F) -> F:
    """`--color` is accepted before and after the command."""

    def set_color(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.color = wants_color(value)

    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=set_color,
        help="When to use colours.",
    )(command)
