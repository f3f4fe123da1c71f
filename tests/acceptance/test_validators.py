"""The scenarios of the specification of validators, in its order, used as a program or a user uses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.benchmark import (
    EngineConfig,
    RunnerSpec,
    ScenarioSpec,
    register_runner,
    register_scenario,
    run_benchmark,
)
from agentv_ci.validators import get_validator, list_validators, register_validator
from tests.acceptance.builders import Repository

BUILT_IN = [
    "determinism_check",
    "fairness_balance",
    "outlier_detection",
    "reproducibility_metadata",
    "schema_adherence",
    "structural_consistency",
]


def run_of(**given: Any) -> dict[str, Any]:
    plain = {
        "scenario_key": "s",
        "runner_key": "diy",
        "status": "success",
        "seed": 7,
        "duration_ms": 100,
        "metrics": {"accuracy": 0.9},
        "output": {"text": "four"},
        "config_digest": "abc",
    }
    return {**plain, **given}


def found(key: str, *runs: dict[str, Any], **context: Any) -> list[tuple[str, str]]:
    report = get_validator(key)({"scenario_key": "s", "runs": [*runs], "aggregates": {}}, context or None)
    assert report["summary"]["count"] == len(report["issues"])
    assert all(each["path"] is None or all(isinstance(step, str) for step in each["path"]) for each in report["issues"])
    return [(each["id"], each["severity"]) for each in report["issues"]]


class TestRegistry:
    def test_built_in_validators_are_listed_in_order(self) -> None:
        assert [key for key in list_validators() if key in BUILT_IN] == BUILT_IN

    def test_a_registered_validator_is_found_by_its_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agentv_ci.validators._registered", {})

        def mine(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
            return {"issues": [], "summary": {"runs": len(report["runs"])}}

        register_validator("acceptance_mine", mine)
        assert get_validator("acceptance_mine") is mine
        assert "acceptance_mine" in list_validators()

    def test_an_unknown_key_is_a_key_error(self) -> None:
        with pytest.raises(KeyError):
            get_validator("no_such_validator")


class TestBuiltIns:
    def test_structural_consistency(self) -> None:
        assert found("structural_consistency", run_of()) == []
        assert found("structural_consistency", run_of(output=None)) == [("missing_output_on_success", "error")]
        broken = run_of()
        del broken["metrics"]
        assert found("structural_consistency", broken) == [("missing_field", "error")]

    def test_determinism_check(self) -> None:
        near, far = run_of(output={"score": 0.5}), run_of(output={"score": 0.51})
        assert found("determinism_check", near, far) == [("determinism_mismatch", "error")]
        assert found("determinism_check", near, far, tolerance=0.05) == [("determinism_ok", "info")]
        deep = [run_of(output={"a": {"b": 1}, "noise": number}) for number in range(2)]
        assert found("determinism_check", *deep, fields=["a.b"]) == [("determinism_ok", "info")]
        assert found("determinism_check", near, run_of(seed=8, output={"score": 0.9})) == []

    def test_reproducibility_metadata(self) -> None:
        assert found("reproducibility_metadata", run_of(seed=None)) == [("missing_seed", "warning")]
        assert ("unexpected_seed", "error") in found("reproducibility_metadata", run_of(seed=9), expected_seeds=[7])
        assert found("reproducibility_metadata", run_of(), config_digest="xyz") == [("config_digest_mismatch", "error")]

    def test_schema_adherence(self) -> None:
        contract = {"required": {"text": "str", "n": ["int", "float"], "deep": {"path": "a.b", "type": "number"}}}
        good = run_of(output={"text": "x", "n": 1, "a": {"b": 2.5}})
        assert found("schema_adherence", good, contract=contract) == []
        assert found("schema_adherence", run_of(output={"text": 1, "n": 1, "a": {"b": 2}}), contract=contract) == [
            ("schema_type_mismatch", "error")
        ]
        assert found("schema_adherence", run_of(output={"text": "x", "n": 1}), contract=contract) == [
            ("schema_missing_field", "error")
        ]

    def test_outlier_detection(self) -> None:
        usual = [run_of(duration_ms=100 + number) for number in range(9)]
        assert found("outlier_detection", *usual) == []
        assert found("outlier_detection", *usual, run_of(duration_ms=5000)) == [("duration_outlier", "warning")]
        assert found("outlier_detection", *usual, run_of(duration_ms=5000), k=10_000) == []

    def test_fairness_balance(self) -> None:
        runs = [run_of(runner_key="a"), run_of(runner_key="b", metrics={"accuracy": 0.5})]
        path = {"metric_path": "metrics.accuracy"}
        assert found("fairness_balance", *runs, **path) == [("fairness_imbalance", "error")]
        assert found("fairness_balance", *runs, **path, threshold=0.5) == [("fairness_within_threshold", "info")]
        assert found("fairness_balance", *runs) == [("missing_metric_path", "error")]

    @pytest.mark.parametrize("key", BUILT_IN)
    @pytest.mark.parametrize("report", [None, 3, [], {}, {"runs": None}, {"runs": [None, 3, {}]}])
    def test_any_report_is_accepted(self, key: str, report: Any) -> None:
        assert {*get_validator(key)(report, None)} == {"issues", "summary"}


def test_the_usage_example_runs_with_a_real_scenario() -> None:
    def multiturn(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
        turns = [runner.ask(f"step {number}") for number in range(payload["params"]["steps"] + 1)]
        return {"turns": turns}

    register_scenario("multiturn_tool_use", multiturn)
    register_runner("diy", lambda messages, config: f"{config['agent_id']}: {messages[-1]['content']}")
    config = EngineConfig(
        scenarios=[ScenarioSpec(key="multiturn_tool_use", params={"steps": 1}, repetitions=1, seeds=[7])],
        runners=[RunnerSpec(key="diy", config={"agent_id": "baseline-1"})],
        metrics=[],
        validators=["structural_consistency", "reproducibility_metadata", "outlier_detection"],
    )
    report = run_benchmark(config, environ={})
    (scenario,) = report.scenario_reports
    validations = scenario.aggregates.get("validations")
    assert validations is not None
    assert [(each["validator"], each["issues"]) for each in validations] == [
        ("structural_consistency", []),
        ("reproducibility_metadata", []),
        ("outlier_detection", []),
    ]
    assert scenario.runs[0].output == {"turns": ["baseline-1: step 0", "baseline-1: step 1"]}


EVALS = """\
$schema: agentv-eval-v2
execution:
  seeds: [7, 7]
  validators: [determinism_check, {key: fairness_balance, metric_path: metrics.score}]
  gate: {validators: GATE}
