"""The Python API: run scenarios against runners. See docs/verdicts.md for an example."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agentv_ci.analysis.gate import validator_errors, worst_verdict
from agentv_ci.app import benchmark as engine
from agentv_ci.app.run.environment import system_environment
from agentv_ci.app.run.runners import (
    Answer,
    AnswerFunction,
    AskRunner,
    Message,
    error_text,
    in_a_thread,
    json_copy,
    private_copy,
)
from agentv_ci.app.run.validations import apply_validators, context_of
from agentv_ci.base.canonical import digest_of_value
from agentv_ci.base.mappings import present
from agentv_ci.base.text import counted, did_you_mean, listed, well_formed_text
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.benchmark import (
    EngineConfig,
    EngineReport,
    RunnerSpec,
    RunResult,
    ScenarioReport,
    ScenarioSpec,
)
from agentv_ci.contracts.exchange import Environment, ProviderError, Response
from agentv_ci.contracts.report import FailedValidation, GateVerdict
from agentv_ci.contracts.report import ScenarioReport as ValidatedScenario
from agentv_ci.contracts.results import Expense, ResultRow
from agentv_ci.errors import UsageError

__all__ = [
    "AsyncRunner",
    "EngineConfig",
    "EngineReport",
    "RunResult",
    "Runner",
    "RunnerSpec",
    "ScenarioReport",
    "ScenarioSpec",
    "register_runner",
    "register_scenario",
    "run_benchmark",
]

ScenarioFunction = Callable[[Any, dict[str, Any]], Any]
"""`fn(runner, payload)`, plain or async; `payload` is `{"params", "seed"}`. Returns the output of
the run, a dict.
"""

MEASURES = frozenset({"score", "input_tokens", "output_tokens", "total_tokens", "cost_usd"})
"""Measured metrics, which take precedence over evaluators of the same name."""

_scenarios: dict[str, ScenarioFunction] = {}
_runners: dict[str, AnswerFunction] = {}


class Runner:
    """The runner of a plain scenario function; waits for each answer."""

    def __init__(self, asking: AsyncRunner, loop: asyncio.AbstractEventLoop) -> None:
        self.key = asking.key
        self.config = asking.config
        self._asking = asking
        self._loop = loop

    def ask(self, question: str | Sequence[Message]) -> Answer:
        """Return the answer to a text or a conversation; see `AsyncRunner.ask`."""
        return asyncio.run_coroutine_threadsafe(self._asking.ask(question), self._loop).result()


class AsyncRunner:
    """The runner of an async scenario function."""

    def __init__(self, spec: RunnerSpec, ask: AskRunner, seed: int | None) -> None:
        self.key = spec.key
        self.config = private_copy(spec.config)
        self.responses: list[Response] = []
        """The responses of its target so far; none of a function."""
        self.failed: list[Expense] = []
        """What requests have used that failed."""
        self._ask = ask
        self._seed = seed

    async def ask(self, question: str | Sequence[Message]) -> Answer:
        """Return the answer to a text or a conversation.

        It is a text, or the dict returned by a runner function. Raises ProviderError.
        """
        try:
            answer, response = await self._ask(question, self._seed)
        except ProviderError as error:
            self.failed += error.expenses
            raise
        if response is not None:
            self.responses.append(response)
            self.failed += response.expenses
        return answer


def register_scenario(key: str, fn: ScenarioFunction) -> None:
    """Register a scenario function, replacing one with the same key."""
    _scenarios[_checked_key(key, fn)] = fn


def register_runner(
    key: str, fn: Callable[[list[Message], JsonObject], Answer | Awaitable[Answer]]
) -> None:
    """Register a runner function: `fn(messages, config)`.

    It returns a text or a dict, or an awaitable of one.
    """
    _runners[_checked_key(key, fn)] = fn


def run_benchmark(config: EngineConfig, environ: Mapping[str, str] | None = None) -> EngineReport:
    """Run every scenario with every runner, and apply the validators to the runs of each scenario.

    `environ` provides the values of `${{ NAME }}` in targets (default: the environment of the
    process). Raises UsageError for an unknown scenario or runner, InvalidInput for documents with
    errors, and TargetUnavailable.
    """
    environment = system_environment(dict(os.environ if environ is None else environ))
    benchmark = _Benchmark(config, environment, Path.cwd())
    if not _is_in_a_loop():
        return asyncio.run(benchmark.run())
    # A notebook or another program already runs an event loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, benchmark.run()).result()


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Ran(NamedTuple):
    """The runs of a scenario with one runner."""

    runs: list[RunResult]
    verdict: GateVerdict
    reasons: Sequence[str]


class _Benchmark:
    def __init__(self, config: EngineConfig, environment: Environment, cwd: Path) -> None:
        self._config = config
        self._environment = environment
        self._warnings: dict[str, None] = {}
        self._engine = engine.BenchmarkEngine(
            environment, cwd, lambda sentence: self._warnings.update({sentence: None})
        )
        self._digest = digest_of_value(config.model_dump())

    async def run(self) -> EngineReport:
        for spec in self._config.scenarios:
            self._require(spec)
            eval_file = None if spec.key in _scenarios else spec.key
            for runner in self._config.runners:
                self._engine.require_runner(_runner(runner), eval_file)
        reports = [await self._scenario(spec) for spec in self._config.scenarios]
        return EngineReport(
            scenario_reports=reports,
            verdict=worst_verdict([report.verdict for report in reports]),
            reasons=_with_owners([(report.scenario_key, report.reasons) for report in reports]),
            config_digest=self._digest,
            warnings=list(self._warnings),
        )

    def _require(self, spec: ScenarioSpec) -> None:
        """Raise UsageError for an unknown scenario, before anything runs."""
        # Unlike Path.is_file, returns False for names that the system does not allow.
        is_file = os.path.isfile(self._engine.cwd / spec.key)  # noqa: PTH113
        if spec.key not in _scenarios and not is_file:
            unknown = f"unknown scenario '{spec.key}'{did_you_mean(spec.key, _scenarios)}"
            known = f"; registered: {listed(sorted(_scenarios))}" if _scenarios else ""
            raise UsageError(f"{unknown}: not a registered function or an eval file{known}")

    async def _scenario(self, spec: ScenarioSpec) -> ScenarioReport:
        ran = [await self._runs(spec, runner) for runner in self._config.runners]
        runs: list[RunResult] = []
        reasons: list[tuple[str, Sequence[str]]] = []
        for name, own in zip(_names(self._config.runners), ran, strict=True):
            runs += (run.model_copy(update={"runner_key": name}) for run in own.runs)
            reasons.append((name, own.reasons))
        validated = self._validated(spec, runs)
        errors = [*validator_errors(validated)]
        verdicts = [own.verdict for own in ran]
        if errors:
            verdicts.append("fail")
        return ScenarioReport(
            scenario_key=spec.key,
            runs=runs,
            verdict=worst_verdict(verdicts),
            reasons=[*_with_owners(reasons), *errors],
            aggregates=validated.aggregates.model_dump(mode="json"),
        )

    async def _runs(self, spec: ScenarioSpec, runner: RunnerSpec) -> _Ran:
        if spec.key not in _scenarios:
            return await self._cases(spec, runner)
        async with self._engine.open_runner(_runner(runner)) as ask:
            runs = [await self._trial(spec, runner, ask, seed) for seed in spec.trial_seeds]
        failed = [run for run in runs if run.status != "success"]
        if not failed:
            return _Ran(runs, "pass", [])
        reason = f"{len(failed)} of {counted(len(runs), 'run')} failed: {failed[0].error}"
        return _Ran(runs, "error", [reason])

    async def _cases(self, spec: ScenarioSpec, runner: RunnerSpec) -> _Ran:
        says_trials = bool(spec.model_fields_set & {"repetitions", "seeds"})
        seeds = spec.trial_seeds if says_trials else None
        case_runs, gate = await self._engine.run_eval_file(spec.key, _runner(runner), seeds)
        names = set(chain.from_iterable(_scores(row) for row, _ in case_runs))
        for name in self._config.metrics:
            if case_runs and name not in names:
                close = did_you_mean(name, names)
                self._engine.warn(f"{spec.key}: no scores of an evaluator '{name}'{close}")
        runs = [self._case_result(spec, runner, row, run) for row, run in case_runs]
        return _Ran(runs, gate.verdict, gate.reasons)

    def _case_result(
        self, spec: ScenarioSpec, runner: RunnerSpec, row: ResultRow, run: JsonObject
    ) -> RunResult:
        scores = {
            name: score
            for name, score in _scores(row).items()
            if name not in MEASURES and (not self._config.metrics or name in self._config.metrics)
        }
        measured = run["metrics"]
        metrics = {**scores, **measured} if isinstance(measured, dict) else scores
        own = {
            "scenario_key": spec.key,
            "runner_key": runner.key,
            "metrics": metrics,
            "error": row.error,
        }
        return RunResult.model_validate({**run, **own})

    async def _trial(
        self, spec: ScenarioSpec, runner: RunnerSpec, ask: AskRunner, seed: int | None
    ) -> RunResult:
        asking = AsyncRunner(runner, ask, seed)
        begun = self._environment.monotonic()
        payload = {"params": private_copy(spec.params), "seed": seed}
        output, error, status = await _outcome(_scenarios[spec.key], asking, payload)
        return RunResult(
            scenario_key=spec.key,
            runner_key=runner.key,
            status=status,
            seed=seed,
            duration_ms=round((self._environment.monotonic() - begun) * 1000),
            metrics=_metrics([*asking.responses, *asking.failed]),
            output=output,
            config_digest=self._digest,
            error=error,
        )

    def _validated(self, spec: ScenarioSpec, runs: Sequence[RunResult]) -> ValidatedScenario:
        scenario: JsonObject = {
            "scenario_key": spec.key,
            "runs": [run.as_run() for run in runs],
            "aggregates": {},
        }
        context = {
            **context_of(scenario, spec.seeds, spec.params),
            **self._config.validator_context,
        }
        uses = [
            (key, _own_context(key, self._config.validator_context))
            for key in self._config.validators
        ]
        validated = apply_validators(uses, scenario, context)
        for validation in validated.aggregates.validations:
            if isinstance(validation, FailedValidation):
                problem = f"validator {validation.validator}: {validation.error}"
                self._engine.warn(f"{spec.key}: {problem}")
        return validated


Status = Literal["success", "error", "timeout"]


async def _outcome(
    function: ScenarioFunction, asking: AsyncRunner, payload: dict[str, Any]
) -> tuple[dict[str, Any] | None, str | None, Status]:
    """Return output, error and status of one run.

    An exception of the scenario is an error of that run alone.
    """
    try:
        if _is_async(function):
            output = await function(asking, payload)
        else:
            output = await in_a_thread(
                function, Runner(asking, asyncio.get_running_loop()), payload
            )
    except (Exception, SystemExit) as error:  # noqa: BLE001  # scenarios may raise anything
        return None, error_text(error), "timeout" if _is_timeout(error) else "error"
    if inspect.iscoroutine(output):
        output.close()
        return None, "the scenario returned a coroutine; declare it with async def", "error"
    if not isinstance(output, dict):
        return None, f"the scenario must return a dict, not {type(output).__name__}", "error"
    try:
        return json_copy(output), None, "success"
    except ValueError as error:
        problem = f"the scenario returned a value that is not JSON: {error}"
        return None, well_formed_text(problem), "error"


def _is_timeout(error: BaseException) -> bool:
    if isinstance(error, TimeoutError):
        return True
    return isinstance(error, ProviderError) and error.kind == "timeout"


def _is_async(function: ScenarioFunction) -> bool:
    """Whether a function, or the `__call__` of an object, is async."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def _metrics(used: Sequence[Response | Expense]) -> dict[str, Any]:
    """Return the sums of measured metrics over answers and failed requests.

    Those that are unknown are left out.
    """
    usages = [expense.usage for expense in used if expense.usage is not None]
    sums: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens", "total_tokens"):
        numbers = [getattr(usage, name) for usage in usages]
        known = list(present(numbers))
        if known:
            sums[name] = sum(known)
    costs = [expense.cost_usd for expense in used if expense.cost_usd is not None]
    if costs:
        sums["cost_usd"] = sum(costs)
    return sums


def _scores(row: ResultRow) -> dict[str, float]:
    return {result.name: result.score for result in row.evaluator_results if result.status == "ok"}


def _with_owners(owners: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the reasons of scenarios or runners, each with its owner if there are several."""
    if len(owners) == 1:
        return [*owners[0][1]]
    reasons: list[str] = []
    for name, own in owners:
        reasons += (f"{name}: {reason}" for reason in own)
    return reasons


def _names(runners: Sequence[RunnerSpec]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for runner in runners:
        name = runner.name or runner.key
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def _runner(spec: RunnerSpec) -> engine.BoundRunner:
    return engine.BoundRunner(spec, _runners.get(spec.key))


def _own_context(key: str, context: Mapping[str, Any]) -> JsonObject:
    own = context.get(key)
    return dict(own) if isinstance(own, dict) else {}


def _checked_key(key: str, fn: object) -> str:
    if not key:
        raise ValueError("the key must not be empty")
    if not callable(fn):
        raise TypeError(f"'{key}' must be a function, not {type(fn).__name__}")
    return key
