"""Options: declared as fields of one record per command, and those that several commands share."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from agentv_ci.base.mappings import known
from agentv_ci.cli.console import wants_color
from agentv_ci.contracts.gate import (
    METRICS,
    PERCENTAGE,
    Increases,
    WhenUndecided,
    setting_of,
    share_of,
)
from agentv_ci.errors import UsageError

F = TypeVar("F", bound=Callable[..., object])
Options = TypeVar("Options")


def complete_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave the completion of a word to the shell, which knows the files."""
    return [CompletionItem(incomplete, type="file")]


class FileName(click.ParamType[str]):
    """The name of a file or folder. An empty one, as from `--replay "$UNSET"`, is an error."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if not value.strip():
            self.fail("the name is empty", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """See complete_files."""
        return complete_files(ctx, param, incomplete)


FILE = FileName()
EVALS = "evals/"
"""The folder that commands read if no path is given."""


class Option(click.Option):
    """An option that belongs to a group in the help."""

    def __init__(self, *args: Any, group: str = "Options", **settings: Any) -> None:  # noqa: ANN401  # passed on
        super().__init__(*args, **settings)
        self.group = group


TYPED = "agentv_ci.typed"
"""Where a context has the arguments of its command."""


def typed_command() -> str:
    """Return the command that runs, as it was typed."""
    context = click.get_current_context()
    return shlex.join(
        ["agentv-ci", *context.command_path.split()[1:], *context.meta.get(TYPED, ())]
    )


class Command(click.Command):
    """A command whose help shows options by group.

    Its arguments are known as they were typed.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments."""
        ctx.meta[TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, ungrouped ones last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (
                isinstance(parameter, click.Option)
                and (record := parameter.get_help_record(ctx)) is not None
            ):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for title in sorted(groups, key=lambda title: title == "Options"):
            with formatter.section(title):
                formatter.write_dl(groups[title])


def _declared(declare: Callable[..., object], *names: str, **settings: Any) -> Any:  # noqa: ANN401  # fields are of any type
    """Return a field of a record that declares a parameter of a command."""
    return field(metadata={"declare": partial(declare, *names, **settings)})


option = partial(_declared, click.option, cls=Option)
"""Declares a field as an option of the command; accepts what `click.option` accepts, and `group`.
"""
argument = partial(_declared, click.argument, shell_complete=complete_files)
"""Declares a field as an argument of the command, by default a file; accepts what `click.argument`
accepts.
"""
paths_argument = partial(
    argument, nargs=-1, metavar="[PATH…]", callback=lambda _, __, paths: paths or (EVALS,)
)
"""Declares a field for eval files, folders and globs; without any, those of the default folder."""
selection_option = partial(option, group="Selection")
results_option = partial(option, group="Results")
gate_option = partial(option, group="Gate")
report_option = partial(option, group="Reports", type=FILE)


def part(record: type[Any]) -> Mapping[str, type[Any]]:
    """Return the metadata of a field that holds options shared by several commands."""
    return {"record": record}


def takes(record: type[Options]) -> Callable[[Callable[[Options], int]], Callable[..., int]]:
    """Give a command the options that a record declares, and call it with the record."""

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
        elif "declare" in each.metadata:
            yield each.metadata["declare"](each.name)


def record_of(record: type[Options], given: Mapping[str, object]) -> Options:
    """Return a record of options from click's parameters.

    A field that declares nothing has its default.
    """
    values: dict[str, object] = {}
    for setting in fields(record):  # type: ignore[arg-type]  # records are dataclasses
        if "record" in setting.metadata:
            values[setting.name] = record_of(setting.metadata["record"], given)
        elif setting.metadata:
            values[setting.name] = given[setting.name]
    return record(**values)


def path_in(folder: Path, name: str | None) -> Path | None:
    """Return the path that an option names; None if it is not set."""
    return folder / name if name else None


class Count(click.IntRange):
    """A whole number with a minimum, which the error names."""

    name = "n"

    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; `value` may be any text."""
        try:
            int(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a whole number of at least {self.min}.", param, ctx)
        number: int = super().convert(value, param, ctx)
        return number


class Range(click.FloatRange):
    """A range of finite numbers, without NaN."""

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; `value` may be any text."""
        try:
            float(str(value))
        except ValueError:
            bounds = f"of at least {self.min}"
            if self.max is not None:
                bounds = f"from {self.min} to {self.max}, such as 0.9"
            self.fail(f"{value!r} is not a number {bounds}.", param, ctx)
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


SHARE = Range(0, 1)


class PercentageType(click.ParamType[float]):
    """A percentage such as `10%`, as a share."""

    name = "percentage"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share; fail on anything else, such as a number, which may mean 1% or 100%."""
        text = str(value)
        if re.fullmatch(PERCENTAGE, text) is None:
            self.fail(f"{text!r} is not a percentage such as 10%.", param, ctx)
        return share_of(text)


TEXT_OR_JSON: Mapping[str, Any] = {
    "type": click.Choice(["text", "json"]),
    "default": "text",
    "show_default": True,
    "help": "Print text for people or JSON for programs.",
}
UNDECIDED = "--undecided"
UNDECIDED_HELP = (
    "Exit with 0 (pass) or 1 (fail) instead of 6 if too few trials leave the comparison open."
)
BASELINE_HELP = "Fail on regressions against FILE, a baseline or earlier results."
ALLOW_CHANGES = "--allow-changes"
ALLOW_CHANGES_HELP = "Compare although judges, models, questions or evaluators differ."
targets_option = partial(
    selection_option,
    "--targets",
    type=FILE,
    help="Use this targets file (default: the nearest targets.yaml or .agentv/targets.yaml "
    "at or above the eval file).",
)
form_option = partial(
    results_option,
    "--output-format",
    type=click.Choice(["jsonl", "yaml"]),
    help="Set the format of the results (default: by the suffix of --out, else jsonl).",
)
list_option = partial(
    selection_option,
    "--list",
    is_flag=True,
    help="Print what would run: suite, case, target and trials.",
)
verbose_option = partial(
    option,
    "--verbose",
    "-v",
    is_flag=True,
    help="Log questions, retries and verdicts to standard error.",
)
workers_option = partial(
    option,
    "--workers",
    group="Run options",
    type=Count(min=1),
    help="Run N cases in parallel, in any order (default: as many as the `workers` of the "
    "targets add up to, else one at a time, in order).",
)


@dataclass(frozen=True, eq=False, repr=False)
class Verbosity:
    """How much a run shows."""

    verbose: bool = verbose_option()
    quiet: bool = option("--quiet", "-q", is_flag=True, help="Print only the verdict, in one line.")

    def __post_init__(self) -> None:
        """Raise UsageError for options that contradict each other."""
        if self.verbose and self.quiet:
            raise UsageError("--verbose and --quiet cannot be combined")


@dataclass(frozen=True, eq=False, repr=False)
class GateOptions:
    """Settings of the gate; None keeps those of the eval file."""

    threshold: float | None = gate_option(
        "--threshold",
        type=SHARE,
        metavar="X",
        help="Pass a case that scores at least X (default: 0.8).",
    )
    min_pass_rate: float | None = gate_option(
        "--min-pass-rate",
        type=SHARE,
        metavar="X",
        help="Require this share of graded cases to pass.",
    )
    min_mean_score: float | None = gate_option(
        "--min-mean-score", type=SHARE, metavar="X", help="Require a mean score of at least X."
    )
    max_errors: int | None = gate_option(
        "--max-errors", type=Count(min=0), help="Allow at most N errors."
    )


@dataclass(frozen=True, eq=False, repr=False)
class BaselineOptions:
    """What a run is compared with."""

    baseline: str | None = gate_option("--baseline", type=FILE, help=BASELINE_HELP)
    allow_changes: bool = gate_option(ALLOW_CHANGES, is_flag=True, help=ALLOW_CHANGES_HELP)

    undecided: WhenUndecided | None = gate_option(  # noqa: RUF009  # a declaration
        UNDECIDED, type=click.Choice(["pass", "fail"]), help=UNDECIDED_HELP
    )

    def path(self, cwd: Path) -> Path | None:
        """Return the file; raises UsageError for --allow-changes and --undecided without one."""
        if self.undecided is not None and self.baseline is None:
            raise UsageError(f"{UNDECIDED} requires --baseline")
        if self.allow_changes and self.baseline is None:
            raise UsageError(f"{ALLOW_CHANGES} requires --baseline")
        return path_in(cwd, self.baseline)


def _increase(metric: str, of: str) -> Any:  # noqa: ANN401  # declares a field
    name = f"--max-{metric}-increase"
    return gate_option(
        name, type=PercentageType(), metavar="X%", help=f"Allow at most X% more {of} than before."
    )


@dataclass(frozen=True, eq=False, repr=False)
class IncreaseOptions:
    """Limits of what a run may cost and take, compared with an earlier one.

    None keeps those of the eval file.
    """

    max_cost_increase: float | None = _increase("cost", "cost of answers")
    max_tokens_increase: float | None = _increase("tokens", "tokens of answers")
    max_mean_latency_increase: float | None = _increase("mean-latency", "time per answer")
    max_p95_latency_increase: float | None = _increase("p95-latency", "time for 95% of answers")

    def limits(self) -> Increases:
        """Return the limits that are given."""
        given = {metric: getattr(self, setting_of(metric)) for metric in METRICS}
        return known(given)


def given_in(options: Mapping[str, object]) -> list[str]:
    """Return the names of the options that are given."""
    return [name for name, value in options.items() if value]


def color_option(command: F) -> F:
    """Accept `--color` after the command, as before it."""

    def set_color(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.color = wants_color(value)

    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=set_color,
        help="Control colored output.",
    )(command)
