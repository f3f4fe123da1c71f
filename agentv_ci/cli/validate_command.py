"""`agentv-ci validate`."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Literal

import click

from agentv_ci.app.documents.validate import Checks, check_paths
from agentv_ci.base.text import counted, listed
from agentv_ci.cli.console import show_diagnostics, show_line
from agentv_ci.cli.options import Count, option, paths_argument, takes, targets_option
from agentv_ci.errors import FAILED, PASSED, NothingToRun
from agentv_ci.load.discover import NO_EVALS_HINT


@dataclass(frozen=True, eq=False, repr=False)
class ValidateOptions:
    """Options of `validate`."""

    paths: tuple[str, ...] = paths_argument()
    form: Literal["text", "json", "github", "sarif"] = option(
        "--format",
        type=click.Choice(["text", "json", "github", "sarif"]),
        default="text",
        show_default=True,
        help="Print text for people, JSON for programs, annotations for a GitHub workflow, "
        "or SARIF for code scanning.",
    )
    strict: bool = option("--strict", is_flag=True, help="Fail on warnings too.")
    jobs: int | None = option(
        "--jobs", type=Count(min=1), help="Use N processes (default: one per core)."
    )
    targets: str | None = targets_option(group="Options")
    explains_isolation: bool = option(
        "--explain-isolation",
        is_flag=True,
        help="Say which isolation of workspaces this machine has, and stop.",
    )


@click.command("validate")
@takes(ValidateOptions)
def command(options: ValidateOptions) -> int:
    """Check eval, targets, config and quarantine files and show the line of every mistake.

    PATH is a file, a folder or a glob (default: evals/). Exit code 0: valid; 1: errors, or warnings with --strict;
    2: a path does not exist; 3: nothing to check.

    \b
    Examples:
      agentv-ci validate evals/
      agentv-ci validate evals/example.test.yaml .agentv/targets.yaml
      agentv-ci validate 'evals/**/*.yaml' --format json
      agentv-ci validate . --strict --format github
      agentv-ci validate --explain-isolation
    """
    if options.explains_isolation:
        return _explain_isolation()
    return show_checks(check(options), options)


def _explain_isolation() -> int:
    """Print what this machine can do; always passes."""
    from agentv_ci.app.documents.isolation import every_means  # needs more than validating

    for means in every_means(os.environ):
        state = "not available" if means.problem is not None else "available"
        click.echo(f"{means.isolation:<11} {state}: {means.problem or means.explanation}")
        if means.hint is not None:
            click.echo(f"{'':<11} {means.hint}")
    return PASSED


def check(options: ValidateOptions) -> Checks:
    """Check all documents in the paths."""
    jobs = options.jobs or _cores()
    today = datetime.now(UTC).date()
    cwd, targets = Path.cwd(), options.targets
    checks = check_paths(options.paths, targets=targets, cwd=cwd, today=today, jobs=jobs)
    if all(file.kind != "experiment" for file in checks.files):
        return checks
    from agentv_ci.app.run.experiment import with_experiments  # few documents are experiments

    return with_experiments(checks, targets, cwd=cwd)


def show_checks(checks: Checks, options: ValidateOptions) -> int:
    """Print the diagnostics, and return the exit code."""
    form, strict = options.form, options.strict
    if form != "text":
        from agentv_ci.report.diagnostics import document, render

        roots = {str(each.path): each.root for each in checks.files}
        written = document(checks.files, checks.skipped, strict=strict)
        click.echo(render(written, form, lambda path: _relative(path, roots[path])), nl=False)
    if not checks.files:
        raise NothingToRun(
            f"no eval, targets or config document in {listed(options.paths)}", NO_EVALS_HINT
        )
    if form == "text":
        for each in checks.files:
            show_diagnostics(each.diagnostics, err=False)
    if any(each.without_targets for each in checks.files):
        notice = "no targets file found: names of targets and judges were not checked"
        show_line(notice, "warn", err=form in ("json", "sarif"))
    if form in ("text", "github"):
        _show_summary(checks, strict=strict)
    if all(file.is_valid(strict=strict) for file in checks.files):
        return PASSED
    return FAILED


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _relative(path: str, root: Path) -> str:
    shown = Path(path)
    if shown.is_relative_to(root):
        shown = shown.relative_to(root)
    return shown.as_posix()


def _show_summary(checks: Checks, *, strict: bool) -> None:
    found = chain.from_iterable(file.diagnostics for file in checks.files)
    severities = Counter(diagnostic.severity for diagnostic in found)
    total = len(checks.files)
    failed = sum(not file.is_valid(strict=strict) for file in checks.files)
    parts = [
        f"{counted(total, 'file')} checked",
        f"{total - failed} passed",
        f"{failed} failed",
        counted(severities["error"], "error"),
        counted(severities["warning"], "warning"),
    ]
    if checks.skipped:
        parts.append(f"{checks.skipped} skipped")
    show_line(", ".join(parts), "bad" if failed else "good")
