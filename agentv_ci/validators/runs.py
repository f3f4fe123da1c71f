"""Read scenario reports of unchecked form, and build the results of validators."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, get_args

from agentv_ci.base.json_access import read_json, well_formed
from agentv_ci.base.mappings import picked
from agentv_ci.base.text import shortened, well_formed_text
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.diagnostics import Severity

SHOWN = 80
"""Most characters of a value that a message shows."""
NO_POSITION = 2**31
"""More than lists have."""
UNKNOWN = "unknown"
"""The group of runs without a group."""

Run = dict[str, Any]

ISSUE_FORM = (
    "{id: string, severity: info | warning | error, message: string, path: [string, ...] | null}"
)


def numbered_runs(report: object) -> list[tuple[int, Run]]:
    """Return the runs of a report with their positions.

    What is not a list of objects is ignored.
    """
    match report:
        case {"runs": list(runs)}:
            return [(index, run) for index, run in enumerate(runs) if isinstance(run, dict)]
        case _:
            return []


def successful(runs: Iterable[tuple[int, Run]]) -> list[tuple[int, Run]]:
    """Return the numbered runs that have an answer."""
    return [(index, run) for index, run in runs if is_success(run)]


def name_of(index: int, run: object) -> str:
    """Return how messages name a run: its position and, if known, its case."""
    match run:
        case {"case_id": str(case)}:
            return f"run {index} ({excerpt(case)})"
        case _:
            return f"run {index}"


def settings_in(context: object) -> dict[str, Any]:
    """Return the settings of a validator; none when the context is not a dict."""
    return context if isinstance(context, dict) else {}


def is_success(run: Run) -> bool:
    """Whether a run has an answer."""
    status = run.get("status")
    return isinstance(status, str) and status == "success"


def is_seed(value: object) -> TypeGuard[int]:
    """Whether a value can be a seed: an integer that fits into a float."""
    return isinstance(value, int) and number_of(value) is not None


def number_of(value: object) -> float | None:
    """Return a value as a float; None unless it is a finite number that fits into a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def label_of(value: object) -> str:
    """Return the group of a value, or `unknown`."""
    label = known_label(value)
    return UNKNOWN if label is None else label


def known_label(value: object) -> str | None:
    """Return the group of a value: a string, a number (1 is 1.0) or a boolean; else None."""
    match value:
        case str():
            return well_formed_text(value)
        case bool():
            return json.dumps(value)
        case int() | float() if number_of(value) is not None:
            return str(int(value) if value == int(value) else float(value))
        case _:
            return None


def found_at(value: object, path: str) -> tuple[object, ...]:
    """Return the value at a dot path as a tuple of one, or an empty tuple.

    A number is also a position in a list.
    """
    for step in path.split("."):
        match value:
            case dict() if step in value:
                value = value[step]
            case list() | tuple() if _position(step) < len(value):
                value = value[_position(step)]
            case _:
                return ()
    return (value,)


def excerpt(value: object) -> str:
    """Return the shortened JSON of a value, for messages."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "a value that JSON cannot hold"
    return shortened(text, SHOWN)


def _position(step: str) -> int:
    """Return the position in a list that a step of a path names; NO_POSITION for a name."""
    is_number = step.isascii() and step.isdecimal()
    if not is_number or len(step) > len(str(NO_POSITION)):
        return NO_POSITION
    return int(step)


def issue(issue_id: str, severity: Severity, message: str, *path: str | int) -> JsonObject:
    """Return one issue; `path` is its place in the report, null without one."""
    return {
        "id": issue_id,
        "severity": severity,
        "message": well_formed_text(message),
        "path": [well_formed_text(str(step)) for step in path] or None,
    }


def findings(issues: Sequence[JsonObject], details: JsonObject) -> dict[str, Any]:
    """Return `{"issues", "summary": {"count", "by_severity", "details"}}`.

    Figures that are not finite are null.
    """
    counts = Counter(problem["severity"] for problem in issues)
    return {
        "issues": [*issues],
        "summary": {
            "count": len(issues),
            "by_severity": picked(counts, get_args(Severity)),
            "details": well_formed(details),
        },
    }


def normalized(returned: object) -> dict[str, Any]:
    """Return `{"issues", "summary"}` of a validator's result as plain JSON, without other fields.

    The path of an issue may be missing. Raises ValueError for another form.
    """
    try:
        read = read_json(json.dumps(returned))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    match read:
        case {"issues": list(issues), "summary": dict(summary)}:
            return {
                "issues": [_normalized(issue, index) for index, issue in enumerate(issues)],
                "summary": summary,
            }
        case _:
            raise ValueError("expected {issues: [...], summary: {...}}")


def _normalized(read: JsonValue, index: int) -> JsonObject:
    found = read if isinstance(read, dict) else {}
    named = {name: found.get(name) for name in ("id", "severity", "message", "path")}
    match named:
        case {
            "id": str(),
            "severity": "info" | "warning" | "error",
            "message": str(),
            "path": None,
        }:
            return named
        case {
            "id": str(),
            "severity": "info" | "warning" | "error",
            "message": str(),
            "path": list(path),
        } if all(isinstance(step, str) for step in path):
            return named
        case _:
            raise ValueError(f"issue {index}: expected {ISSUE_FORM}")
