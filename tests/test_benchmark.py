"""The Python API: scenarios and runners of a program, through the same stages."""

from __future__ import annotations

import asyncio
import json
from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
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
from agentv_ci.errors import CannotGoOn, InvalidInput, TargetUnavailable, UsageError
from agentv_ci.validators import register_validator
from agentv_ci.validators.builtin import BUILT_IN
from tests.support import write

EVALS = """\
$schema: agentv-eval-v2
execution: {}
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
  - {name: default, provider: mock, response: I am default}
  - name: agrees
    provider: mock
    response: '{"said": "yes"}'
    usage: {input_tokens: 3, output_tokens: 2}
"""
MOCK = RunnerSpec(key="mock", config={"response": "yes", "usage": {"input_tokens": 3, "output_tokens": 2}})
MINE = RunnerSpec(key="mine")
ISSUE = {"id": "odd", "severity": "error", "message": "not like this", "path": None}
SECRET = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def documents(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setattr(benchmark, "_scenarios", {})
    monkeypatch.setattr(benchmark, "_runners", {})
    monkeypatch.setattr("agentv_ci.validators._registered", {})
    write(repository, {"a.yaml": EVALS})
    register_scenario("asks", lambda runner, payload: {"said": runner.ask("x")})


def ran(
    scenario: ScenarioSpec | str, *runners: RunnerSpec, environ: dict[str, str] | None = None, **given: Any
) -> EngineReport:
    spec = ScenarioSpec(key=scenario) if isinstance(scenario, str) else scenario
    return run_benchmark(EngineConfig(scenarios=[spec], runners=[*runners], **given), environ or {})


def runs_of(scenario: ScenarioSpec | str, *runners: RunnerSpec, **given: Any) -> list[RunResult]:
    return ran(scenario, *runners, **given).scenario_reports[0].runs


def of_scenario(function: Callable[..., Any], **given: Any) -> RunResult:
    """Run a scenario function with the mock, and check that the report can be written; returns the last run."""
    register_scenario("it", function)
    report = ran(ScenarioSpec(key="it", **given), MOCK, validators=[*BUILT_IN])
    report.model_dump_json()
    return report.scenario_reports[0].runs[-1]


def of_runner(function: Callable[..., Any], scenario: str = "a.yaml") -> RunResult:
    """Have a runner function answer, and check that the report can be written."""
    register_runner("mine", function)
    report = ran(scenario, MINE)
    report.model_dump_json()
    return report.scenario_reports[0].runs[0]


def returns(value: object) -> Callable[..., Any]:
    return lambda *_: value


def raises(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["itself"] = value
    return value


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Base(BaseException): ...


async def asks_later(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
    return {"said": await runner.ask("x"), "key": runner.key}


class Asking:
    async def __call__(self, runner: Any, payload: Any) -> dict[str, Any]:
        return {"said": await runner.ask("x")}


class TestScenarios:
    def test_scenario_asks_a_runner(self) -> None:
        def asks_twice(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
            conversation = [{"role": "system", "content": "Be short"}, {"role": "user", "content": "Why?"}]
            return {"first": runner.ask("Who?"), "second": runner.ask(conversation), **payload, **runner.config}

        register_scenario("twice", asks_twice)
        register_runner("mine", lambda messages, config: f"{messages[-1]['content']} {config['agent_id']}")
        spec = ScenarioSpec(key="twice", params={"steps": 1}, seeds=[7])
        report = ran(spec, RunnerSpec(key="mine", config={"agent_id": "b-1"}))
        (run,) = report.scenario_reports[0].runs
        assert run.output == {
            "first": "Who? b-1",
            "second": "Why? b-1",
            "params": {"steps": 1},
            "seed": 7,
            "agent_id": "b-1",
        }
        assert (run.status, run.seed, run.runner_key, run.case_id) == ("success", 7, "mine", None)
        assert 0 <= run.duration_ms < 60_000
        assert run.config_digest == report.config_digest
        run, silent = runs_of("twice", MOCK, RunnerSpec(key="mock", config={"response": "no"}))
        assert run.metrics == {"input_tokens": 6, "output_tokens": 4, "total_tokens": 10}
        assert silent.output == {"first": "no", "second": "no", "params": {}, "seed": None, "response": "no"}

    @pytest.mark.parametrize("function", [asks_later, Asking().__call__, Asking()])
    def test_functions_methods_and_objects_are_scenarios(self, function: Callable[..., Any]) -> None:
        run = of_scenario(function)
        assert run.output is not None
        assert (run.output["said"], run.output.get("key", "mock")) == ("yes", "mock")

    @pytest.mark.parametrize(
        ("given", "seeds"),
        [
            ({}, [None]),
            ({"seeds": [7, 11]}, [7, 11]),
            ({"repetitions": 3, "seeds": [7, 11]}, [7, 11, None]),
            *(({"seeds": [seed]}, [seed]) for seed in (0, -1, 2**53 + 1, 2**63, 10**400)),
        ],
    )
    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    def test_trials_and_seeds(self, scenario: str, given: dict[str, Any], seeds: list[int | None]) -> None:
        runs = runs_of(ScenarioSpec(key=scenario, **given), MOCK)
        assert [(run.seed, run.status) for run in runs] == [(seed, "success") for seed in seeds]

    @pytest.mark.parametrize("value", [{}, {"a": "\u0000"}, {"a": "\u202e"}, {"a": 10**400}, {"": None}, nested(50)])
    def test_output_is_kept(self, value: dict[str, Any]) -> None:
        assert json.loads(of_scenario(returns(value)).model_dump_json())["output"] == value

    @pytest.mark.parametrize(
        "value",
        [cyclic(), {"a": object()}, {"a": b"\xff"}, {(1, 2): 4}, nested(5000), [], None, "text", 3, UserDict()],
        ids=lambda value: type(value).__name__,
    )
    def test_invalid_output_is_an_error_of_the_run(self, value: object) -> None:
        run = of_scenario(returns(value))
        assert (run.status, run.output) == ("error", None)
        assert (run.error or "").startswith("the scenario ")

    @pytest.mark.parametrize("value", [{"a": "\ud800"}, {1: 2}, {None: 3}, {"a": float("nan")}])
    def test_odd_output_can_be_written(self, value: dict[Any, Any]) -> None:
        run = of_scenario(returns(value))
        assert run.status == "error" or RunResult.model_validate_json(run.model_dump_json()) == run

    def test_later_changes_do_not_reach_the_output(self) -> None:
        kept: dict[str, list[int]] = {"seen": []}

        def counts(runner: Any, payload: Any) -> dict[str, Any]:
            kept["seen"].append(len(kept["seen"]))
            return kept

        register_scenario("counts", counts)
        runs = runs_of(ScenarioSpec(key="counts", repetitions=3), MOCK)
        assert [run.output for run in runs] == [{"seen": [*range(n + 1)]} for n in range(3)]

    def test_forgotten_await_is_an_error_of_the_run(self) -> None:
        async def yields(runner: Any, payload: Any) -> Any:
            yield {}

        assert [of_scenario(function).status for function in (yields, lambda *_: (yield {}))] == ["error", "error"]
        run = of_scenario(lambda runner, payload: asks_later(runner, {**payload}))
        assert (run.status, run.error) == ("error", "the scenario returned a coroutine; declare it with async def")

    def test_params_are_private_to_a_run(self) -> None:
        def counts(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
            payload["params"]["seen"].append(1)
            return {"n": len(payload["params"]["seen"])}

        params: dict[str, Any] = {"seen": []}
        assert of_scenario(counts, params=params, repetitions=2).output == {"n": 1}
        assert params == {"seen": []}

    def test_invalid_message_is_an_error_of_the_run(self) -> None:
        run = of_scenario(lambda runner, payload: {"said": runner.ask([{"role": "king", "content": "Hi"}])})
        assert run.error == "ValueError: a message must be {role: system|user|assistant|tool, content: text}"


class TestExceptions:
    @pytest.mark.parametrize("through", [of_scenario, of_runner])
    @pytest.mark.parametrize(
        ("error", "status", "text"),
        [
            (ValueError("no"), "error", "ValueError: no"),
            (TimeoutError("late"), "timeout", "TimeoutError: late"),
            (ExceptionGroup("both", [ValueError()]), "error", "ExceptionGroup: both"),
            (SystemExit(3), "error", "SystemExit: 3"),
            (asyncio.CancelledError(), "error", "CancelledError"),
            (StopIteration(), "error", "StopIteration"),
            (Unspeakable(), "error", "Unspeakable"),
            (ValueError("\ud800"), "error", "ValueError: \ufffd"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
    )
    def test_exception_is_an_error_of_its_run(
        self, through: Callable[..., RunResult], error: BaseException, status: str, text: str
    ) -> None:
        run = through(raises(error))
        assert (run.status, run.output) == (status, None)
        assert text in (run.error or "")

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), Base()])
    def test_other_base_exceptions_reach_the_program(self, error: BaseException) -> None:
        with pytest.raises(type(error)):
            of_scenario(raises(error))

    @pytest.mark.parametrize(("kind", "status"), [("timeout", "timeout"), ("server", "error")])
    def test_error_of_a_target_is_an_error_of_the_run(self, kind: str, status: str) -> None:
        late = RunnerSpec(key="mock", config={"error": {"kind": kind, "message": "late"}})
        (found,) = ran(ScenarioSpec(key="asks", repetitions=2), late).scenario_reports
        assert [(run.status, run.output) for run in found.runs] == [(status, None)] * 2
        assert found.aggregates["errors"] == 2


class TestRunners:
    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    @pytest.mark.parametrize("value", [MappingProxyType({"a": {}}), UserDict(a={}), {"a": MappingProxyType({})}])
    def test_mapping_is_an_answer(self, value: object, scenario: str) -> None:
        run = of_runner(returns(value), scenario)
        assert run.output == ({"said": {"a": {}}} if scenario == "asks" else {"a": {}})

    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    def test_answer_may_be_awaited(self, scenario: str) -> None:
        async def later(messages: Any, config: Any) -> dict[str, Any]:
            await asyncio.sleep(0.02)
            return {"answer": 42}

        run = of_runner(later, scenario)
        assert run.output == ({"said": {"answer": 42}} if scenario == "asks" else {"answer": 42})
        assert 20 <= run.duration_ms < 60_000

    @pytest.mark.parametrize(
        ("value", "error"),
        [
            *((value, "the runner returned a value that is not JSON: ") for value in (cyclic(), nested(5000))),
            *(({key: value}, "that is not JSON: ") for key, value in (("a", object()), ((1, 2), 3), ("a", 10**5000))),
            *((value, "the runner must return a text or a mapping, not ") for value in (None, 3, [1], b"yes")),
        ],
    )
    def test_invalid_answer_is_an_error_of_its_case(self, value: object, error: str) -> None:
        run = of_runner(returns(value))
        assert (run.status, error in (run.error or "")) == ("error", True)

    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    def test_answer_may_have_lone_surrogates(self, scenario: str) -> None:
        assert of_runner(returns("yes \ud800"), scenario).status == "success"

    def test_messages_and_settings_are_private_to_an_answer(self) -> None:
        conversation = [{"role": "user", "content": "Hi"}]

        def edits(messages: list[dict[str, Any]], config: dict[str, Any]) -> str:
            messages[0]["content"] = "changed"
            config["seen"].append(1)
            return str(len(config["seen"]))

        register_runner("it", edits)
        register_scenario("once", lambda runner, payload: {"said": runner.ask(conversation)})
        spec = RunnerSpec(key="it", config={"seen": []})
        runs = runs_of(ScenarioSpec(key="once", repetitions=2), spec)
        assert [run.output for run in runs] == [{"said": "1"}] * 2
        assert (spec.config, conversation) == ({"seen": []}, [{"role": "user", "content": "Hi"}])

    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    @pytest.mark.parametrize("function", [returns(SECRET), raises(ValueError(SECRET))], ids=["answer", "error"])
    def test_secrets_of_a_function_are_masked(self, function: Callable[..., Any], scenario: str) -> None:
        register_runner("mine", function)
        report = ran(scenario, MINE, environ={"SOME_API_KEY": SECRET}).model_dump_json()
        assert SECRET not in report

    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    def test_secrets_of_a_target_are_masked(self, scenario: str) -> None:
        shows = RunnerSpec(
            key="cli", config={"prompt": "none", "command_template": "echo $SHOWN", "env": {"SHOWN": "${{ REFERRED }}"}}
        )
        report = ran(scenario, shows, environ={"REFERRED": SECRET, "PATH": "/usr/bin:/bin"}).model_dump_json()
        assert (SECRET in report, "***" in report) == (False, True)


class TestEvalFiles:
    @pytest.fixture(autouse=True)
    def targets(self, repository: Path) -> None:
        write(repository, {"targets.yaml": TARGETS})

    def test_cases_run_against_a_target(self) -> None:
        report = ran(ScenarioSpec(key="a.yaml", repetitions=2), RunnerSpec(key="agrees"))
        runs = report.scenario_reports[0].runs
        assert [(run.case_id, run.status, run.output) for run in runs] == [("one", "success", {"said": "yes"})] * 2
        metrics = {"score": 0.5, "agrees": 1.0, "shouts": 0.0, "input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
        assert runs[0].metrics == metrics
        assert {run.config_digest for run in runs} != {report.config_digest}

    @pytest.mark.parametrize(
        ("metrics", "found", "warnings"),
        [
            (["shouts"], ["shouts"], []),
            (["agree"], [], ["a.yaml: no scores of an evaluator 'agree' (did you mean 'agrees'?)"]),
        ],
    )
    def test_metrics_select_evaluators(self, metrics: list[str], found: list[str], warnings: list[str]) -> None:
        report = ran("a.yaml", MOCK, metrics=metrics)
        measured = ["score", "input_tokens", "output_tokens", "total_tokens"]
        assert {*report.scenario_reports[0].runs[0].metrics} == {*found, *measured}
        assert report.warnings == warnings

    @pytest.mark.parametrize(
        ("execution", "given", "trials"),
        [
            ("repeat: 2", {}, 2),
            ("repeat: 2", {"repetitions": 1}, 1),
            ("repeat: {max: 5, stop_when: decided}", {}, 5),
            ("repeat: {max: 5, stop_when: decided}", {"repetitions": 4}, 4),
        ],
    )
    def test_all_trials_of_the_document_run(
        self, execution: str, given: dict[str, Any], trials: int, repository: Path
    ) -> None:
        write(repository, {"b.yaml": EVALS.replace("execution: {}", f"execution: {{{execution}}}")})
        register_runner("mine", returns("yes"))
        for runner in (MINE, RunnerSpec(key="agrees")):
            assert len(runs_of(ScenarioSpec(key="b.yaml", **given), runner)) == trials

    def test_answers_of_a_function_are_scored(self) -> None:
        register_runner("mine", lambda messages, config: f"yes{config['end']} {json.dumps(messages)}")
        (run,) = runs_of("a.yaml", RunnerSpec(key="mine", config={"end": "!"}))
        asked = [{"role": "system", "content": "Be short"}, {"role": "user", "content": "May I?"}]
        assert (run.metrics["score"], run.output) == (1.0, {"text": f"yes! {json.dumps(asked)}"})

    def test_no_files_are_left(self, repository: Path) -> None:
        ran("a.yaml", MOCK)
        assert sorted(path.name for path in repository.iterdir()) == [".git", "a.yaml", "targets.yaml"]

    def test_names_of_measures_are_taken_and_warnings_reported(self, repository: Path) -> None:
        other = EVALS.replace("name: agrees", "name: cost_usd").replace("type: contains", "type: contains, weight: 0")
        write(repository, {"b.yaml": other})
        report = ran("b.yaml", MOCK)
        assert "cost_usd" not in report.scenario_reports[0].runs[0].metrics
        assert any("weight" in each for each in report.warnings)


class TestTargets:
    @pytest.mark.parametrize(
        ("runner", "document", "said"),
        [
            (RunnerSpec(key="default"), "agrees", "I am default"),
            (RunnerSpec(key="agrees"), "default", {"said": "yes"}),
            (RunnerSpec(key="agrees", config={"response": "perhaps"}), "default", "perhaps"),
        ],
    )
    def test_runner_is_a_target_of_the_documents(
        self, runner: RunnerSpec, document: str, said: object, repository: Path
    ) -> None:
        evals = EVALS.replace("execution: {}", f"execution: {{target: {document}}}")
        write(repository, {"targets.yaml": TARGETS, "b.yaml": evals})
        output = said if isinstance(said, dict) else {"text": said}
        assert runs_of("b.yaml", runner)[0].output == output
        (run,) = runs_of("asks", runner)
        assert run.output == {"said": json.dumps(said) if isinstance(said, dict) else said}

    def test_function_may_have_the_name_of_a_target(self, repository: Path) -> None:
        write(repository, {"targets.yaml": TARGETS.replace("name: agrees", "name: default (function)")})
        register_runner("default", returns("yes"))
        assert runs_of("a.yaml", RunnerSpec(key="default"))[0].output == {"text": "yes"}

    def test_command_runs_beside_the_eval_file(self, repository: Path) -> None:
        write(repository, {"sub/said.txt": "yes"})
        cat = RunnerSpec(key="cli", config={"prompt": "none", "command_template": "cat said.txt", "cwd": "sub"})
        assert runs_of("a.yaml", cat)[0].output == {"text": "yes"}

    def test_paths_of_a_targets_document_are_relative_to_it(self, repository: Path) -> None:
        target = "{name: there, provider: cli, command_template: cat said.txt, prompt: none, cwd: ../sub}"
        write(repository, {".agentv/targets.yaml": f"targets: [{target}]", "sub/said.txt": "yes"})
        assert runs_of("asks", RunnerSpec(key="there"))[0].output == {"said": "yes"}

    @pytest.mark.parametrize("scenario", ["asks", "a.yaml"])
    @pytest.mark.parametrize(
        ("key", "config"),
        [
            ("cli", {"command_template": "pwd {PROMPT}", "cwd": "nowhere"}),
            (
                "cli",
                {"command_template": "pwd {PROMPT}", "healthcheck": {"type": "command", "command_template": "false"}},
            ),
            ("codex", {"executable": "nowhere"}),
        ],
    )
    def test_unavailable_target_is_an_error(self, key: str, config: dict[str, Any], scenario: str) -> None:
        with pytest.raises(TargetUnavailable):
            ran(scenario, RunnerSpec(key=key, config=config), environ={"PATH": "/usr/bin:/bin"})


class TestErrors:
    @pytest.mark.parametrize(
        ("scenario", "key", "config", "error"),
        [
            *((key, "mock", {}, "unknown scenario") for key in (".", "*.yaml", "b.yaml", "/", "\0", "a" * 5000)),
            ("askz", "mock", {}, r"unknown scenario 'askz' \(did you mean 'asks'\?\): .*; registered: asks"),
            ("asks", "mok", {}, r"unknown runner 'mok' \(did you mean 'mock'\?\)"),
            ("asks", "mock", {"respons": "x"}, "runner 'mock': respons"),
            (
                "asks",
                "codex",
                {"workspace": {"isolation": "namespaces"}},
                "works in a workspace, and functions have none",
            ),
            ("a.yaml", "mock", {"response": 3}, "runner 'mock': response"),
            ("a.yaml", "cli", {}, "runner 'cli': command_template"),
            ("a.yaml", "mock", {"judge_target": "none"}, "none"),
        ],
    )
    def test_invalid_specification(self, scenario: str, key: str, config: dict[str, Any], error: str) -> None:
        register_runner("mine", lambda messages, config: pytest.fail("it was asked"))
        with pytest.raises(CannotGoOn, match=error):
            ran(scenario, MINE, RunnerSpec(key=key, config=config))

    @pytest.mark.parametrize(
        ("key", "config", "error"),
        [
            ("cli", {"command_template": "{NOPE}"}, "NOPE"),
            ("cli", {"command_template": "pwd"}, "neither {PROMPT} nor {PROMPT_FILE}"),
            ("openai", {"model": "gpt", "api_key": "${{ NO_SUCH_KEY }}"}, "NO_SUCH_KEY"),
        ],
    )
    def test_invalid_target(self, key: str, config: dict[str, Any], error: str) -> None:
        with pytest.raises(UsageError, match=error):
            ran("a.yaml", RunnerSpec(key=key, config=config))

    def test_documents_with_errors(self, repository: Path) -> None:
        write(repository, {"targets.yaml": TARGETS.replace("provider: mock", "provider: none")})
        with pytest.raises(InvalidInput):
            ran("a.yaml", MOCK)

    def test_invalid_registration_and_configuration(self) -> None:
        with pytest.raises(ValueError, match="the key must not be empty"):
            register_scenario("", asks_later)
        with pytest.raises(TypeError, match="'x' must be a function, not int"):
            register_runner("x", 3)  # type: ignore[arg-type]
        with pytest.raises(ValidationError):
            EngineConfig(scenarios=[], runners=[MOCK])
        with pytest.raises(ValidationError):
            ScenarioSpec(key="x", repetitions=0)


class TestConfiguration:
    @pytest.mark.parametrize("params", [{"a": {1: 2, "b": 3}}, {"a": {(1, 2): 3}}, {"a": 10**5000}, nested(5000)])
    def test_params_may_be_any_value(self, params: dict[str, Any]) -> None:
        assert of_scenario(returns({}), params=params).status == "success"

    def test_digest_is_that_of_the_configuration(self) -> None:
        def digest(output: object, params: dict[str, Any]) -> str | None:
            return of_scenario(returns(output), params=params).config_digest

        first = digest({"n": 0}, {"a": 1, "b": [2]})
        assert digest({"n": 1}, {"b": [2], "a": 1}) == first
        assert digest({"n": 0}, {"a": 1, "b": [3]}) != first
        for one, other in ((Path("a"), Path("b")), ({1}, {2}), (b"a", b"b")):
            assert digest({}, {"a": one}) != digest({}, {"a": other})

    def test_context_of_validators_may_be_any_value(self) -> None:
        odd = {"k": cyclic(), "expected_seeds": {1: 2, "b": 3}, "tolerance": [], "contract": 3, "outlier_detection": 1}
        report = ran("asks", MOCK, validators=[*BUILT_IN], validator_context=odd)
        assert all("error" not in each for each in report.scenario_reports[0].aggregates["validations"])
        json.loads(report.model_dump_json())


class TestValidators:
    def validations(self, *validators: str, **given: Any) -> list[dict[str, Any]]:
        report = ran(ScenarioSpec(key="asks", seeds=[7]), MOCK, validators=[*validators], **given)
        (scenario,) = json.loads(report.model_dump_json())["scenario_reports"]
        found: list[dict[str, Any]] = scenario["aggregates"]["validations"]
        return found

    def test_validations_are_in_the_aggregates(self) -> None:
        keys = ["structural_consistency", "reproducibility_metadata", "outlier_detection"]
        found = self.validations(*keys)
        assert [(each["validator"], each["issues"]) for each in found] == [(key, []) for key in keys]
        assert found[1]["summary"]["details"]["expected_seeds"] == [7]

    def test_context_is_for_all_or_one_validator_and_an_unknown_one_is_an_error(self) -> None:
        context = {"k": 2, "outlier_detection": {"k": 3}}
        found, unknown = self.validations("outlier_detection", "outlier_detecton", validator_context=context)
        assert found["summary"]["details"]["k"] == 3
        assert "did you mean 'outlier_detection'?" in unknown["error"]

    @pytest.mark.parametrize(
        "validator",
        [
            raises(SystemExit(2)),
            returns(cyclic()),
            returns({"issues": [], "summary": {"a": object()}}),
            returns({"issues": [{"id": "x", "severity": "error", "message": "\ud800", "path": None}], "summary": {}}),
        ],
    )
    def test_broken_validator_affects_no_other(self, validator: Callable[..., Any]) -> None:
        register_validator("breaks", validator)
        one, other = self.validations("breaks", "structural_consistency")
        assert (one["validator"], other["issues"]) == ("breaks", [])

    def test_input_of_a_validator_is_private(self) -> None:
        def empties(report: dict[str, Any], context: Any) -> dict[str, Any]:
            report["runs"].clear()
            return {"issues": [], "summary": {}}

        register_validator("empties", empties)
        assert self.validations("empties", "structural_consistency")[1]["summary"]["details"]["runs"] == 1
        assert len(runs_of("asks", MOCK, validators=["empties"])) == 1


class TestVerdicts:
    def verdict(self, report: EngineReport) -> tuple[str, list[str]]:
        assert [each.verdict for each in report.scenario_reports] == [report.verdict]
        assert report.scenario_reports[0].reasons == report.reasons
        return report.verdict, report.reasons

    def test_eval_file_has_the_verdict_of_its_gate(self) -> None:
        config = {"response": "yes!"}
        assert self.verdict(ran("a.yaml", RunnerSpec(key="mock", config=config))) == ("pass", [])
        assert self.verdict(ran("a.yaml", MOCK)) == ("fail", ["pass rate 0.0% is below 100.0%"])
        register_runner("mine", raises(ValueError("no answer")))
        reasons = ["1 errored case, at most 0 allowed", "the only case crashed"]
        assert self.verdict(ran("a.yaml", MINE)) == ("error", reasons)

    def test_validators_of_an_eval_file_count(self, repository: Path) -> None:
        register_validator("objects", returns({"issues": [ISSUE], "summary": {}}))
        evals = EVALS.replace("execution: {}", "execution: {validators: [objects], gate: {min_pass_rate: 0}}")
        write(repository, {"a.yaml": evals})
        assert self.verdict(ran("a.yaml", MOCK)) == ("fail", ["validator objects: not like this"])

    def test_function_fails_with_a_run_or_a_validator(self) -> None:
        register_scenario("raises", raises(ValueError("no output")))
        assert self.verdict(ran("asks", MOCK, validators=["structural_consistency"])) == ("pass", [])
        failed = "2 of 2 runs failed: ValueError: no output"
        assert self.verdict(ran(ScenarioSpec(key="raises", repetitions=2), MOCK)) == ("error", [failed])
        register_validator("objects", returns({"issues": [ISSUE, ISSUE], "summary": {}}))
        found = self.verdict(ran("raises", MOCK, validators=["objects"]))
        reasons = ["1 of 1 run failed: ValueError: no output", "validator objects: not like this (and 1 more)"]
        assert found == ("fail", reasons)

    def test_reasons_name_their_scenario_and_runner(self) -> None:
        register_scenario("raises", raises(ValueError("no output")))
        scenarios = [ScenarioSpec(key="asks"), ScenarioSpec(key="raises")]
        report = run_benchmark(EngineConfig(scenarios=scenarios, runners=[MOCK, MOCK]), {})
        failed = "1 of 1 run failed: ValueError: no output"
        assert [each.verdict for each in report.scenario_reports] == ["pass", "error"]
        assert report.reasons == [f"raises: mock: {failed}", f"raises: mock#2: {failed}"]


class TestConcurrency:
    def test_benchmark_may_run_in_a_loop_or_a_scenario(self) -> None:
        async def later(*_: Any) -> dict[str, Any]:
            return {"inner": [run.output for run in runs_of("asks", MOCK)]}

        assert asyncio.run(later()) == {"inner": [{"said": "yes"}]}
        for function in (later, lambda *_: {"inner": [run.output for run in runs_of("asks", MOCK)]}):
            assert of_scenario(function).output == {"inner": [{"said": "yes"}]}
