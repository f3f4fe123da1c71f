"""Options: how a command declares them, as fields of one record, and those that several commands have."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from agentv_ci.cli.console import wants_color
from agentv_ci.errors import UsageError

if TYPE_CHECKING:
    from agentv_ci.app.compile import Selection
    from agentv_ci.app.report_files import Reports
    from agentv_ci.results.files import ResultsFormat

F = TypeVar("F", bound=Callable[..., object])
Options = TypeVar("Options")


def _declared(declare: Callable[..., object], *names: str, **settings: Any) -> Any:  # noqa: ANN401  # fields are of any type
    """Return a field of a record of options, with what makes it one of a command's parameters."""
    return field(metadata={"declare": partial(declare, *names, **settings)})


option = partial(_declared, click.option)
"""Declares a field as an option of the command; takes what `click.option` takes."""
argument = partial(_declared, click.argument)
"""Declares a field as an argument of the command; takes what `click.argument` takes."""


def part(record: type[Any]) -> Mapping[str, type[Any]]:
    """Return the metadata of a field that holds further options, which several commands have."""
    return {"record": record}


def takes(record: type[Options]) -> Callable[[Callable[[Options], int]], Callable[..., int]]:
    """Give a command the options that the fields of a record declare, in their order, and hand them over as one."""

    def decorate(command: Callable[[Options], int]) -> Callable[..., int]:
        @wraps(command)
        def called(**given: object) -> int:
            return command(record_of(record, given))

        decorated: Callable[..., int] = called
        for declare in reversed([*_declarations(record), color_option]):
            decorated = declare(decorated)
        return decorated

    return decorate


def _declarations(record: type[Any]) -> Iterator[Callable[[F], F]]:
    for each in fields(record):
        if "record" in each.metadata:
            yield from _declarations(each.metadata["record"])
        else:
            yield each.metadata["declare"](each.name)


def record_of(record: type[Options], given: Mapping[str, object]) -> Options:
    """Return a record of options, made of what click hands over by name."""
    values = {
        each.name: record_of(each.metadata["record"], given) if "record" in each.metadata else given[each.name]
        for each in fields(record)  # type: ignore[arg-type]  # records are dataclasses
    }
    return record(**values)


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


class Range(click.FloatRange):
    """A range of numbers; NaN, which compares with nothing, is in none, and nothing is infinite."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; click says what is wrong with another one."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


SHARE = Range(0, 1)


targets_option = partial(
    option,
    "--targets",
    type=FILE,
    metavar="FILE",
    help="The targets file; default: targets.yaml or .agentv/targets.yaml beside the eval file or above it.",
)
form_option = partial(
    option,
    "--output-format",
    type=click.Choice(["jsonl", "yaml"]),
    help="How rows are written; default: as the name of --out says, else jsonl.",
)
verbose_option = partial(
    option, "--verbose", is_flag=True, help="Tell every question, retry and verdict on standard error."
)
workers_option = partial(
    option,
    "--workers",
    type=Count(min=1),
    metavar="N",
    help="Cases at once (default: 1, in order, one at a time; more run in parallel and end in any order). "
    "Overrides the targets' own `workers`.",
)


def _one(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> str | None:
    if len(names) > 1:
        raise click.BadParameter("a run has one; several targets are several runs, for `compare`", ctx, param)
    return names[0] if names else None


@dataclass(frozen=True)
class SelectionOptions:
    """Which cases, and what answers them."""

    targets: str | None = targets_option()
    target: str | None = option(
        "--target",
        metavar="NAME",
        multiple=True,
        callback=_one,
        help="Target of all cases; 'default' means no override.",
    )
    eval_ids: tuple[str, ...] = option(
        "--eval-id", metavar="ID", multiple=True, help="Only this case; globs; may be given again."
    )

    def of(self, paths: tuple[str, ...]) -> Selection:
        """Return what these options select of paths."""
        from agentv_ci.app.compile import Selection

        return Selection(paths, self.targets, self.target, self.eval_ids)


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


@dataclass(frozen=True)
class ReportOptions:
    """The file of each report."""

    html: str | None = option(
        "--html", type=FILE, metavar="FILE", help="Write one HTML file too, to open in a browser."
    )
    junit: str | None = option("--junit", type=FILE, metavar="FILE", help="Write JUnit XML too, for CI servers.")
    markdown: str | None = option(
        "--markdown",
        type=FILE,
        metavar="FILE",
        help="Write Markdown too, for a job summary or a comment (at most 60,000 characters).",
    )
    sarif: str | None = option("--sarif", type=FILE, metavar="FILE", help="Write SARIF too, for code scanning.")

    def at(self, cwd: Path) -> Reports:
        """Return the reports to write; raises UsageError for standard output."""
        from agentv_ci.app.report_files import reports_in_workflow
        from agentv_ci.report.renderers import ReportFormat

        names = [name for name in get_args(ReportFormat) if getattr(self, name) is not None]
        for name in names:
            if getattr(self, name) == "-":
                raise UsageError(f"--{name} takes a file; standard output has the summary")
        return reports_in_workflow({name: cwd / getattr(self, name) for name in names}, os.environ, cwd)


@dataclass(frozen=True)
class GateOptions:
    """What moves the gate; None leaves the eval file's own."""

    threshold: float | None = option(
        "--threshold", type=SHARE, metavar="X", help="Score at which a case passes (default: 0.8)."
    )
    min_pass_rate: float | None = option(
        "--min-pass-rate", type=SHARE, metavar="X", help="Gate: least share of graded cases that pass."
    )
    min_mean_score: float | None = option("--min-mean-score", type=SHARE, metavar="X", help="Gate: least mean score.")
    max_errors: int | None = option("--max-errors", type=Count(min=0), metavar="N", help="Gate: most errors.")


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
