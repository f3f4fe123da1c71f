"""`agentv-ci check`, and the validators of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.results.jsonl import encode
from agentv_ci.validators import register_validator
from tests.support.projects import HELLO, Project
from tests.support.runs import case, row

BALANCED = {"key": "fairness_balance", "metric_path": "metrics.score", "group": "case_id", "threshold": 0.1}


def finds(report: Any, context: Any = None) -> Any:
    found = {"id": "found", "severity": "error", "message": "off\n::error::owned\x1b[2J", "path": None}
    return {"issues": [found], "summary": {"runs": len(report["runs"]), "context": context}}


def breaks(report: Any, context: Any = None) -> Any:
    raise SystemExit(0)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv_ci.validators._registered", {})
    register_validator("finds", finds)
    register_validator("breaks", breaks)
    register_validator("many", finds_many)


def finds_many(report: Any, context: Any = None) -> Any:
    levels = ["info"] * 600 + ["warning"] * 600 + ["error"]
    found = [{"id": "found", "severity": level, "message": "off", "path": None} for level in levels]
    return {"issues": found, "summary": {"count": len(found)}}


class TestCheck:
    @pytest.fixture(autouse=True)
    def results(self, project: Project) -> None:
        rows = [row(of=case(f"case-{number}", line=number + 1), seed=7) for number in range(3)]
        project.write({"r.jsonl": "".join(map(encode, rows))})

    def test_passed(self, project: Project) -> None:
        done = project.run("check", "r.jsonl", "--validator", "outlier_detection")
        assert (done.code, done.err) == (0, "")
        assert done.out == "validator outlier_detection: nothing found\ncheck: passed\n"

    def test_errors_fail(self, project: Project) -> None:
        settings = json.dumps({"contract": {"required": {"answer": "int"}}, "k": 3})
        keys = ["--validator", "schema_adherence", "--validator", "outlier_detection"]
        done = project.run("check", "r.jsonl", *keys, "--context", settings)
        assert (done.code, done.err) == (1, "")
        assert "validator schema_adherence: 3 errors\n  error: " in done.out
        assert done.out.endswith("validator outlier_detection: nothing found\ncheck: not passed\n")

    def test_deep_context_is_an_error(self, project: Project) -> None:
        arguments = ["check", "r.jsonl", "--validator", "outlier_detection", "--context", "[" * 100_000]
        project.refuses(*arguments, error="--context is not valid JSON")

    def test_worst_issues_are_kept(self, project: Project) -> None:
        done = project.run("check", "r.jsonl", "--validator", "many", "--format", "json")
        (found,) = json.loads(done.out)["scenario_reports"][0]["aggregates"]["validations"]
        severities = [each["severity"] for each in found["issues"]]
        assert severities == ["error"] + ["warning"] * 600 + ["info"] * 399
        assert found["summary"]["count"] == 1201

    def test_broken_validator_is_an_infrastructure_error(self, project: Project) -> None:
        done = project.run("check", "r.jsonl", "--validator", "breaks")
        assert (done.code, done.out.splitlines()[-1]) == (4, "check: a validator could not run")
        assert "validator breaks could not run: " in done.out
        done = project.run("check", "r.jsonl", "--validator", "breaks", "--format", "json")
        assert (done.code, json.loads(done.out)["exit_code"]) == (4, 4)


def validations(project: Project, name: str) -> list[dict[str, Any]]:
    return [each for one in project.json(name)["scenario_reports"] for each in one["aggregates"]["validations"]]


@pytest.mark.parametrize(
    ("keys", "gate", "code"),
    [
        (["finds"], "error", 1),
        (["finds"], "warn", 0),
        (["breaks"], "error", 0),
        (["breaks", "finds"], "error", 1),
        (["breaks", "finds"], "warn", 0),
    ],
)
def test_every_command_applies_the_validators_of_a_run(keys: list[str], gate: str, code: int, project: Project) -> None:
    project.documents("one", "two", validators=keys, gate={"validators": gate})
    done = project.eval()
    assert done.code == code
    assert "\n::" not in done.out
    assert "\x1b" not in done.out
    expected = validations(project, "r.report.json")
    assert [each["validator"] for each in expected] == keys
    assert project.run("report", "r.jsonl", "--out", "all.jsonl").code == code
    assert validations(project, "all.report.json") == expected
    assert project.run("rescore", "r.jsonl").code == code
    assert validations(project, "r.rescored.report.json") == expected
    for index in (1, 2):
        assert project.run("eval", "evals", "--shard", f"{index}/2", "--out", f"{index}.jsonl").code == 0
    assert project.run("report", "1.jsonl", "2.jsonl", "--out", "both.jsonl").code == code
    assert validations(project, "both.report.json") == expected
    assert project.eval("--dry-run").code == 0


def test_check_finds_what_the_run_found(project: Project) -> None:
    worse = {"evaluators": [{**HELLO, "value": "Bye"}]}
    gate = {"validators": "warn", "min_pass_rate": 0}
    project.documents("one", worse, validators=["finds", BALANCED], seeds=[7, 11], gate=gate)
    assert project.eval().code == 0
    context = json.dumps({key: value for key, value in BALANCED.items() if key != "key"})
    found = []
    for arguments in (["finds"], ["fairness_balance", "--context", context]):
        done = project.run("check", "r.jsonl", "--format", "json", "--validator", *arguments)
        assert done.code == 1
        found += json.loads(done.out)["scenario_reports"][0]["aggregates"]["validations"]
    assert found == validations(project, "r.report.json")
    assert found[0]["summary"]["context"]["expected_seeds"] == [7, 11]


@pytest.mark.parametrize("own", [{}, {"expected_seeds": [1], "k": 2}])
def test_context_has_the_seeds_of_the_trials_that_ran_and_settings_of_the_document(
    own: dict[str, Any], project: Project
) -> None:
    execution: Any = {"repeat": {"max": 3, "stop_when": "decided"}, "seeds": [7, 8, 9], "gate": {"validators": "warn"}}
    project.documents("a", validators=[{"key": "finds", **own}], **execution)
    assert project.eval().code == 0
    (found,) = validations(project, "r.report.json")
    assert found["summary"]["context"].items() >= {"expected_seeds": [7, 8], **own}.items()
