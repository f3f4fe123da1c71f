"""`structural_consistency`: a report has all fields, with their types."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.structural_consistency import validate
from tests.validators.builders import HUGE, details, found, report, run


def test_valid_report_has_no_issue() -> None:
    failed = [run(status=status, output=None, seed=None) for status in ("failed", "error", "timeout")]
    counts = {"runs": 5, "success": 2, "failed": 1, "errors": 1, "timeouts": 1}
    by_severity = {"info": 0, "warning": 0, "error": 0}
    assert validate(report(run(), run(output={}, seed=...), *failed)) == {
        "issues": [],
        "summary": {"count": 0, "by_severity": by_severity, "details": counts},
    }


@pytest.mark.parametrize("report", [None, [], "report", HUGE, float("nan"), object()])
def test_report_that_is_not_an_object_is_one_issue(report: Any) -> None:
    result = validate(report)
    assert found(result) == [("invalid_report_type", "error", None)]
    assert details(result) == {"runs": 0, "success": 0, "failed": 0, "errors": 0, "timeouts": 0}


@pytest.mark.parametrize(
    ("report", "issue"), [({}, "missing_field"), ({"scenario_key": 1, "runs": {}, "aggregates": None}, "invalid_type")]
)
def test_report_has_fields_with_types(report: Any, issue: str) -> None:
    assert found(validate(report)) == [(issue, "error", name) for name in ("scenario_key", "runs", "aggregates")]


@pytest.mark.parametrize(
    ("fields", "issue"),
    [
        *(
            ({field: ...}, ("missing_field", "error", field))
            for field in ("scenario_key", "runner_key", "status", "duration_ms", "metrics")
        ),
        ({"scenario_key": None}, ("invalid_type", "error", "scenario_key")),
        ({"runner_key": ["a"]}, ("invalid_type", "error", "runner_key")),
        ({"status": {}}, ("invalid_type", "error", "status")),
        ({"status": "done"}, ("invalid_type", "error", "status")),
        ({"duration_ms": True}, ("invalid_type", "error", "duration_ms")),
        ({"duration_ms": 1.0}, ("invalid_type", "error", "duration_ms")),
        ({"metrics": []}, ("invalid_type", "error", "metrics")),
        *(({"seed": seed}, ("invalid_type", "warning", "seed")) for seed in (True, "7", 7.0, [7])),
        ({"output": None}, ("missing_output_on_success", "error", "output")),
        ({"output": ...}, ("missing_output_on_success", "error", "output")),
        ({"output": []}, ("invalid_output_type", "error", "output")),
        ({"output": False}, ("invalid_output_type", "error", "output")),
        *(
            ({"status": status}, ("unexpected_output_on_failure", "warning", "output"))
            for status in ("failed", "error", "timeout")
        ),
        ({"duration_ms": -1}, ("negative_duration", "warning", "duration_ms")),
        ({"duration_ms": -(10**5000)}, ("negative_duration", "warning", "duration_ms")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else " ".join(value),
)
def test_run_has_fields_with_types(fields: dict[str, Any], issue: tuple[str, str, str]) -> None:
    name, severity, field = issue
    assert found(validate(report(run(), run(**fields)))) == [(name, severity, f"runs.1.{field}")]


def test_run_that_is_not_an_object_is_counted_but_not_checked() -> None:
    result = validate(report("not a run", run()))
    assert found(result) == [("invalid_run_type", "error", "runs.0")]
    assert details(result)["runs"] == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metrics": [1]}, "'metrics' of run 0 must be an object, not [1]"),
        ({"metrics": ...}, "'metrics' of run 0 is missing"),
        ({"metrics": object()}, "'metrics' of run 0 must be an object, not a value that JSON cannot hold"),
        (
            {"case_id": "ä", "status": "x"},
            'the status of run 0 ("ä") must be one of success, failed, error, timeout, not "x"',
        ),
        ({"output": 5}, "the output of run 0 must be an object, not 5"),
        ({"output": None}, "the output of run 0 is missing"),
        ({"status": "failed"}, 'run 0 has an output, but its status is "failed"'),
        ({"duration_ms": -1}, "the duration of run 0 is negative: -1 ms"),
    ],
)
def test_message_names_the_run_and_the_value(fields: dict[str, Any], message: str) -> None:
    assert [each["message"] for each in validate(report(run(**fields)))["issues"]] == [message]
