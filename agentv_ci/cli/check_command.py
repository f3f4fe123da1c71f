"""`agentv-ci check`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click

from agentv_ci.app.results.check import check_results
from agentv_ci.base.json_access import read_json
from agentv_ci.base.text import listed
from agentv_ci.cli.console import show_line, show_summary
from agentv_ci.cli.defaults import require_latest
from agentv_ci.cli.options import FILE, TEXT_OR_JSON, color_option
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.report import FailedValidation, Validation
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED, UsageError
from agentv_ci.report.lines import scenario_lines
from agentv_ci.validators.builtin import BUILT_IN


@click.command("check")
@click.argument("results", nargs=-1, type=FILE, metavar="[RESULTS…]")
@click.option(
    "--validator",
    "keys",
    metavar="KEY",
    multiple=True,
    help="Run this validator; repeatable, required.",
)
@click.option(
    "--context", metavar="JSON", help="Pass these settings, a JSON object, to the validators."
)
@click.option("--format", "form", **TEXT_OR_JSON)
@color_option
def command(results: tuple[str, ...], keys: tuple[str, ...], context: str | None, form: str) -> int:
    """Run validators over finished results, suite by suite.

    RESULTS defaults to the latest in .agentv/results/. Built-in validators: determinism_check, fairness_balance,
    outlier_detection, reproducibility_metadata, schema_adherence and structural_consistency. Exit code 1: a validator
    found errors; 4: a validator could not run.

    \b
    Examples:
      agentv-ci check --validator outlier_detection
      agentv-ci check main.jsonl branch.jsonl --validator fairness_balance --context '{"metric_path": "metrics.score"}'
    """
    cwd = Path.cwd()
    if not keys:
        raise UsageError("missing option '--validator'", hint=f"one of {listed(sorted(BUILT_IN))}")
    settings = _settings(context)
    files = list(map(cwd.joinpath, results or (require_latest(cwd),)))
    scenarios = check_results(files, keys, settings)
    validations = chain.from_iterable(scenario.aggregates.validations for scenario in scenarios)
    code = _exit_code(list(validations))
    if form == "json":
        document = {
            "scenario_reports": [scenario.model_dump() for scenario in scenarios],
            "exit_code": code,
        }
        click.echo(json.dumps(document, indent=2))
        return code
    show_summary(scenario_lines(scenarios))
    words = {PASSED: "passed", FAILED: "not passed", INFRASTRUCTURE: "a validator could not run"}
    show_line(f"check: {words[code]}", "bad" if code else "good")
    return code


def _settings(text: str | None) -> JsonObject:
    if text is None:
        return {}
    try:
        settings = read_json(text, strict=True)
    except ValueError as error:
        raise UsageError(f"--context is not valid JSON: {error}") from error
    if not isinstance(settings, dict):
        raise UsageError("--context must be a JSON object, such as '{\"k\": 3}'")
    return settings


def _exit_code(validations: Sequence[Validation | FailedValidation]) -> int:
    if any(isinstance(each, Validation) and each.errors for each in validations):
        return FAILED
    if any(isinstance(each, FailedValidation) for each in validations):
        return INFRASTRUCTURE
    return PASSED
