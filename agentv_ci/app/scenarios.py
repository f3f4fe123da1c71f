"""Rows of a run → scenario reports → what validators say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

from agentv_ci.contracts.base import JsonObject, JsonValue

if TYPE_CHECKING:
    from agentv_ci.contracts.report import GateSettings, ScenarioReport
    from agentv_ci.contracts.results import ResultRow


MAX_ISSUES = 1_000
"""Issues of one validator that a report keeps, the worst ones."""


def validate_runs(
    settings: Iterable[GateSettings], rows: Iterable[tuple[ResultRow, str | None]]
) -> tuple[ScenarioReport, ...]:
    """Return what the validators of suites say of their rows, each row with the digest of its plan.

    The rows are looked at only when a suite has validators, and only its own are held.
    """
    wanted = {suite.suite: suite for suite in settings if suite.validators}
    if not wanted:
        return ()
    by_suite: dict[str, list[tuple[ResultRow, str | None]]] = {suite: [] for suite in wanted}
    for row, digest in rows:
        if row.suite in by_suite:
            by_suite[row.suite].append((row, digest))
    return tuple(_validated(wanted[suite], own) for suite, own in by_suite.items())


def _validated(suite: GateSettings, rows: Sequence[tuple[ResultRow, str | None]]) -> ScenarioReport:
    from agentv_ci.analysis.scenarios import scenario_report

    seeds: Sequence[int] = suite.seeds
    if any(row.stop_when is not None for row, _ in rows):
        # Seeds of trials that need not run are not missing.
        ran = {row.seed for row, _ in rows}
        seeds = [seed for seed in seeds if seed in ran]
    scenario = scenario_report(suite.suite, rows)
    uses = [(each.key, each.context) for each in suite.validators]
    return apply_validators(uses, scenario, context_of(scenario, seeds))


def context_of(scenario: JsonObject, seeds: Sequence[int], params: JsonObject | None = None) -> JsonObject:
    """Return what every validator is told of a scenario; a document's own settings go before."""
    runs = _runs(scenario)
    digests = {run["config_digest"] for run in runs if isinstance(run["config_digest"], str)}
    return {
        "scenario_key": scenario["scenario_key"],
        "params": params or {},
        "engine": {"runs": len(runs), "errors": _errors(runs)},
        "expected_seeds": [*seeds] or None,
        "config_digest": digests.pop() if len(digests) == 1 else None,
    }


def apply_validators(
    uses: Iterable[tuple[str, JsonObject]], scenario: JsonObject, context: JsonObject
) -> ScenarioReport:
    """Return a scenario without its runs, with what validators say of them."""
    from agentv_ci.contracts.evals import VALIDATORS
    from agentv_ci.contracts.report import FailedValidation, ScenarioAggregates, ScenarioReport, Validation
    from agentv_ci.validators import apply_validator

    runs = _runs(scenario)
    # Those of others may change what they are given.
    said = (
        apply_validator(key, scenario if key in VALIDATORS else deepcopy(scenario), {**context, **own})
        for key, own in uses
    )
    validations = tuple(
        FailedValidation.model_validate(each) if "error" in each else Validation.model_validate(_worst(each))
        for each in said
    )
    aggregates = ScenarioAggregates(runs=len(runs), errors=_errors(runs), validations=validations)
    return ScenarioReport(scenario_key=str(scenario["scenario_key"]), aggregates=aggregates)


def _worst(said: JsonObject) -> JsonObject:
    """Return what a validator says with no more issues than anybody reads; its summary counts all."""
    from agentv_ci.contracts.report import WORST_FIRST

    issues = [each for each in said["issues"] if isinstance(each, dict)] if isinstance(said["issues"], list) else []
    if len(issues) <= MAX_ISSUES:
        return said
    ranks: dict[str, int] = {severity: rank for rank, severity in enumerate(WORST_FIRST)}
    return {**said, "issues": [*sorted(issues, key=lambda each: ranks[str(each["severity"])])[:MAX_ISSUES]]}


def _runs(scenario: JsonObject) -> list[JsonObject]:
    runs: JsonValue = scenario["runs"]
    return [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []


def _errors(runs: Iterable[JsonObject]) -> int:
    return sum(run["status"] != "success" for run in runs)
