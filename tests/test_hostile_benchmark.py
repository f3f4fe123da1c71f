"""What functions, settings and documents of other people can do to the Python door."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

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
from tests.support import clean_environment, write

EVALS = """\
$schema: agentv-eval-v2
evalcases:
  - id: one
    expected_outcome: Says yes
    input_messages: [{role: user, content: May I?}]
    expected_messages: []
    evaluators: [{name: agrees, type: contains, value: 'yes'}]
"""
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: mock, response: I am default}
  - {name: other, provider: mock, response: I am other}
"""
MOCK = RunnerSpec(key="mock", config={"response": "yes"})
SECRET = "sk-canary-0123456789"
ENDS_S = 60
"""A benchmark that takes so long would never end."""
BUILT_IN = [
    "structural_consistency",
    "determinism_check",
    "reproducibility_metadata",
    "schema_adherence",
    "outlier_detection",
    "fairness_balance",
]


@pytest.fixture(autouse=True)
def registered(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setattr(benchmark, "_scenarios", {})
    monkeypatch.setattr(benchmark, "_runners", {})
    monkeypatch.setattr("agentv_ci.validators._registered", {})
    write(repository, {"a.yaml": EVALS})


def ran(scenario: ScenarioSpec, *runners: RunnerSpec, environ: dict[str, str] | None = None, **given: Any) -> Any:
    return run_benchmark(EngineConfig(scenarios=[scenario], runners=[*runners], **given), environ or {})


def runs_of(scenario: ScenarioSpec, *runners: RunnerSpec, **given: Any) -> list[RunResult]:
    runs: list[RunResult] = ran(scenario, *runners, **given).scenario_reports[0].runs
    return runs


def of_function(function: Callable[..., Any], **given: Any) -> EngineReport:
    """Run a scenario function once with the mock."""
    register_scenario("it", function)
    report: EngineReport = ran(ScenarioSpec(key="it", **given), MOCK, validators=BUILT_IN)
    return report


def answered_by(function: Callable[..., Any], **given: Any) -> EngineReport:
    """Have a runner function answer the eval file."""
    register_runner("it", function)
    report: EngineReport = ran(ScenarioSpec(key="a.yaml", **given), RunnerSpec(key="it"))
    return report


def said(value: object) -> Callable[..., Any]:
    return lambda *_: value


def raises(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def status_of(report: EngineReport) -> str:
    return report.scenario_reports[0].runs[0].status


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


def in_a_process(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of somebody who uses the door; one that hangs is killed."""
    imports = "from agentv_ci.benchmark import *\nmock = RunnerSpec(key='mock', config={'response': 'yes'})\n"
    return subprocess.run(
        [sys.executable, "-c", imports + code],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


def ended(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with a watchdog: it ends with status 99 where nothing happens any more."""
    watchdog = "import os, threading\nt = threading.Timer(8, os._exit, [99])\nt.daemon = True\nt.start()\n"
    return in_a_process(watchdog + code, folder)


# --- Scenario functions: what they return ---


@pytest.mark.parametrize("value", [{}, {"a": "\u0000"}, {"a": "\u202e"}, {"a": 10**400}, {"": None}, nested(50)])
def test_output_that_json_holds_is_kept_as_it_is(value: dict[str, Any]) -> None:
    report = of_function(said(value))
    assert json.loads(report.model_dump_json())["scenario_reports"][0]["runs"][0]["output"] == value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(cyclic(), id="cyclic"),
        pytest.param({"a": object()}, id="object"),
        pytest.param({"a": b"\xff"}, id="bytes"),
        pytest.param({"a": "\ud800"}, id="half-a-character"),
    ],
)
def test_report_can_be_written_whatever_a_scenario_returns(value: dict[str, Any]) -> None:
    of_function(said(value)).model_dump_json()


def test_report_can_be_written_where_an_output_is_nested_deep() -> None:
    of_function(said(nested(5000))).model_dump_json()


@pytest.mark.parametrize("value", [{1: 2}, {None: 3}, {(1, 2): 4}])
def test_output_with_a_key_that_is_no_text_concerns_its_run_alone(value: dict[Any, Any]) -> None:
    assert status_of(of_function(said(value))) in ("success", "error")


def test_not_a_number_is_not_quietly_something_else() -> None:
    report = of_function(said({"a": float("nan")}))
    (run,) = report.scenario_reports[0].runs
    assert run.status == "error" or EngineReport.model_validate_json(report.model_dump_json()) == report


def test_run_that_has_ended_does_not_change_any_more() -> None:
    kept: dict[str, list[int]] = {"seen": []}

    def counts(runner: Any, payload: Any) -> dict[str, Any]:
        kept["seen"].append(len(kept["seen"]))
        return kept

    report = of_function(counts, repetitions=3)
    assert [run.output for run in report.scenario_reports[0].runs] == [{"seen": [*range(n + 1)]} for n in range(3)]


@pytest.mark.parametrize("function", [said([]), said(None), said("text"), said(3), said(UserDict())])
def test_what_is_no_dict_is_an_error_of_the_run(function: Callable[..., Any]) -> None:
    assert status_of(of_function(function)) == "error"


def test_generators_and_plain_functions_of_coroutines_are_errors_of_the_run() -> None:
    async def asks(runner: Any, payload: Any) -> dict[str, Any]:
        return {}

    def yields(runner: Any, payload: Any) -> Any:
        yield {}

    async def yields_later(runner: Any, payload: Any) -> Any:
        yield {}

    def forgets(runner: Any, payload: Any) -> Any:
        return asks(runner, payload)

    for function in (yields, yields_later, forgets):
        assert status_of(of_function(function)) == "error"


def test_bound_methods_and_objects_are_functions_too() -> None:
    class Scenario:
        def plain(self, runner: Any, payload: Any) -> dict[str, Any]:
            return {"said": runner.ask("x")}

        async def later(self, runner: Any, payload: Any) -> dict[str, Any]:
            return {"said": await runner.ask("x")}

        async def __call__(self, runner: Any, payload: Any) -> dict[str, Any]:
            return {"said": await runner.ask("x")}

    for function in (Scenario().plain, Scenario().later, Scenario()):
        assert of_function(function).scenario_reports[0].runs[0].output == {"said": "yes"}


# --- Scenario functions: what they raise ---


def test_scenario_that_runs_out_of_something_is_an_error_of_its_run(repository: Path) -> None:
    code = """
register_scenario('it', lambda runner, payload: next(iter([])))
report = run_benchmark(EngineConfig(scenarios=[ScenarioSpec(key='it')], runners=[mock]), {})
print(report.scenario_reports[0].runs[0].status)
"""
    done = ended(code, repository)
    assert (done.returncode, done.stdout) == (0, "error\n")


def test_runner_that_runs_out_of_answers_is_an_error_of_its_run(repository: Path) -> None:
    code = """
register_runner('it', lambda messages, config: next(iter([])))
report = run_benchmark(EngineConfig(scenarios=[ScenarioSpec(key='a.yaml')], runners=[RunnerSpec(key='it')]), {})
print(report.scenario_reports[0].runs[0].status)
"""
    done = ended(code, repository)
    assert (done.returncode, done.stdout) == (0, "error\n")


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancelled"])
@pytest.mark.parametrize("through", [of_function, answered_by], ids=["scenario", "runner"])
def test_exit_of_a_function_is_an_error_of_its_run(error: BaseException, through: Callable[..., EngineReport]) -> None:
    try:
        report = through(raises(error))
    except (SystemExit, asyncio.CancelledError):
        pytest.fail("it ended everything")
    assert status_of(report) == "error"


@pytest.mark.parametrize("through", [of_function, answered_by], ids=["scenario", "runner"])
def test_exception_without_words_is_an_error_of_its_run(through: Callable[..., EngineReport]) -> None:
    assert status_of(through(raises(Unspeakable()))) == "error"


@pytest.mark.parametrize("function", [raises(ValueError("\ud800")), said("yes \ud800")], ids=["raised", "said"])
@pytest.mark.parametrize("asked", ["it", "a.yaml"])
def test_report_can_be_written_whatever_a_runner_says(function: Callable[..., Any], asked: str) -> None:
    register_scenario("it", lambda runner, payload: {"said": runner.ask("x")})
    register_runner("it", function)
    ran(ScenarioSpec(key=asked), RunnerSpec(key="it")).model_dump_json()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Base()])
