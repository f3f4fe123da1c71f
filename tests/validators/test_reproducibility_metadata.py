"""Runs say what it takes to run them again."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.reproducibility_metadata import validate
from tests.validators.builders import HUGE, details, found, report, run


def test_expected_seeds_and_digest_have_no_issue() -> None:
    result = validate(report(run(seed=2), run(seed=1), run(seed=2)), {"expected_seeds": [2, 1], "config_digest": "d1"})
    assert result["issues"] == []
    assert details(result) == {
        "observed_seeds": [1, 2],
        "missing_seed_count": 0,
        "expected_seeds": [2, 1],
        "engine_config_digest": "d1",
    }


@pytest.mark.parametrize("seed", [None, ...])
def test_missing_seed_is_a_warning_and_counted(seed: Any) -> None:
    result = validate(report(run(), run(seed=seed)))
    assert found(result) == [("missing_seed", "warning", "runs.1.seed")]
    assert details(result)["missing_seed_count"] == 1


@pytest.mark.parametrize("seed", ["7", True, 7.0, {}, HUGE])
def test_seed_that_is_no_integer_is_an_error_and_not_observed(seed: Any) -> None:
    result = validate(report(run(seed=seed)), {"expected_seeds": [7]})
    assert found(result) == [
        ("invalid_seed_type", "error", "runs.0.seed"),
        ("missing_expected_seed", "warning", "runs"),
    ]
    assert details(result)["observed_seeds"] == []


def test_seeds_beside_the_expected_ones_are_errors_and_missing_ones_warnings() -> None:
    result = validate(report(run(seed=101), run(seed=202)), {"expected_seeds": [303, 101, 303]})
    assert found(result) == [
        ("unexpected_seed", "error", "runs.1.seed"),
        ("missing_expected_seed", "warning", "runs"),
    ]
    assert result["issues"][1]["message"] == "no run has the expected seed 303"


def test_empty_list_expects_no_seed() -> None:
    assert found(validate(report(run()), {"expected_seeds": []})) == [("unexpected_seed", "error", "runs.0.seed")]


@pytest.mark.parametrize("digest", ["d2", 1, ["d1"]])
def test_digest_of_another_configuration_is_an_error(digest: Any) -> None:
    result = validate(report(run(), run(config_digest=digest)), {"config_digest": "d1"})
    assert found(result) == [("config_digest_mismatch", "error", "runs.1.config_digest")]


@pytest.mark.parametrize("digest", [None, ...])
def test_runs_without_a_digest_are_one_remark(digest: Any) -> None:
    runs = (run(), run(config_digest=digest), run(config_digest=digest))
    result = validate(report(*runs), {"config_digest": "d1"})
    assert found(result) == [("per_run_digest_missing", "info", None)]
    assert result["issues"][0]["message"] == "the config_digest of 2 of 3 runs is missing"
    assert found(validate(report(*runs))) == []


@pytest.mark.parametrize("settings", [None, {}, [], {"expected_seeds": "7", "config_digest": ""}])
def test_settings_of_a_wrong_form_expect_nothing(settings: Any) -> None:
    result = validate(report(run()), settings)
    assert result["issues"] == []
    assert (details(result)["expected_seeds"], details(result)["engine_config_digest"]) == (None, None)


def test_what_is_no_seed_is_not_expected() -> None:
    result = validate(report(run()), {"expected_seeds": [7, True, "8", 1.5, None, 10**400]})
    assert result["issues"] == []
    assert details(result)["expected_seeds"] == [7]
