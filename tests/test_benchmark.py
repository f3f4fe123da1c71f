"""The Python door: scenarios and runners of a program, through the same stages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentv_ci import benchmark
from agentv_ci.benchmark import (
    EngineConfig,
    EngineReport,
    RunnerSpec,
    RunResult,
    ScenarioSpec,
    register_runner,
    register_scenario,
    run_benchmark,
)
from agentv_ci.errors import InvalidInput, TargetUnavailable, UsageError
from tests.support import write

EVALS = """\
$schema: agentv-eval-v2
execution: {repeat: 2}
evalcases:
  - id: one
    expected_outcome: Says yes
    input_messages: [{role: system, content: Be short}, {role: user, content: May I?}]
    expected_messages: []
    evaluators: [{name: agrees, type: contains, value: 'yes'}, {name: shouts, type: contains, value: '!'}]
"""
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: mock, response: 'no'}
  - name: agrees
    provider: mock
    response: '{"said": "yes"}'
    usage: {input_tokens: 3, output_tokens: 2}
"""
MOCK = RunnerSpec(key="mock", config={"response": "yes", "usage": {"input_tokens": 3, "output_tokens": 2}})


@pytest.fixture(autouse=True)
def registered(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setattr(benchmark, "_scenarios", {})
    monkeypatch.setattr(benchmark, "_runners", {})


def ran(scenario: ScenarioSpec, *runners: RunnerSpec, **given: Any) -> EngineReport:
    return run_benchmark(EngineConfig(scenarios=[scenario], runners=[*runners], **given), {})


def runs_of(scenario: ScenarioSpec, *runners: RunnerSpec, **given: Any) -> list[RunResult]:
    return ran(scenario, *runners, **given).scenario_reports[0].runs


def asks_twice(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
    first = runner.ask("Who?")
    second = runner.ask([{"role": "system", "content": "Be short"}, {"role": "user", "content": "Why?"}])
    return {"first": first, "second": second, **payload}


async def asks_once(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
    return {"said": await runner.ask("Who?"), "key": runner.key, "config": runner.config}


class TestFunctions:
    def test_a_scenario_asks_a_registered_runner(self) -> None:
        heard: list[Any] = []

        def diy(messages: list[dict[str, Any]], config: dict[str, Any]) -> str:
            heard.append((messages, config))
            return f"I am {config['agent_id']}"

        register_scenario("twice", asks_twice)
        register_runner("diy", diy)
        report = ran(
            ScenarioSpec(key="twice", params={"steps": 1}, seeds=[7]), RunnerSpec(key="diy", config={"agent_id": "b-1"})
        )
        (run,) = report.scenario_reports[0].runs
        assert run.output == {"first": "I am b-1", "second": "I am b-1", "params": {"steps": 1}, "seed": 7}
        assert (run.status, run.seed, run.runner_key, run.case_id) == ("success", 7, "diy", None)
        assert [messages[-1]["content"] for messages, _ in heard] == ["Who?", "Why?"]
        assert run.config_digest == report.config_digest

    def test_what_a_runner_returns_is_what_a_scenario_gets(self) -> None:
        async def structured(messages: Any, config: Any) -> dict[str, Any]:
            return {"answer": 42}

        register_scenario("once", asks_once)
        register_runner("structured", structured)
        (run,) = runs_of(ScenarioSpec(key="once"), RunnerSpec(key="structured"))
        assert run.output == {"said": {"answer": 42}, "key": "structured", "config": {}}

    def test_there_are_as_many_trials_as_seeds_at_least(self) -> None:
        register_scenario("once", asks_once)
        runs = runs_of(ScenarioSpec(key="once", repetitions=3, seeds=[7, 11]), MOCK)
        assert [run.seed for run in runs] == [7, 11, None]
        runs = runs_of(ScenarioSpec(key="once", seeds=[7, 11]), MOCK)
        assert [run.seed for run in runs] == [7, 11]

    def test_every_scenario_runs_with_every_runner(self) -> None:
        register_scenario("once", asks_once)
        runs = runs_of(ScenarioSpec(key="once"), MOCK, RunnerSpec(key="mock"))
        assert [run.output["config"] for run in runs if run.output] == [MOCK.config, {}]

    def test_tokens_of_all_questions_of_a_run_are_measured(self) -> None:
        register_scenario("twice", asks_twice)
        (run,) = runs_of(ScenarioSpec(key="twice"), MOCK)
        assert run.metrics == {"input_tokens": 6, "output_tokens": 4, "total_tokens": 10}

    @pytest.mark.parametrize(
        ("raised", "status", "error"),
        [
            (ValueError("no"), "error", "ValueError: no"),
            (TimeoutError("late"), "timeout", "TimeoutError: late"),
        ],
    )
    def test_what_a_scenario_raises_is_an_error_of_that_run(self, raised: Exception, status: str, error: str) -> None:
        def breaks(runner: Any, payload: Any) -> dict[str, Any]:
            raise raised

        register_scenario("breaks", breaks)
        report = ran(ScenarioSpec(key="breaks", repetitions=2), MOCK, validators=["structural_consistency"])
        assert [(run.status, run.error, run.output) for run in report.scenario_reports[0].runs] == [
            (status, error, None)
        ] * 2
        assert report.scenario_reports[0].aggregates["errors"] == 2

    def test_a_scenario_returns_a_mapping(self) -> None:
        register_scenario("wrong", lambda runner, payload: "text")
        (run,) = runs_of(ScenarioSpec(key="wrong"), MOCK)
        assert (run.status, run.error) == ("error", "the scenario must return a dict, not str")

    def test_a_runner_that_raises_is_an_error_of_the_scenario(self) -> None:
        def breaks(messages: Any, config: Any) -> str:
            raise RuntimeError("down")

        register_scenario("once", asks_once)
        register_runner("breaks", breaks)
        (run,) = runs_of(ScenarioSpec(key="once"), RunnerSpec(key="breaks"))
        assert (run.status, run.error) == ("error", "ProviderError: the runner raised RuntimeError: down")

    def test_a_target_that_fails_in_time_is_a_timeout(self) -> None:
        register_scenario("once", asks_once)
        late = RunnerSpec(key="mock", config={"error": {"kind": "timeout", "message": "late"}})
        (run,) = runs_of(ScenarioSpec(key="once"), late)
        assert (run.status, run.output) == ("timeout", None)

    def test_a_message_is_a_role_and_a_text(self) -> None:
        register_scenario("odd", lambda runner, payload: {"said": runner.ask([{"role": "king", "content": "Hi"}])})
        (run,) = runs_of(ScenarioSpec(key="odd"), MOCK)
        assert "a message must be {role: system|user|assistant|tool, content: text}" in (run.error or "")

    def test_a_target_of_the_documents_answers_under_its_name(self, repository: Path) -> None:
        write(repository, {"targets.yaml": TARGETS})
        register_scenario("once", asks_once)
        (run,) = runs_of(ScenarioSpec(key="once"), RunnerSpec(key="agrees"))
        assert run.output is not None
        assert run.output["said"] == '{"said": "yes"}'
        changed = RunnerSpec(key="agrees", config={"response": "perhaps"})
        (run,) = runs_of(ScenarioSpec(key="once"), changed)
        assert run.output is not None
        assert run.output["said"] == "perhaps"

    def test_a_benchmark_runs_inside_of_a_loop(self) -> None:
        register_scenario("once", asks_once)

        async def inside() -> EngineReport:
            return ran(ScenarioSpec(key="once"), MOCK)

        assert asyncio.run(inside()).scenario_reports[0].runs[0].status == "success"


class TestEvalFiles:
    @pytest.fixture(autouse=True)
    def _documents(self, repository: Path) -> None:
        write(repository, {"desk.test.yaml": EVALS, "targets.yaml": TARGETS})

    def test_cases_run_against_a_target(self) -> None:
        report = ran(ScenarioSpec(key="desk.test.yaml"), RunnerSpec(key="agrees"))
        runs = report.scenario_reports[0].runs
        assert [(run.case_id, run.status, run.output) for run in runs] == [("one", "success", {"said": "yes"})] * 2
        assert runs[0].metrics["score"] == 0.5
        assert (runs[0].metrics["agrees"], runs[0].metrics["shouts"]) == (1.0, 0.0)
        assert runs[0].metrics["total_tokens"] == 5
        assert {run.config_digest for run in runs} != {report.config_digest}

    def test_named_evaluators_alone_are_metrics(self) -> None:
        run = runs_of(ScenarioSpec(key="desk.test.yaml"), RunnerSpec(key="agrees"), metrics=["shouts"])[0]
        assert {*run.metrics} == {"score", "shouts", "input_tokens", "output_tokens", "total_tokens"}

    def test_trials_are_the_documents_own_unless_they_are_said(self) -> None:
        assert len(runs_of(ScenarioSpec(key="desk.test.yaml"), MOCK)) == 2
        runs = runs_of(ScenarioSpec(key="desk.test.yaml", repetitions=1), MOCK)
        assert [run.seed for run in runs] == [None]
        runs = runs_of(ScenarioSpec(key="desk.test.yaml", repetitions=3, seeds=[5]), MOCK)
        assert [run.seed for run in runs] == [5, None, None]

    def test_a_function_answers_cases_and_evaluators_score_it(self) -> None:
        heard: list[Any] = []

        def agrees(messages: Any, config: Any) -> str:
            heard.append(messages)
            return f"yes{config['end']}"

        register_runner("mine", agrees)
        runs = runs_of(ScenarioSpec(key="desk.test.yaml"), RunnerSpec(key="mine", config={"end": "!"}))
        assert [(run.runner_key, run.metrics["score"], run.output) for run in runs] == [
            ("mine", 1.0, {"text": "yes!"})
        ] * 2
        assert heard[0] == [{"role": "system", "content": "Be short"}, {"role": "user", "content": "May I?"}]

    def test_a_function_that_breaks_is_an_error_of_the_case(self) -> None:
        def late(messages: Any, config: Any) -> str:
            raise TimeoutError

        register_runner("late", late)
        register_runner("odd", lambda messages, config: 3)  # type: ignore[arg-type, return-value]
        runs = ran(ScenarioSpec(key="desk.test.yaml", repetitions=1), RunnerSpec(key="late"), RunnerSpec(key="odd"))
        assert [run.status for run in runs.scenario_reports[0].runs] == ["timeout", "error"]
        assert "not int" in (runs.scenario_reports[0].runs[1].error or "")

    def test_an_eval_file_needs_no_targets_document(self, repository: Path) -> None:
        (repository / "targets.yaml").unlink()
        register_runner("mine", lambda messages, config: "yes")
        runs = runs_of(ScenarioSpec(key="desk.test.yaml", repetitions=1), RunnerSpec(key="mine"), MOCK)
        assert [run.metrics["agrees"] for run in runs] == [1.0, 1.0]

    def test_documents_with_errors_are_refused(self, repository: Path) -> None:
        write(repository, {"targets.yaml": TARGETS.replace("provider: mock", "provider: nobody")})
        with pytest.raises(InvalidInput):
            ran(ScenarioSpec(key="desk.test.yaml"), MOCK)

    def test_a_missing_variable_is_named(self) -> None:
        gpt = RunnerSpec(key="openai", config={"model": "gpt", "api_key": "${{ NO_SUCH_KEY }}"})
        with pytest.raises(UsageError, match="NO_SUCH_KEY"):
            ran(ScenarioSpec(key="desk.test.yaml"), gpt)

    def test_no_results_are_left_behind(self, repository: Path) -> None:
        ran(ScenarioSpec(key="desk.test.yaml"), MOCK)
        assert sorted(path.name for path in repository.iterdir()) == [".git", "desk.test.yaml", "targets.yaml"]


class TestValidators:
    def test_what_validators_say_is_in_the_aggregates(self) -> None:
        register_scenario("once", asks_once)
        report = ran(
            ScenarioSpec(key="once", seeds=[7]),
            MOCK,
            validators=["structural_consistency", "reproducibility_metadata", "outlier_detection"],
        )
        said = report.scenario_reports[0].aggregates["validations"]
        assert [each["validator"] for each in said] == [
            "structural_consistency",
            "reproducibility_metadata",
            "outlier_detection",
        ]
        assert [each["issues"] for each in said] == [[], [], []]
        assert said[1]["summary"]["details"]["expected_seeds"] == [7]
        json.dumps(report.model_dump())

    def test_settings_are_for_all_or_for_one(self) -> None:
        register_scenario("once", asks_once)
        context = {"k": 2, "outlier_detection": {"k": 3}}
        report = ran(ScenarioSpec(key="once"), MOCK, validators=["outlier_detection"], validator_context=context)
        assert report.scenario_reports[0].aggregates["validations"][0]["summary"]["details"]["k"] == 3

    def test_an_unknown_validator_is_told_and_stops_nothing(self) -> None:
        register_scenario("once", asks_once)
        report = ran(ScenarioSpec(key="once"), MOCK, validators=["outlier_detecton"])
        (said,) = report.scenario_reports[0].aggregates["validations"]
        assert "did you mean 'outlier_detection'?" in said["error"]


def test_unknown_names_are_said_before_anything_runs() -> None:
    register_scenario("once", asks_once)
    with pytest.raises(UsageError, match="did you mean 'once'"):
        ran(ScenarioSpec(key="onze"), MOCK)
    with pytest.raises(UsageError, match=r"unknown runner 'mok' \(did you mean 'mock'"):
        ran(ScenarioSpec(key="once"), RunnerSpec(key="mok"))
    with pytest.raises(UsageError, match="runner 'mock': respons"):
        ran(ScenarioSpec(key="once"), RunnerSpec(key="mock", config={"respons": "x"}))


def test_a_target_that_cannot_be_asked_ends_it() -> None:
    register_scenario("once", asks_once)
    with pytest.raises(TargetUnavailable):
        ran(ScenarioSpec(key="once"), RunnerSpec(key="codex", config={"executable": "/no/such/codex"}))


def test_registering_takes_a_name_and_a_function() -> None:
    with pytest.raises(ValueError, match="key"):
        register_scenario("", asks_once)
    with pytest.raises(TypeError, match="'x' must be a function, not int"):
        register_runner("x", 3)  # type: ignore[arg-type]


def test_a_configuration_says_what_is_wrong_with_it() -> None:
    with pytest.raises(ValidationError):
        EngineConfig(scenarios=[], runners=[MOCK])
    with pytest.raises(ValidationError):
        ScenarioSpec(key="x", repetitions=0)


class TestReview:
    """Where a program meets what documents have."""

    def test_all_trials_run_whoever_answers(self, repository: Path) -> None:
        evals = EVALS.replace("repeat: 2", "repeat: {max: 5, stop_when: decided}")
        write(repository, {"desk.test.yaml": evals, "targets.yaml": TARGETS})
        register_runner("mine", lambda messages, config: "yes")
        for runner in (RunnerSpec(key="mine"), RunnerSpec(key="agrees")):
            assert len(runs_of(ScenarioSpec(key="desk.test.yaml"), runner)) == 5
            assert len(runs_of(ScenarioSpec(key="desk.test.yaml", repetitions=4), runner)) == 4

    def test_a_command_without_a_targets_document_runs_beside_the_eval_file(self, repository: Path) -> None:
        write(repository, {"desk.test.yaml": EVALS, "sub/said.txt": "yes"})
        cat = RunnerSpec(key="cli", config={"command_template": "cat said.txt", "cwd": "sub"})
        (run, _) = runs_of(ScenarioSpec(key="desk.test.yaml"), cat)
        assert (run.status, run.output) == ("success", {"text": "yes"})

    def test_paths_of_a_targets_document_are_relative_to_it(self, repository: Path) -> None:
        target = "{name: there, provider: cli, command_template: cat said.txt, cwd: ../sub}"
        write(repository, {".agentv/targets.yaml": f"targets: [{target}]", "sub/said.txt": "yes"})
        register_scenario("once", asks_once)
        (run,) = runs_of(ScenarioSpec(key="once"), RunnerSpec(key="there"))
        assert run.output is not None
        assert run.output["said"] == "yes"

    def test_nobody_is_asked_when_a_later_runner_is_unknown(self) -> None:
        asked: list[Any] = []

        def mine(messages: Any, config: Any) -> str:
            asked.append(messages)
            return "yes"

        register_scenario("once", asks_once)
        register_runner("mine", mine)
        with pytest.raises(UsageError, match="unknown runner 'nobody'"):
            ran(ScenarioSpec(key="once"), RunnerSpec(key="mine"), RunnerSpec(key="nobody"))
        assert asked == []

    def test_an_object_that_is_called_asynchronously_is_a_scenario(self) -> None:
        class Once:
            async def __call__(self, runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
                return {"said": await runner.ask("Who?")}

        register_scenario("object", Once())
        register_scenario("lambda", lambda runner, payload: asks_once(runner, {**payload}))
        assert runs_of(ScenarioSpec(key="object"), MOCK)[0].status == "success"
        assert "declare it with async def" in (runs_of(ScenarioSpec(key="lambda"), MOCK)[0].error or "")

    def test_a_misspelt_metric_is_told(self, repository: Path) -> None:
        write(repository, {"desk.test.yaml": EVALS, "targets.yaml": TARGETS})
        report = ran(ScenarioSpec(key="desk.test.yaml"), MOCK, metrics=["agree"])
        assert report.warnings == ["desk.test.yaml: no scores of an evaluator 'agree' (did you mean 'agrees'?)"]