def test_what_is_meant_for_the_program_reaches_it(error: BaseException) -> None:
    with pytest.raises(type(error)):
        of_function(raises(error))


def test_groups_and_recursion_are_errors_of_the_run() -> None:
    def recurses(*_: Any) -> Any:
        return recurses()

    assert status_of(of_function(recurses)) == "error"
    assert status_of(of_function(raises(ExceptionGroup("both", [ValueError()])))) == "error"


# --- Runner functions ---


@pytest.mark.parametrize(
    "value",
    [{"a": object()}, cyclic(), {(1, 2): 3}, {"a": 10**5000}, nested(5000)],
    ids=["object", "cyclic", "tuple-key", "too-many-digits", "deep"],
)
def test_answer_that_is_no_json_is_an_error_of_its_case(value: dict[str, Any]) -> None:
    assert status_of(answered_by(said(value))) == "error"


@pytest.mark.parametrize("value", [MappingProxyType({"a": 1}), UserDict(a=1)], ids=["proxy", "user-dict"])
def test_mapping_that_is_no_dict_is_an_answer(value: object) -> None:
    assert answered_by(said(value)).scenario_reports[0].runs[0].output == {"a": 1}


def test_mapping_that_is_no_dict_concerns_its_run_alone() -> None:
    register_scenario("asks", lambda runner, payload: {"said": runner.ask("x")})
    register_runner("it", said(MappingProxyType({"a": 1})))
    (run,) = runs_of(ScenarioSpec(key="asks"), RunnerSpec(key="it"))
    assert run.status in ("success", "error")


