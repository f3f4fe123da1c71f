"""Results → validations of every suite."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
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
        digest = report.plan_digest if report is not None else None
        located += [(row, digest) for row in read_rows(path)]
        if report is None:
            continue
        for suite in report.gate.settings:
            seeds.setdefault(suite.suite, set()).update(suite.seeds)
    if not located:
        raise NothingToRun("the results are empty")
    uses = tuple(
        ValidatorSettings(key=key, context=own_settings(key, settings))
        for key in dict.fromkeys(keys)
    )
    gates: list[GateSettings] = []
    for name in sorted({row.suite for row, _ in located}):
        own_seeds = tuple(sorted(seeds.get(name, ())))
        gates.append(GateSettings(suite=name, cases=0, validators=uses, seeds=own_seeds))
    return validate_runs(gates, located)


def _require_settings(keys: Sequence[str], settings: JsonObject) -> None:
    """Raise UsageError for unknown validators, and for settings that they do not have."""
    known = list_validators()
    for key in keys:
        if key not in known:
            meant = did_you_mean(key, known)
            raise UsageError(f"unknown validator '{key}'{meant}; validators are {listed(known)}")
    wrong: list[str] = []
    for key in keys:
        wrong += (sentence for _, sentence in wrong_settings(key, own_settings(key, settings)))
    if set(keys) <= set(BUILT_IN) and (others := unknown_settings(keys, settings)):
        names = chain.from_iterable(setting_names(key) or () for key in keys)
        has = listed(names) or "no settings"
        wrong.append(f"no such setting: {listed(others)}; these validators have {has}")
    if wrong:
        hint = None if settings else "--context has the settings, as JSON"
        raise UsageError("\n".join(wrong), hint=hint)
