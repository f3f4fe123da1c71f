"""What validators return: issues and a summary of them, in one form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.diagnostics import Severity
from agentv_ci.json_access import read_json, well_formed
from agentv_ci.text import well_formed_text

ISSUE_FORM = "{id: text, severity: info | warning | error, message: text, path: [text, ...] | null}"


def issue(issue_id: str, severity: Severity, message: str, *path: str | int) -> JsonObject:
    """Return one issue; `path` leads to its place in the report, and is null for what has none."""
    return {
        "id": issue_id,
        "severity": severity,
        "message": well_formed_text(message),
        "path": [well_formed_text(str(step)) for step in path] or None,
    }


def findings(issues: Sequence[JsonObject], details: JsonObject) -> dict[str, Any]:
    """Return `{"issues", "summary": {"count", "by_severity", "details"}}`; figures that are not finite are null."""
    counts = Counter(each["severity"] for each in issues)
    return {
        "issues": [*issues],
        "summary": {
            "count": len(issues),
            "by_severity": {severity: counts[severity] for severity in get_args(Severity)},
            "details": well_formed(details),
        },
    }


def normalized(returned: object) -> dict[str, Any]:
    """Return `{"issues", "summary"}` of what a validator returned, as plain JSON and without what else it holds.

    An issue without a path has none. Raises ValueError for what has another form.
    """
    try:
        read = read_json(json.dumps(returned))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    match read:
        case {"issues": list(issues), "summary": dict(summary)}:
            return {"issues": [_normalized(each, index) for index, each in enumerate(issues)], "summary": summary}
        case _:
            raise ValueError("it has not the form {issues: [...], summary: {...}}")


def _normalized(read: JsonValue, index: int) -> JsonObject:
    found = read if isinstance(read, dict) else {}
    named = {name: found.get(name) for name in ("id", "severity", "message", "path")}
    match named:
        case {"id": str(), "severity": "info" | "warning" | "error", "message": str(), "path": None}:
            return named
        case {"id": str(), "severity": "info" | "warning" | "error", "message": str(), "path": list(path)} if all(
            isinstance(step, str) for step in path
        ):
            return named
        case _:
            raise ValueError(f"issue {index} has not the form {ISSUE_FORM}")