@pytest.mark.parametrize("value", [None, 3, [], b"yes"])
def test_what_is_no_answer_is_an_error_of_its_case(value: object) -> None:
    assert status_of(answered_by(said(value))) == "error"


# --- What functions change ---


def test_what_a_scenario_does_to_its_params_concerns_its_run_alone() -> None:
    def counts(runner: Any, payload: dict[str, Any]) -> dict[str, Any]:
        payload["params"]["n"] = payload["params"].get("n", 0) + 1
        return {"n": payload["params"]["n"]}

    params: dict[str, Any] = {}
    register_scenario("counts", counts)
    spec = ScenarioSpec(key="counts", params=params, repetitions=2)
    assert [run.output for run in runs_of(spec, MOCK)] == [{"n": 1}, {"n": 1}]
    assert spec.params == {}


def test_what_a_runner_does_to_its_settings_concerns_its_answer_alone() -> None:
    def counts(messages: Any, config: dict[str, Any]) -> str:
        config["seen"].append(1)
        return str(len(config["seen"]))

    register_runner("it", counts)
    spec = RunnerSpec(key="it", config={"seen": []})
    runs = runs_of(ScenarioSpec(key="a.yaml", repetitions=2), spec)
    assert [run.output for run in runs] == [{"text": "1"}] * 2
    assert spec.config == {"seen": []}


def test_what_a_runner_does_to_messages_does_not_reach_the_scenario() -> None:
    conversation = [{"role": "user", "content": "Hi"}]

    def edits(messages: list[dict[str, Any]], config: Any) -> str:
        messages[0]["content"] = "changed"
        return "x"

    register_scenario("asks", lambda runner, payload: {"said": runner.ask(conversation)})
    register_runner("it", edits)
    runs_of(ScenarioSpec(key="asks"), RunnerSpec(key="it"))
    assert conversation == [{"role": "user", "content": "Hi"}]


