"""`agentv-ci validate`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from agentv_ci.cli.options import color_option, targets_option
from agentv_ci.cli.output import show_diagnostics, show_line
from agentv_ci.contracts.diagnostics import (
    DiagnosticRecord,
    DiagnosticsDocument,
    DiagnosticsSummary,
    FileRecord,
)
from agentv_ci.errors import FAILED, PASSED
from agentv_ci.pipeline import Checks, check_paths
from agentv_ci.schemas import schema_id


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@targets_option
@color_option
def command(paths: tuple[str, ...], form: str, strict: bool, targets: str | None) -> int:
    """Check eval, targets and config documents: files, folders and globs.

    \b
    Examples:
      agentv-ci validate evals/
      agentv-ci validate evals/refunds.yaml .agentv/targets.yaml
      agentv-ci validate 'evals/**/*.yaml' --format json
    """
    checks = check_paths(paths, targets=targets, cwd=Path.cwd())
    document = _document(checks, strict=strict)
    if form == "json":
        click.echo(json.dumps(document.model_dump(by_alias=True), indent=2))
    else:
        _show(checks, document)
    return FAILED if document.summary.failed else PASSED


def _show(checks: Checks, document: DiagnosticsDocument) -> None:
    for each in checks.files:
        show_diagnostics(each.diagnostics, err=False)
    if checks.targets_unchecked:
        show_line("no targets file was found: names of targets and judges were not checked", "warn")
    counts = document.summary
    skipped = f", {counts.skipped} skipped" if counts.skipped else ""
    show_line(
        f"{counts.files} files checked, {counts.passed} passed, {counts.failed} failed, "
        f"{counts.errors} errors, {counts.warnings} warnings{skipped}",
        "bad" if counts.failed else "good",
    )


def _document(checks: Checks, *, strict: bool) -> DiagnosticsDocument:
    files = tuple(
        FileRecord(
            path=str(each.path),
            kind=each.kind,
            valid=not any(found.severity == "error" or strict for found in each.diagnostics),
            diagnostics=tuple(DiagnosticRecord(**dataclasses.asdict(found)) for found in each.diagnostics),
        )
        for each in checks.files
    )
    severities = [found.severity for each in checks.files for found in each.diagnostics]
    passed = sum(each.valid for each in files)
    summary = DiagnosticsSummary(
        files=len(files),
        passed=passed,
        failed=len(files) - passed,
        skipped=checks.skipped,
        errors=severities.count("error"),
        warnings=severities.count("warning"),
    )
    return DiagnosticsDocument(schema_=schema_id("diagnostics-v1"), files=files, summary=summary)
