"""Results → validations of every suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentv_ci.app.run.files import read_run_report, require_distinct
from agentv_ci.app.run.validations import LocatedRow, validate_runs
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.report import (
    GateSettings,
    ScenarioReport,
    ValidatorSettings,
)
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.results.files import read_rows
from agentv_ci.validators import list_validators
from agentv_ci.validators.builtin import (
    BUILT_IN,
    own_settings,
    setting_names,
    unknown_settings,
    wrong_settings,
)


def check_results(
    results: Sequence[Path], keys: Sequence[str], settings: JsonObject
) -> tuple[ScenarioReport, ...]:
    """Run these validators with these settings over every suite in results.

    Raises UsageError for an unknown validator and for what cannot be read, NothingToRun when there
    are no rows.
    """
    require_distinct(results)
    _require_settings(keys, settings)
    located: list[LocatedRow] = []
    seeds: dict[str, set[int]] = {}
    for path in results:
        report = read_run_report(path)
        located += [
            (row, report.plan_digest if report is not None else None) for row in read_rows(path)
        ]
        for suite in report.gate.settings if report is not None else ():
            seeds.setdefault(suite.suite, set()).update(suite.seeds)
    if not located:
        raise NothingToRun("the results are empty")
    uses = tuple(
        ValidatorSettings(key=key, context=own_settings(key, settings))
        for key in dict.fromkeys(keys)
    )
    gates = [
        GateSettings(
            suite=suite, cases=0, validators=uses, seeds=tuple(sorted(seeds.get(suite, ())))
        )
        for suite in sorted({row.suite for row, _ in located})
    ]
    return validate_runs(gates, located)


def _require_settings(keys: Sequence[str], settings: JsonObject) -> None:
    """Raise UsageError for unknown validators, and for settings that they do not have."""
    known = list_validators()
    for key in keys:
        if key not in known:
            raise UsageError(
                f"unknown validator '{key}'{did_you_mean(key, known)}; validators are {listed(known)}"
            )
    wrong = [
        sentence for key in keys for _, sentence in wrong_settings(key, own_settings(key, settings))
    ]
    if all(key in BUILT_IN for key in keys) and (others := unknown_settings(keys, settings)):
        has = listed(name for key in keys for name in setting_names(key) or ()) or "no settings"
        wrong.append(f"no such setting: {listed(others)}; these validators have {has}")
    if wrong:
        raise UsageError(
            "\n".join(wrong), hint="--context has the settings, as JSON" if not settings else None
        )