# --- Secrets ---


@pytest.mark.parametrize("function", [said(SECRET), raises(ValueError(SECRET))], ids=["said", "raised"])
def test_secret_in_what_a_function_answers_to_a_case_is_masked(function: Callable[..., Any]) -> None:
    register_runner("it", function)
    report = ran(ScenarioSpec(key="a.yaml"), RunnerSpec(key="it"), environ={"SOME_API_KEY": SECRET})
    assert SECRET not in report.model_dump_json()


@pytest.mark.parametrize("function", [said(SECRET), raises(ValueError(SECRET))], ids=["said", "raised"])
def test_secret_in_what_a_function_answers_to_a_scenario_is_masked(function: Callable[..., Any]) -> None:
    register_scenario("asks", lambda runner, payload: {"said": runner.ask("x")})
    register_runner("it", function)
    report = ran(ScenarioSpec(key="asks"), RunnerSpec(key="it"), environ={"SOME_API_KEY": SECRET})
    assert SECRET not in report.model_dump_json()


@pytest.mark.parametrize("asked", ["asks", "a.yaml"])
def test_secret_that_a_target_refers_to_is_masked(asked: str) -> None:
    register_scenario("asks", lambda runner, payload: {"said": runner.ask("x"), "config": runner.config})
    shows = RunnerSpec(key="cli", config={"command_template": "echo $SHOWN", "env": {"SHOWN": "${{ REFERRED }}"}})
    report = ran(ScenarioSpec(key=asked), shows, environ={"REFERRED": SECRET, "PATH": "/usr/bin:/bin"})
    assert SECRET not in report.model_dump_json()
    assert "***" in report.model_dump_json()


# --- Which target answers ---


def test_runner_named_default_is_the_target_named_default(repository: Path) -> None:
    write(repository, {"targets.yaml": TARGETS, "b.yaml": EVALS.replace("evalcases", "target: other\nevalcases")})
    (run,) = runs_of(ScenarioSpec(key="b.yaml"), RunnerSpec(key="default"))
    assert run.output == {"text": "I am default"}


def test_runner_with_a_target_s_name_is_that_target_whatever_the_document_names(repository: Path) -> None:
    write(repository, {"targets.yaml": TARGETS, "b.yaml": EVALS.replace("evalcases", "target: default\nevalcases")})
    (run,) = runs_of(ScenarioSpec(key="b.yaml"), RunnerSpec(key="other"))
    assert run.output == {"text": "I am other"}


def test_function_may_be_called_like_targets(repository: Path) -> None:
    write(repository, {"targets.yaml": TARGETS.replace("other,", "default (function),")})
    register_runner("default", said("yes"))
    (run,) = runs_of(ScenarioSpec(key="a.yaml"), RunnerSpec(key="default"))
    assert run.output == {"text": "yes"}


def test_judge_of_a_runner_that_nobody_knows_is_named() -> None:
    with pytest.raises((UsageError, InvalidInput), match="nobody"):
        ran(ScenarioSpec(key="a.yaml"), RunnerSpec(key="mock", config={"judge_target": "nobody"}))


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("cli", {"command_template": "pwd", "cwd": "nowhere"}),
        ("cli", {"command_template": "pwd", "healthcheck": {"type": "command", "command_template": "false"}}),
        ("codex", {"executable": "nowhere"}),
    ],
)
@pytest.mark.parametrize("asked", ["asks", "a.yaml"])
def test_target_that_cannot_be_asked_ends_it(key: str, config: dict[str, Any], asked: str) -> None:
    register_scenario("asks", lambda runner, payload: {"said": runner.ask("x")})
    with pytest.raises(TargetUnavailable):
        ran(ScenarioSpec(key=asked), RunnerSpec(key=key, config=config), environ={"PATH": "/usr/bin:/bin"})


