"""Reports to validate."""

from __future__ import annotations

from typing import Any

import pytest

HUGE = pytest.param(10**5000, id="huge")
"""An integer that cannot even be printed."""


def run(**fields: Any) -> dict[str, Any]:
    """A run with nothing wrong; a field of `...` is left out."""
    sound = {
        "scenario_key": "evals/a.test.yaml",
        "runner_key": "model",
        "status": "success",
        "seed": 7,
        "duration_ms": 100,
        "metrics": {"score": 1.0},
        "output": {"text": "yes"},
        "config_digest": "d1",
    }
    return {name: value for name, value in {**sound, **fields}.items() if value is not ...}


def report(*runs: Any, **fields: Any) -> dict[str, Any]:
    """A report of runs; a field of `...` is left out."""
    whole = {"scenario_key": "evals/a.test.yaml", "runs": [*runs], "aggregates": {}, **fields}
    return {name: value for name, value in whole.items() if value is not ...}


def ids(result: dict[str, Any]) -> list[str]:
    return [each["id"] for each in result["issues"]]


def found(result: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """Issues as (id, severity, path)."""
    return [(each["id"], each["severity"], each["path"] and ".".join(each["path"])) for each in result["issues"]]


def details(result: dict[str, Any]) -> dict[str, Any]:
    inside: dict[str, Any] = result["summary"]["details"]
    return inside