evalcases:
  - id: rolls
    expected_outcome: The same every time
    input_messages: [{role: user, content: Roll}]
    expected_messages: []
    evaluators: [{name: rolled, type: contains, value: dice}]
"""
TARGETS = """\
$schema: agentv-targets-v2.2
targets: [{name: default, provider: cli, command_template: 'echo "{\\"dice\\": $(date +1%N)}"'}]
"""


@pytest.mark.parametrize(("gate", "code"), [("error", 1), ("warn", 0)])
def test_the_engine_applies_configured_validators_after_a_run(gate: str, code: int, repository: Repository) -> None:
    repository.write({"dice.test.yaml": EVALS.replace("GATE", gate), "targets.yaml": TARGETS})
    done = repository.run("eval", "dice.test.yaml", "--out", "r.jsonl")
    assert done.code == code, done.err
    (scenario,) = repository.json("r.report.json")["scenario_reports"]
    determinism, fairness = scenario["aggregates"]["validations"]
    assert scenario["scenario_key"] == "dice.test.yaml"
    assert [each["id"] for each in determinism["issues"]] == ["determinism_mismatch"]
    assert [each["id"] for each in fairness["issues"]] == ["fairness_within_threshold"]
    assert "validator determinism_check: 1 error" in done.out

    again = repository.run("check", "r.jsonl", "--validator", "determinism_check", "--format", "json")
    assert again.code == 1
    assert json.loads(again.out)["scenario_reports"][0]["aggregates"]["validations"] == [determinism]
    assert repository.run("check", "r.jsonl", "--validator", "determinism").code == 2
