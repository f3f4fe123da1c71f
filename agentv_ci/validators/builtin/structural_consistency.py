"""Check that a scenario report has all fields, with their types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import Severity
from agentv_ci.validators.builtin import BuiltInSettings
from agentv_ci.validators.runs import Run, excerpt, findings, is_success, issue, name_of

FIELDS = {"scenario_key": str, "runs": list, "aggregates": dict}
FIELDS_OF_RUNS = {
    "scenario_key": str,
    "runner_key": str,
    "status": str,
    "duration_ms": int,
    "metrics": dict,
}
NAMES: dict[type, str] = {str: "a string", list: "a list", dict: "an object", int: "an integer"}
STATUSES = {"success": "success", "failed": "failed", "error": "errors", "timeout": "timeouts"}
"""Statuses of runs, and the names of their counts."""


class Settings(BuiltInSettings):
    """This validator has no settings."""


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG001  # the common signature
    """Return an issue per field that is missing or has another type.

    The `seed` of a run may be missing or null. Its `output` is an object on success, otherwise
    null. An unknown status is an invalid type. There are no settings.

    The summary has the number of runs by status.
    """
    if not isinstance(report, dict):
        wrong = issue(
            "invalid_report_type", "error", f"the report must be an object, not {excerpt(report)}"
        )
        return findings([wrong], _counts([]))
    runs = report.get("runs")
    if not isinstance(runs, list):
        runs = []
    issues = [*_wrong_fields(report, FIELDS, "the report")]
    for index, run in enumerate(runs):
        issues += _check(index, run)
    return findings(issues, _counts(runs))


def _counts(runs: list[Any]) -> JsonObject:
    counts: Counter[str] = Counter()
    for run in runs:
        match run:
            case {"status": str(status)}:
                counts[status] += 1
            case _:
                pass  # reported as an issue
    return {"runs": len(runs), **{name: counts[status] for status, name in STATUSES.items()}}


def _check(index: int, run: object) -> Iterator[JsonObject]:
    place = ("runs", index)
    if not isinstance(run, dict):
        message = f"{name_of(index, run)} must be an object, not {excerpt(run)}"
        yield issue("invalid_run_type", "error", message, *place)
        return
    yield from _wrong_fields(run, FIELDS_OF_RUNS, name_of(index, run), *place)
    status, seed, duration_ms = run.get("status"), run.get("seed"), run.get("duration_ms")
    if isinstance(status, str) and status not in STATUSES:
        known = ", ".join(STATUSES)
        message = (
            f"the status of {name_of(index, run)} must be one of {known}, not {excerpt(status)}"
        )
        yield issue("invalid_type", "error", message, *place, "status")
    if seed is not None and not _is_of(seed, int):
        yield _wrong_type(name_of(index, run), "seed", int, seed, *place, severity="warning")
    if isinstance(duration_ms, int) and duration_ms < 0:
        message = f"the duration of {name_of(index, run)} is negative: {excerpt(duration_ms)} ms"
        yield issue("negative_duration", "warning", message, *place, "duration_ms")
    yield from _wrong_output(index, run)


def _wrong_output(index: int, run: Run) -> Iterator[JsonObject]:
    output, status, place = run.get("output"), run.get("status"), ("runs", index, "output")
    if is_success(run) and output is None:
        yield issue(
            "missing_output_on_success",
            "error",
            f"the output of {name_of(index, run)} is missing",
            *place,
        )
    elif is_success(run) and not isinstance(output, dict):
        message = f"the output of {name_of(index, run)} must be an object, not {excerpt(output)}"
        yield issue("invalid_output_type", "error", message, *place)
    elif (
        isinstance(status, str)
        and status in STATUSES
        and not is_success(run)
        and output is not None
    ):
        message = f"{name_of(index, run)} has an output, but its status is {excerpt(status)}"
        yield issue("unexpected_output_on_failure", "warning", message, *place)


def _wrong_fields(
    holder: Mapping[str, Any], fields: Mapping[str, type], owner: str, *place: str | int
) -> Iterator[JsonObject]:
    for field, kind in fields.items():
        if field not in holder:
            yield issue("missing_field", "error", f"'{field}' of {owner} is missing", *place, field)
        elif not _is_of(holder[field], kind):
            yield _wrong_type(owner, field, kind, holder[field], *place)


def _wrong_type(
    owner: str,
    field: str,
    kind: type,
    value: object,
    *place: str | int,
    severity: Severity = "error",
) -> JsonObject:
    message = f"'{field}' of {owner} must be {NAMES[kind]}, not {excerpt(value)}"
    return issue("invalid_type", severity, message, *place, field)


def _is_of(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
