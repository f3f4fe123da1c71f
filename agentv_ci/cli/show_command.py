"""`agentv-ci show`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from agentv_ci.app.results.show import rows_of_case
from agentv_ci.app.run.files import read_run_report
from agentv_ci.cli.console import show_line, show_summary
from agentv_ci.cli.defaults import require_latest
from agentv_ci.cli.options import FILE, Command, argument, option, takes
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.report.case_lines import case_lines


@dataclass(frozen=True)
class ShowOptions:
    """Options of `show`."""

    names: tuple[str, ...] = argument(nargs=-1, required=True, type=FILE, metavar="[RESULTS] CASE")
    target: tuple[str, ...] = option(
        "--target",
        metavar="NAME",
        multiple=True,
        help="Show only this target's answers; repeatable.",
    )


@click.command("show", cls=Command)
@takes(ShowOptions)
def command(options: ShowOptions) -> int:
    """Show all that is known of a case: question, expected answer, trials, evaluators and tool calls.

    CASE is an id or a glob. RESULTS defaults to the latest in .agentv/results/.

    \b
    Examples:
      agentv-ci show knows-the-capital
      agentv-ci show both.jsonl 'explains-*' --target small
    """
    if len(options.names) > 2:  # two arguments
        raise UsageError("name one case, and results before it")
    *results, case = options.names
    cwd = Path.cwd()
    path = cwd / (results[0] if results else require_latest(cwd))
    report = read_run_report(path)
    again = report.again if report is not None else ()
    for number, rows in enumerate(rows_of_case(path, case, options.target)):
        if number:
            show_line("", "plain")
        show_summary(case_lines(rows, again))
    return PASSED
