"""Every built-in validator is deterministic and has a result for any report and any settings."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.diagnostics import SEVERITIES_WORST_FIRST
from agentv_ci.validators import get_validator
from agentv_ci.validators.builtin import BUILT_IN
from agentv_ci.validators.runs import normalized

KEYS = st.sampled_from(["text", "a", "b", "0", "a.b", "", "\ud800"])
SCALARS = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    st.sampled_from([53, 400, 5000]).map(lambda digits: 10**digits),
    st.sampled_from(["success", "failed", "error", "timeout", "\ud800", "a.b", b"bytes", 1j, frozenset({1})]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(KEYS | st.integers(-1, 1) | st.none(), inner, max_size=3),
    ),
    max_leaves=8,
)


def mostly(*usual: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(usual), st.sampled_from(usual), VALUES)


RUNS = st.fixed_dictionaries(
    {},
    optional={
        "runner_key": mostly("a", "b"),
        "case_id": mostly("c", "d"),
        "status": mostly("success", "success", "error"),
        "seed": mostly(1, 2),
        "duration_ms": mostly(1, 1000, 1.7e308, -1.7e308),
        "metrics": mostly({"a": 1}, {"a": 0.5}),
        "output": st.dictionaries(KEYS, VALUES, max_size=3) | VALUES,
        "config_digest": mostly("d", "e"),
    },
)
REPORTS = VALUES | st.fixed_dictionaries({"runs": st.lists(RUNS | RUNS | VALUES, max_size=6)})
PATHS = st.sampled_from(["metrics.a", "output.a", "output.a.0", "runner_key", "seed", "..", "", "\ud800"])
DEMANDS = mostly("str", "number", ["int", "list"], {"path": "a"})
CONTEXTS = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "tolerance": mostly(0.1, 1),
        "fields": st.lists(PATHS | VALUES, max_size=3) | VALUES,
        "expected_seeds": st.lists(st.integers(0, 3) | VALUES, max_size=3) | VALUES,
        "config_digest": mostly("d"),
        "contract": st.fixed_dictionaries({"required": st.dictionaries(KEYS | PATHS, DEMANDS, max_size=3)}) | VALUES,
        "k": mostly(1, 1.7e308, 1e-300),
        "group": PATHS | VALUES,
        "metric_path": PATHS | VALUES,
        "threshold": mostly(0, 0.1),
        "min_group_size": mostly(1, 2),
    },
)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value] if levels % 2 else {"a": value}
    return value


def endless() -> Any:
    value: dict[str, Any] = {"a": 1}
    value["b"] = [value, value]
    return value


@pytest.mark.parametrize("key", BUILT_IN)
@settings(max_examples=60)
@given(report=REPORTS, context=CONTEXTS)
def test_any_report_has_a_normalized_result(key: str, report: Any, context: Any) -> None:
    validate = get_validator(key)
    before = pickle.dumps((report, context))
    result: Any = validate(report, context)
    assert pickle.dumps((report, context)) == before, "the input is unchanged"
    text = json.dumps(result, allow_nan=False, ensure_ascii=False)
    assert text == json.dumps(validate(*pickle.loads(before)), allow_nan=False, ensure_ascii=False)
    assert text.encode("utf-8").decode("utf-8") == text
    assert normalized(result) == result
    issues, summary = result["issues"], result["summary"]
    assert [*summary] == ["count", "by_severity", "details"]
    severities = [each["severity"] for each in issues]
    assert summary["by_severity"] == {each: severities.count(each) for each in SEVERITIES_WORST_FIRST}
    assert summary["count"] == len(severities)


@pytest.mark.parametrize("key", BUILT_IN)
@pytest.mark.parametrize("value", [nested(100_000), nested(100_001), endless(), object(), float])
def test_values_that_json_cannot_hold_have_a_result(key: str, value: Any) -> None:
    validate = get_validator(key)
    fields = ("scenario_key", "runner_key", "status", "seed", "duration_ms", "metrics", "output", "config_digest")
    run = {"runner_key": "a", "status": "success", "seed": 1, "output": {"a": value}}
    runs = [value, run, {**run, "output": {"a": [value]}}, *({**run, name: value} for name in fields)]
    for report in (value, {"runs": value}, {"runs": runs}):
        for context in (value, {"contract": value, "fields": [value, "a"], "metric_path": "output.a", "group": value}):
            json.dumps(validate(report, context), allow_nan=False)
