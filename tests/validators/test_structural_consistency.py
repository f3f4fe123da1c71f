"""A report has the fields that a scenario report has."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.structural_consistency import validate
from tests.validators.builders import HUGE, details, found, report, run


def test_sound_report_has_no_issue() -> None:
    failed = [run(status=status, output=None, seed=None) for status in ("failed", "error", "timeout")]
    result = validate(report(run(), run(output={}, seed=...), *failed))
    assert result == {
        "issues": [],
        "summary": {
            "count": 0,
            "by_severity": {"info": 0, "warning": 0, "error": 0},
            "details": {"runs": 5, "success": 2, "failed": 1, "errors": 1, "timeouts": 1},
        },
    }


@pytest.mark.parametrize("report", [None, [], "report", HUGE, float("nan"), object()])
def test_report_that_is_no_object_is_one_issue(report: Any) -> None:
    result = validate(report)
    assert found(result) == [("invalid_report_type", "error", None)]
    assert details(result) == {"runs": 0, "success": 0, "failed": 0, "errors": 0, "timeouts": 0}


def test_fields_that_a_report_lacks_are_missing() -> None:
    missing = [("missing_field", "error", name) for name in ("scenario_key", "runs", "aggregates")]
    assert found(validate({})) == missing


def test_fields_of_a_report_have_types() -> None:
    wrong = [("invalid_type", "error", name) for name in ("scenario_key", "runs", "aggregates")]
    assert found(validate({"scenario_key": 1, "runs": {}, "aggregates": None})) == wrong


@pytest.mark.parametrize("field", ["scenario_key", "runner_key", "status", "duration_ms", "metrics"])
def test_field_that_a_run_lacks_is_missing(field: str) -> None:
    result = validate(report(run(), run(**{field: ...})))
    assert found(result) == [("missing_field", "error", f"runs.1.{field}")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scenario_key", None),
        ("runner_key", ["a"]),
        ("status", {}),
        ("status", "done"),
        ("duration_ms", True),
        ("duration_ms", 1.0),
        ("duration_ms", "1"),
        ("metrics", []),
    ],
)
def test_fields_of_a_run_have_types(field: str, value: Any) -> None:
    assert found(validate(report(run(**{field: value})))) == [("invalid_type", "error", f"runs.0.{field}")]


@pytest.mark.parametrize("seed", [True, "7", 7.0, [7]])
def test_seed_that_is_no_integer_is_a_warning(seed: Any) -> None:
    assert found(validate(report(run(seed=seed)))) == [("invalid_type", "warning", "runs.0.seed")]


def test_run_that_is_no_object_is_counted_but_not_checked() -> None:
    result = validate(report("not a run", run()))
    assert found(result) == [("invalid_run_type", "error", "runs.0")]
    assert details(result)["runs"] == 2


@pytest.mark.parametrize("output", [None, ...])
def test_success_needs_an_output(output: Any) -> None:
    assert found(validate(report(run(output=output)))) == [("missing_output_on_success", "error", "runs.0.output")]


@pytest.mark.parametrize("output", ["yes", [], 0, False])
def test_output_of_success_is_an_object(output: Any) -> None:
    assert found(validate(report(run(output=output)))) == [("invalid_output_type", "error", "runs.0.output")]


@pytest.mark.parametrize("status", ["failed", "error", "timeout"])
def test_output_is_not_expected_of_a_failure(status: str) -> None:
    result = validate(report(run(status=status)))
    assert found(result) == [("unexpected_output_on_failure", "warning", "runs.0.output")]


@pytest.mark.parametrize("duration_ms", [-1, pytest.param(-(10**5000), id="huge")])
def test_duration_below_zero_is_a_warning(duration_ms: int) -> None:
    result = validate(report(run(duration_ms=duration_ms)))
    assert found(result) == [("negative_duration", "warning", "runs.0.duration_ms")]


def test_message_says_what_is_there() -> None:
    assert validate(report(run(metrics=[1])))["issues"] == [
        {
            "id": "invalid_type",
            "severity": "error",
            "message": "'metrics' of run 0 must be an object, not [1]",
            "path": ["runs", "0", "metrics"],
        }
    ]
