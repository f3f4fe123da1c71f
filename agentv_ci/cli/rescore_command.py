"""`agentv-ci rescore`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from agentv_ci.app.results.rescore import prepare_rescoring, rescore
from agentv_ci.app.run.files import RunFiles
from agentv_ci.cli.again import options_again
from agentv_ci.cli.console import (
    ignoring_lost_output,
    show_diagnostics,
    show_line,
    show_outcome,
    show_warning,
)
from agentv_ci.cli.defaults import require_latest
from agentv_ci.cli.options import (
    FILE,
    Command,
    GateOptions,
    Verbosity,
    argument,
    form_option,
    option,
    part,
    path_in,
    results_option,
    takes,
    typed_command,
    workers_option,
)
from agentv_ci.cli.report_options import ReportOptions, form_and_name
from agentv_ci.cli.running import run
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.compile.overrides import Overrides
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.results.files import ResultsFormat


@dataclass(frozen=True, kw_only=True)
class RescoreOptions:
    """Options of `rescore`."""

    results: str | None = argument(required=False, metavar="[RESULTS]")
    paths: tuple[str, ...] = argument(nargs=-1, metavar="[PATH…]")
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    workers: int | None = workers_option()
    dry_run: bool = option(
        "--dry-run", group="Run options", is_flag=True, help="Let the mock judge; skip the gate."
    )
    out: str | None = results_option(
        "--out", type=FILE, help="Write the results to FILE (default: <results>.rescored.<format>)."
    )
    form: ResultsFormat | None = form_option()  # noqa: RUF009  # a declaration
    gate: GateOptions = field(metadata=part(GateOptions))
    reports: ReportOptions = field(metadata=part(ReportOptions))
    verbosity: Verbosity = field(metadata=part(Verbosity))

    def files(self, results: Path, cwd: Path) -> RunFiles:
        """Return where results and reports go.

        Raises UsageError for names that contradict the format.
        """
        form = form_and_name(self.form, self.out)
        rescored = path_in(cwd, self.out) or results.with_suffix(f".rescored.{form}")
        return RunFiles(rescored, form, self.reports.at(cwd))


@click.command("rescore", cls=Command)
@takes(RescoreOptions)
def command(options: RescoreOptions) -> int:
    """Score the answers of an earlier run with the current evaluators. Only judges are asked.

    RESULTS defaults to the latest in .agentv/results/. PATH: eval files, folders, globs or one plan (default: the eval
    files named in the results), compiled for the target that answered. Answers are scored even if their question has
    changed since. Evaluators of tool calls require a run without --no-trace.

    \b
    Examples:
      agentv-ci rescore
      agentv-ci rescore main.jsonl evals/example.test.yaml --eval-id 'knows-*' --verbose
      agentv-ci rescore main.jsonl plan.json --out again.jsonl
    """
    cwd = Path.cwd()
    results = cwd / (options.results or require_latest(cwd))
    rescoring = prepare_rescoring(results, options.selection.of(options.paths), cwd=cwd)
    origin = rescoring.compiled.origin
    left_out = () if options.verbosity.quiet else rescoring.left_out
    if not options.verbosity.quiet:
        with ignoring_lost_output():
            show_diagnostics(origin.warnings, err=True)
    for sentence in left_out:
        show_warning(sentence)
    dry_run = options.dry_run or rescoring.is_dry_run
    again = options_again(
        origin.root,
        cwd,
        paths={"--targets": options.selection.targets},
        values={"--threshold": options.gate.threshold},
        dry_run=dry_run,
    )
    how = RunOptions(
        root=origin.root,
        workers=options.workers,
        dry_run=dry_run,
        command=typed_command(),
        again=again,
    )
    files = options.files(results, cwd)
    work = partial(rescore, rescoring, Overrides(**vars(options.gate)), how, files)
    outcome = run(work, files, dotenv_files=origin.dotenv_files, verbosity=options.verbosity)
    show_outcome(outcome, files.written, cwd, quiet=options.verbosity.quiet)
    for sentence in left_out:
        show_line(sentence, "warn")
    return outcome.report.gate.exit_code
