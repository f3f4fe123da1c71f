"""`reproducibility_metadata`: runs record what is needed to repeat them."""

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
def test_missing_seed_is_a_warning(seed: Any) -> None:
    result = validate(report(run(), run(seed=seed)))
    assert found(result) == [("missing_seed", "warning", "runs.1.seed")]
    assert result["issues"][0]["message"] == "the seed of run 1 is missing"
    assert details(result)["missing_seed_count"] == 1


@pytest.mark.parametrize("seed", ["7", True, 7.0, {}, HUGE])
def test_seed_that_is_not_an_integer_is_an_error(seed: Any) -> None:
    result = validate(report(run(seed=seed)), {"expected_seeds": [7]})
    missing = ("missing_expected_seed", "warning", "runs")
    assert found(result) == [("invalid_seed_type", "error", "runs.0.seed"), missing]
    assert details(result)["observed_seeds"] == []


@pytest.mark.parametrize(
    ("expected", "issues", "used"),
    [
        ([303, 101, 303], ["unexpected_seed", "missing_expected_seed"], [303, 101, 303]),
        ([], ["unexpected_seed", "unexpected_seed"], []),
        ([101, 202, True, "8", 1.5, None, 10**400], [], [101, 202]),
        ("7", [], None),
        (None, [], None),
    ],
)
def test_seeds_are_those_that_are_expected(expected: Any, issues: list[str], used: list[int] | None) -> None:
    result = validate(report(run(seed=101), run(seed=202)), {"expected_seeds": expected})
    assert [each["id"] for each in result["issues"]] == issues
    assert details(result)["expected_seeds"] == used


def test_messages_name_the_seed() -> None:
    issues = validate(report(run(seed=202)), {"expected_seeds": [303]})["issues"]
    assert [(each["severity"], each["message"]) for each in issues] == [
        ("error", "the seed of run 0 is not expected: 202"),
        ("warning", "no run has the expected seed 303"),
    ]


@pytest.mark.parametrize("digest", ["d2", 1, ["d1"]])
def test_another_digest_is_an_error(digest: Any) -> None:
    result = validate(report(run(), run(config_digest=digest)), {"config_digest": "d1"})
    assert found(result) == [("config_digest_mismatch", "error", "runs.1.config_digest")]


@pytest.mark.parametrize("digest", [None, ...])
def test_missing_digests_are_one_info(digest: Any) -> None:
    runs = (run(), run(config_digest=digest), run(config_digest=digest))
    result = validate(report(*runs), {"config_digest": "d1"})
    assert found(result) == [("per_run_digest_missing", "info", None)]
    assert result["issues"][0]["message"] == "the config_digest of 2 of 3 runs is missing"
    wrong: tuple[Any, ...] = (None, [], {"config_digest": ""})
    for settings in wrong:
        assert found(validate(report(*runs), settings)) == []