# --- Specifications ---


@pytest.mark.parametrize("key", [".", "*.yaml", "nowhere.yaml", "a.yaml ", "/", "\0"])
def test_scenario_that_nobody_knows_is_a_usage_error(key: str) -> None:
    with pytest.raises(UsageError, match="unknown scenario"):
        ran(ScenarioSpec(key=key), MOCK)


def test_scenario_with_a_key_too_long_for_a_file_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown scenario"):
        ran(ScenarioSpec(key="a" * 5000), MOCK)


@pytest.mark.parametrize(
    "params",
    [{"a": {1: 2, "b": 3}}, {"a": {(1, 2): 3}}, {"a": 10**5000}, nested(5000)],
    ids=["mixed-keys", "tuple-key", "too-many-digits", "deep"],
)
def test_params_may_be_anything(params: dict[str, Any]) -> None:
    assert status_of(of_function(said({}), params=params)) == "success"


@pytest.mark.parametrize("context", [{"k": cyclic()}, {"k": {1: 2, "b": 3}}], ids=["cyclic", "mixed-keys"])
def test_context_of_validators_may_be_anything(context: dict[str, Any]) -> None:
    register_scenario("it", said({}))
    ran(ScenarioSpec(key="it"), MOCK, validators=BUILT_IN, validator_context=context).model_dump_json()


def test_context_of_a_wrong_form_counts_as_left_out() -> None:
    register_scenario("it", said({}))
    context = {
        "k": object(),
        "expected_seeds": "x",
        "tolerance": [],
        "contract": 3,
        "group": {},
        "outlier_detection": 1,
    }
    report = ran(ScenarioSpec(key="it"), MOCK, validators=BUILT_IN, validator_context=context)
    assert all("error" not in each for each in report.scenario_reports[0].aggregates["validations"])
    json.loads(report.model_dump_json())


def test_digest_is_of_the_configuration_and_of_nothing_else() -> None:
    digests = [of_function(said({"n": n}), params={"a": 1, "b": [2]}).config_digest for n in range(2)]
    assert digests[0] == digests[1]
    assert of_function(said({}), params={"b": [2], "a": 1}).config_digest == digests[0]
    assert of_function(said({}), params={"a": 1, "b": [3]}).config_digest != digests[0]


@pytest.mark.parametrize("pair", [(Path("a"), Path("b")), ({1}, {2}), (b"a", b"b")], ids=["path", "set", "bytes"])
def test_params_that_differ_have_digests_that_differ(pair: tuple[object, object]) -> None:
    one, other = (of_function(said({}), params={"a": each}).config_digest for each in pair)
    assert one != other


@pytest.mark.parametrize("seed", [0, -1, 2**53 + 1, 2**63, 10**400])
@pytest.mark.parametrize("asked", ["it", "a.yaml"])
def test_seed_of_any_size_is_kept(seed: int, asked: str) -> None:
    register_scenario("it", lambda runner, payload: {"seed": payload["seed"], "said": runner.ask("x")})
    (run,) = runs_of(ScenarioSpec(key=asked, seeds=[seed]), MOCK)
    assert (run.seed, run.status) == (seed, "success")


@pytest.mark.parametrize("case", ["../x", "a/b", "\x1b[31m", "%s", "x" * 3000, "\u202e", " ", ".", "\0"])
def test_case_may_be_called_anything(case: str, repository: Path) -> None:
    write(repository, {"odd.yaml": EVALS.replace("id: one", f"id: {json.dumps(case)}")})
    report = ran(ScenarioSpec(key="odd.yaml"), MOCK)
    assert report.scenario_reports[0].runs[0].case_id == case
    report.model_dump_json()


