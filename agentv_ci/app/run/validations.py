"""Rows → scenario reports → validations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy

from agentv_ci.analysis.cases.scenarios import scenario_report
from agentv_ci.base.json_access import objects_at
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import SEVERITIES_WORST_FIRST
from agentv_ci.contracts.report import (
    FailedValidation,
    GateSettings,
    ScenarioAggregates,
    ScenarioReport,
    Validation,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.validators import apply_validator
from agentv_ci.validators.builtin import BUILT_IN

LocatedRow = tuple[ResultRow, str | None]
"""A row with the digest of its plan."""

MAX_ISSUES = 1_000
"""How many issues of a validator a report keeps, the worst first."""


def validate_runs(
    settings: Iterable[GateSettings], rows: Iterable[LocatedRow]
) -> tuple[ScenarioReport, ...]:
    """Return what the validators of suites say of their rows, each row with the digest of its plan.

    The rows are looked at only when a suite has validators, and only its own are held.
    """
    checked = {suite.suite: suite for suite in settings if suite.validators}
    if not checked:
        return ()
    by_suite: dict[str, list[LocatedRow]] = {suite: [] for suite in checked}
    for row, digest in rows:
        if row.suite in by_suite and row.verdict != "skipped":
            by_suite[row.suite].append((row, digest))
    return tuple(_validated(checked[suite], own) for suite, own in by_suite.items())


def _validated(suite: GateSettings, rows: Sequence[LocatedRow]) -> ScenarioReport:
    seeds: Sequence[int] = suite.seeds
    if any(row.stop_when is not None for row, _ in rows):
        # Trials that were not needed do not count as missing seeds.
        ran = {row.seed for row, _ in rows}
        seeds = [seed for seed in seeds if seed in ran]
    scenario = scenario_report(suite.suite, rows)
    uses = [(validator.key, validator.context) for validator in suite.validators]
    return apply_validators(uses, scenario, context_of(scenario, seeds))


def context_of(
    scenario: JsonObject, seeds: Sequence[int], params: JsonObject | None = None
) -> JsonObject:
    """Return the context of a scenario for every validator; settings of a document override it."""
    runs = objects_at(scenario, "runs")
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
    """Return a scenario without its runs, with the validations of them."""
    runs = objects_at(scenario, "runs")
    validations: list[Validation | FailedValidation] = []
    for key, own in uses:
        # Validators of plugins may modify their input.
        seen = scenario if key in BUILT_IN else deepcopy(scenario)
        opinion = apply_validator(key, seen, {**context, **own})
        if "error" in opinion:
            validations.append(FailedValidation.model_validate(opinion))
        else:
            validations.append(Validation.model_validate(_worst(opinion)))
    aggregates = ScenarioAggregates(
        runs=len(runs), errors=_errors(runs), validations=tuple(validations)
    )
    return ScenarioReport(scenario_key=str(scenario["scenario_key"]), aggregates=aggregates)


def _worst(opinion: JsonObject) -> JsonObject:
    """Return a validation with the worst issues only; its summary counts all."""
    issues = objects_at(opinion, "issues")
    if len(issues) <= MAX_ISSUES:
        return opinion
    worst_first = sorted(issues, key=lambda each: SEVERITIES_WORST_FIRST.index(each["severity"]))
    return {**opinion, "issues": [*worst_first[:MAX_ISSUES]]}


def _errors(runs: Iterable[JsonObject]) -> int:
    return sum(run["status"] != "success" for run in runs)
