"""Rows → scenario reports → validations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path

from agentv_ci.analysis.scenarios import scenario_report
from agentv_ci.app.report_files import read_run_report, require_distinct
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import SEVERITIES_WORST_FIRST
from agentv_ci.contracts.report import (
    FailedValidation,
    GateSettings,
    ScenarioAggregates,
    ScenarioReport,
    Validation,
    ValidatorSettings,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.json_access import objects_at
from agentv_ci.results.files import read_rows
from agentv_ci.text import did_you_mean, listed
from agentv_ci.validators import apply_validator, list_validators
from agentv_ci.validators.builtin import BUILT_IN, own_settings, setting_names, unknown_settings, wrong_settings

LocatedRow = tuple[ResultRow, str | None]
"""A row with the digest of its plan."""

MAX_ISSUES = 1_000
"""How many issues of a validator a report keeps, the worst first."""


def check_results(results: Sequence[Path], keys: Sequence[str], settings: JsonObject) -> tuple[ScenarioReport, ...]:
    """Run these validators with these settings over every suite in results.

    Raises UsageError for an unknown validator and for what cannot be read, NothingToRun when there are no rows.
    """
    require_distinct(results)
    _require_settings(keys, settings)
    located: list[LocatedRow] = []
    seeds: dict[str, set[int]] = {}
    for path in results:
        report = read_run_report(path)
        located += [(row, report.plan_digest if report is not None else None) for row in read_rows(path)]
        for suite in report.gate.settings if report is not None else ():
            seeds.setdefault(suite.suite, set()).update(suite.seeds)
    if not located:
        raise NothingToRun("the results are empty")
    uses = tuple(ValidatorSettings(key=key, context=own_settings(key, settings)) for key in dict.fromkeys(keys))
    gates = [
        GateSettings(suite=suite, cases=0, validators=uses, seeds=tuple(sorted(seeds.get(suite, ()))))
        for suite in sorted({row.suite for row, _ in located})
    ]
    return validate_runs(gates, located)


def _require_settings(keys: Sequence[str], settings: JsonObject) -> None:
    """Raise UsageError for unknown validators, and for settings that they do not have."""
    known = list_validators()
    for key in keys:
        if key not in known:
            raise UsageError(f"unknown validator '{key}'{did_you_mean(key, known)}; validators are {listed(known)}")
    wrong = [sentence for key in keys for _, sentence in wrong_settings(key, own_settings(key, settings))]
    if all(key in BUILT_IN for key in keys) and (others := unknown_settings(keys, settings)):
        has = listed(name for key in keys for name in setting_names(key) or ()) or "no settings"
        wrong.append(f"no such setting: {listed(others)}; these validators have {has}")
    if wrong:
        raise UsageError("\n".join(wrong), hint="--context has the settings, as JSON" if not settings else None)


def validate_runs(settings: Iterable[GateSettings], rows: Iterable[LocatedRow]) -> tuple[ScenarioReport, ...]:
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
    uses = [(each.key, each.context) for each in suite.validators]
    return apply_validators(uses, scenario, context_of(scenario, seeds))


def context_of(scenario: JsonObject, seeds: Sequence[int], params: JsonObject | None = None) -> JsonObject:
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
    # Validators of plugins may modify their input.
    opinions = (
        apply_validator(key, scenario if key in BUILT_IN else deepcopy(scenario), {**context, **own})
        for key, own in uses
    )
    validations = tuple(
        FailedValidation.model_validate(each) if "error" in each else Validation.model_validate(_worst(each))
        for each in opinions
    )
    aggregates = ScenarioAggregates(runs=len(runs), errors=_errors(runs), validations=validations)
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