def test_score_is_not_taken_for_a_measure(repository: Path) -> None:
    write(repository, {"b.yaml": EVALS.replace("name: agrees", "name: cost_usd")})
    (run,) = runs_of(ScenarioSpec(key="b.yaml"), MOCK)
    assert "cost_usd" not in run.metrics


def test_warnings_of_documents_are_told(repository: Path) -> None:
    write(repository, {"b.yaml": EVALS.replace("type: contains", "type: contains, weight: 0")})
    assert any("weight" in each for each in ran(ScenarioSpec(key="b.yaml"), MOCK).warnings)


# --- Validators ---


@pytest.mark.parametrize(
    "validator",
    [
        raises(SystemExit(2)),
        raises(ValueError("\ud800")),
        said(cyclic()),
        said(None),
        said({"issues": [], "summary": {"a": object()}}),
        said({"issues": [{"id": "x", "severity": "error", "message": "\ud800", "path": None}], "summary": {}}),
    ],
)
def test_validator_that_breaks_stops_nothing(validator: Callable[..., Any]) -> None:
    register_validator("breaks", validator)
    report = ran(ScenarioSpec(key="a.yaml"), MOCK, validators=["breaks", "structural_consistency"])
    one, other = report.scenario_reports[0].aggregates["validations"]
    assert (one["validator"], other["issues"]) == ("breaks", [])
    json.loads(report.model_dump_json())


def test_validator_that_changes_its_input_changes_no_run_of_the_report() -> None:
    def empties(report: dict[str, Any], context: Any) -> dict[str, Any]:
        report["runs"].clear()
        return {"issues": [], "summary": {}}

    register_validator("empties", empties)
    report = ran(ScenarioSpec(key="a.yaml"), MOCK, validators=["empties"])
    assert len(report.scenario_reports[0].runs) == 1


def test_validator_that_changes_its_input_does_not_reach_the_next_one() -> None:
    def empties(report: dict[str, Any], context: Any) -> dict[str, Any]:
        report["runs"].clear()
        return {"issues": [], "summary": {}}

    register_validator("empties", empties)
    report = ran(ScenarioSpec(key="a.yaml"), MOCK, validators=["empties", "structural_consistency"])
    assert report.scenario_reports[0].aggregates["validations"][1]["summary"]["details"]["runs"] == 1


# --- Several at once ---


def test_benchmarks_in_threads_do_not_meet() -> None:
    register_scenario("says", lambda runner, payload: {"said": runner.ask("x"), "n": payload["params"]["n"]})
    found: dict[int, list[Any]] = {}

    def go(n: int) -> None:
        mine = RunnerSpec(key="mock", config={"response": str(n)})
        found[n] = [run.output for run in runs_of(ScenarioSpec(key="says", params={"n": n}, repetitions=5), mine)]

    threads = [threading.Thread(target=go, args=(n,)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(ENDS_S)
    assert found == {n: [{"said": str(n), "n": n}] * 5 for n in range(6)}


def test_scenario_may_run_a_benchmark_itself() -> None:
    register_scenario("inner", lambda runner, payload: {"said": runner.ask("x")})

    async def outer_later(runner: Any, payload: Any) -> dict[str, Any]:
        return {"inner": [run.output for run in runs_of(ScenarioSpec(key="inner"), MOCK)]}

    def outer(runner: Any, payload: Any) -> dict[str, Any]:
        return {"inner": [run.output for run in runs_of(ScenarioSpec(key="inner"), MOCK)]}

    for function in (outer, outer_later):
        assert of_function(function).scenario_reports[0].runs[0].output == {"inner": [{"said": "yes"}]}


def test_errors_of_the_door_are_those_of_the_tool() -> None:
    for key, config in (
        ("mock", {"response": 3}),
        ("nobody", {}),
        ("cli", {}),
        ("cli", {"command_template": "{NOPE}"}),
    ):
        with pytest.raises(CannotGoOn):
            ran(ScenarioSpec(key="a.yaml"), RunnerSpec(key=key, config=config))
