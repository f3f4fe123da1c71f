"""`agentv-ci compile`."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import click

from agentv_ci.app.documents.compile import (
    CompiledPlan,
    Origin,
    compile_paths,
    is_experiment,
    plan_document,
    write_plan,
)
from agentv_ci.app.documents.previews import diff_plans, estimate_run, planned_cases
from agentv_ci.base.atomic import refuse_to_overwrite, write_whole
from agentv_ci.base.text import counted
from agentv_ci.cli.console import one_line, show_count, show_line, show_warnings_of
from agentv_ci.cli.listing import estimated_dollars, show_cases, show_table, time_text
from agentv_ci.cli.options import (
    EVALS,
    FILE,
    Command,
    Count,
    argument,
    given_in,
    list_option,
    option,
    part,
    takes,
)
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.compile.document import PlanDocument
from agentv_ci.contracts.command_output import Estimate, NamedCase, PlanDiff
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.jsonschema.schemas import TITLES, text


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompileOptions:
    """Options of `compile`."""

    paths: tuple[str, ...] = argument(nargs=-1, metavar="[PATH…]")
    out: str = option(
        "--out",
        default="-",
        type=FILE,
        help="Write the plan to FILE, or to standard output with '-' "
        "(not with --diff, --estimate or --list).",
        show_default=True,
    )
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    schemas: str | None = option(
        "--schemas",
        type=FILE,
        metavar="DIR",
        help="Write the published JSON Schemas to DIR, and a plan only if PATH is given.",
    )
    old_plan: str | None = option(
        "--diff",
        type=FILE,
        metavar="OLD_PLAN",
        help="Print which cases were added, changed or removed since OLD_PLAN, and why.",
    )
    power: str | None = option(
        "--power",
        type=FILE,
        metavar="FILE",
        help="Print which change N trials show in the experiment FILE, "
        "or in runs like the results FILE. PATH: earlier "
        "results that say how answers vary.",
    )
    form: Literal["text", "json"] = option(
        "--format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Set the output format of --diff, --estimate, --power and --list.",
    )
    wants_list: bool = list_option()
    wants_estimate: bool = option(
        "--estimate", is_flag=True, help="Print requests, tokens, cost and time of a run."
    )
    workers: int | None = option(
        "--workers", type=Count(min=1), help="Estimate a run with N cases in parallel."
    )

    def require_consistency(self) -> None:
        """Raise UsageError for options that cannot be combined."""
        questions = {
            "--diff": self.old_plan,
            "--estimate": self.wants_estimate,
            "--power": self.power,
            "--list": self.wants_list,
        }
        given = given_in(questions)
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} cannot be combined")
        if self.form != "text" and not given:
            raise UsageError(
                "--format requires --diff, --estimate, --power or --list; a plan is always JSON"
            )
        if self.workers is not None and not self.wants_estimate and self.power is None:
            raise UsageError(
                "--workers requires --estimate or --power; for a run, use `eval --workers`"
            )


@click.command("compile", cls=Command)
@takes(CompileOptions)
def command(options: CompileOptions) -> int:
    """Compile eval files (default: evals/) into one JSON plan. The same files always give the same bytes.

    \b
    Examples:
      agentv-ci compile evals/ --out plan.json
      agentv-ci compile evals/example.test.yaml | jq '.cases[].id'
      agentv-ci compile evals/ --diff plan.json
      agentv-ci compile evals/ --estimate --workers 8
      agentv-ci compile --power experiment.yaml
      agentv-ci compile --power experiment.yaml earlier.jsonl
      agentv-ci compile --schemas schemas/
    """
    if options.schemas is not None:
        _write_schemas(Path(options.schemas))
    options.require_consistency()
    if options.power is not None:
        from agentv_ci.cli.power_table import show_power  # few plans are experiments

        show_power(options.power, options.paths, options.selection, options.workers, options.form)
    elif options.old_plan is not None or options.wants_estimate or options.wants_list:
        _answer(options)
    elif options.paths or options.schemas is None:
        _compile(options)
    return PASSED


def _experiment(options: CompileOptions) -> CompiledPlan | None:
    """Return the plan of an experiment; None if the only path is not one."""
    if len(options.paths) != 1 or not is_experiment(Path(options.paths[0])):
        return None
    from agentv_ci.app.documents.commit_trees import CommitTrees  # few plans are of experiments
    from agentv_ci.app.run.experiment import compile_experiment

    with CommitTrees(os.environ) as trees:
        selection = options.selection.of(())
        return compile_experiment(options.paths[0], selection, cwd=Path.cwd(), trees=trees).compiled


def _answer(options: CompileOptions) -> None:
    """Print a diff, a list or an estimate; write the plan only if a file is named."""
    compiled = _experiment(options) or compile_paths(
        options.selection.of(options.paths or (EVALS,)), cwd=Path.cwd()
    )
    show_warnings_of(compiled.origin)
    if options.out != "-":
        refuse_to_overwrite([Path.cwd() / options.out], compiled.origin.sources)
    if options.old_plan is not None:
        diff = diff_plans(compiled, Path(options.old_plan), options.selection.only())
        _show_diff(diff, len(compiled.plan.cases), options.form)
    elif options.wants_list:
        show_cases(planned_cases(compiled.plan), options.form)
    else:
        _show_estimate(estimate_run(compiled, workers=options.workers), options.form)
    if options.out != "-":
        with tempfile.TemporaryFile() as scratch:
            _write(plan_document(compiled.plan, scratch), options.out)


def _write_schemas(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--schemas: '{folder}' is not a directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in TITLES:
            (folder / f"{name}.schema.json").write_text(text(name), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write '{error.filename or folder}': {error.strerror}") from error
    click.echo(f"{len(TITLES)} schemas written to {folder}", err=True)


def _compile(options: CompileOptions) -> None:
    with tempfile.TemporaryFile() as scratch:
        document, origin = _document(options, scratch)
        show_warnings_of(origin)
        if options.out != "-":
            refuse_to_overwrite([Path.cwd() / options.out], origin.sources)
            _write(document, options.out)
        elif sys.stdout is None:
            raise UsageError("standard output is closed; use --out FILE")
        else:
            document.copy_to(sys.stdout.buffer)


def _document(options: CompileOptions, scratch: BinaryIO) -> tuple[PlanDocument, Origin]:
    if (experiment := _experiment(options)) is not None:
        return plan_document(experiment.plan, scratch), experiment.origin
    selection = options.selection.of(options.paths or (EVALS,))
    with show_count("cases compiled") as watch:
        try:
            return write_plan(selection, cwd=Path.cwd(), scratch=scratch, watch=watch)
        except OSError as error:
            error.filename = error.filename or tempfile.gettempdir()
            raise


def _write(document: PlanDocument, out: str) -> None:
    """Write the document; replace a regular file only once all of it is written."""
    try:
        write_whole(Path(out), document.copy_to)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        raise UsageError(f"cannot write '{out}': {error.strerror}") from error
    click.echo(f"{counted(document.cases, 'case')} compiled to {out}", err=True)


def _show_diff(diff: PlanDiff, cases: int, form: Literal["text", "json"]) -> None:
    if form == "json":
        click.echo(diff.model_dump_json(indent=2))
        return
    for changed in diff.changed:
        _show_case("changed", changed, "warn")
        for reason in changed.reasons:
            click.echo(f"    {one_line(reason)}")
    for added in diff.added:
        _show_case("added", added, "good")
    for removed in diff.removed:
        _show_case("removed", removed, "bad")
    unchanged = cases - len(diff.changed) - len(diff.added)
    click.echo(
        f"{len(diff.changed)} changed, {len(diff.added)} added, "
        f"{len(diff.removed)} removed, {unchanged} unchanged"
    )


def _show_case(what: str, case: NamedCase, style: str) -> None:
    target = f"  {one_line(case.target)}" if case.target is not None else ""
    show_line(f"{what}  {one_line(case.id)}{target}  ({one_line(case.row or case.suite)})", style)


def _show_estimate(estimate: Estimate, form: Literal["text", "json"]) -> None:
    if form == "json":
        click.echo(estimate.model_dump_json(indent=2))
        return
    show_table(_estimate_rows(estimate), left=2)
    trials, cases = counted(estimate.trials, "trial"), counted(estimate.cases, "case")
    workers = counted(estimate.workers, "worker")
    click.echo(f"{trials} of {cases}, about {time_text(estimate.seconds)} with {workers}")
    for each in estimate.targets:
        if each.target in estimate.unpriced:
            what = f"target '{each.target}'"
            if each.model:
                what = f"model '{each.model}' of {what}"
            cure = "set `prices` in .agentv/config.yaml"
            show_line(f"unknown price of {one_line(what)}, not in the cost: {cure}", "warn")
    click.echo(
        f"approximate, without retries, at public prices of {estimate.prices_as_of}; "
        "see `prices` in config.yaml"
    )


def _estimate_rows(estimate: Estimate) -> list[tuple[str, ...]]:
    rows = [("target", "model", "requests", "tokens in", "tokens out", "cost")]
    for each in estimate.targets:
        asked, requests = each.model or f"({each.provider})", each.answers + each.judgements
        figures = _figures(requests, each.input_tokens, each.output_tokens, each.cost_usd)
        rows.append((each.target, asked, *figures))
    total = _figures(
        estimate.requests, estimate.input_tokens, estimate.output_tokens, estimate.cost_usd
    )
    return [*rows, ("total", "", *total)]


def _figures(
    requests: int, tokens_in: int, tokens_out: int, cost_usd: float | None
) -> tuple[str, str, str, str]:
    return f"{requests:,}", f"{tokens_in:,}", f"{tokens_out:,}", estimated_dollars(cost_usd)
