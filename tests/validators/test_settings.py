"""Settings of built-in validators, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin import BUILT_IN, own_settings, setting_names, unknown_settings, wrong_settings

CONTRACT = {"required": {"a": "str", "b": ["int", "float"], "c": {"path": "x.y", "type": "number"}}}


def test_every_built_in_validator_has_its_settings() -> None:
    assert all(setting_names(key) is not None for key in BUILT_IN)


@pytest.mark.parametrize(
    ("key", "context"),
    [
        ("outlier_detection", {}),
        ("outlier_detection", {"k": 3}),
        ("determinism_check", {"tolerance": 0.1, "fields": ["a.b"]}),
        ("reproducibility_metadata", {"expected_seeds": [1, 2], "config_digest": "abc"}),
        ("schema_adherence", {"contract": CONTRACT}),
        ("fairness_balance", {"metric_path": "metrics.score", "group": "seed", "threshold": 0, "min_group_size": 2}),
        ("structural_consistency", {}),
        ("of_a_plugin", {"anything": [1]}),
    ],
)
def test_valid_settings_have_no_error(key: str, context: dict[str, Any]) -> None:
    assert list(wrong_settings(key, context)) == []


@pytest.mark.parametrize(
    ("key", "context", "place", "said"),
    [
        ("outlier_detection", {"K": 3}, ("K",), "unknown setting 'K' of validator 'outlier_detection'"),
        ("outlier_detection", {"K": 3}, ("K",), " (did you mean 'k'?); its settings are k"),
        ("structural_consistency", {"strict": 1}, ("strict",), "; it has no settings"),
        ("outlier_detection", {"k": "3"}, ("k",), "should be a valid number"),
        ("outlier_detection", {"k": True}, ("k",), "should be a valid number"),
        ("fairness_balance", {}, ("metric_path",), "requires the setting 'metric_path'"),
        ("schema_adherence", {"contract": []}, ("contract",), "must be a mapping"),
        ("schema_adherence", {"contract": {}}, ("contract", "required"), "requires the setting 'contract.required'"),
        (
            "schema_adherence",
            {"contract": {"required": {"a": {"path": "x"}}}},
            ("contract", "required", "a"),
            "must be a type (str, int, float, bool, list, dict, number), a list of types, or {path, type}",
        ),
    ],
)
def test_invalid_setting_is_one_error_at_its_place(
    key: str, context: dict[str, Any], place: tuple[str, ...], said: str
) -> None:
    ((found, sentence),) = wrong_settings(key, context)
    assert found == place
    assert said in sentence


def test_settings_of_several_validators_are_split() -> None:
    keys = ["outlier_detection", "fairness_balance"]
    context: dict[str, Any] = {"k": 3, "metric_path": "x", "other": 1}
    assert own_settings("outlier_detection", context) == {"k": 3}
    assert own_settings("of_a_plugin", context) == context
    assert unknown_settings(keys, context) == ["other"]
