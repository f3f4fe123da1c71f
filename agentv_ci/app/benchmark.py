"""Scenarios and runners of a program → the same stages → runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.scenarios import run_of
from agentv_ci.analysis.gate import gate_settings
from agentv_ci.analysis.run_report import report
from agentv_ci.app.documents.compile import CompiledPlan, Selection, compile_paths
from agentv_ci.app.documents.documents import Documents
from agentv_ci.app.run.files import RunFiles
from agentv_ci.app.run.runners import (
    Answer,
    AnswerFunction,
    AskRunner,
    Message,
    call,
    messages_of,
    target_of,
    text_of,
)
from agentv_ci.app.run.trials import run_trials
from agentv_ci.app.run.validations import validate_runs
from agentv_ci.base.mappings import present
from agentv_ci.base.redaction import Redactor, secrets_of
from agentv_ci.compile.cases import DEFAULT_TARGET
from agentv_ci.compile.document import resealed
from agentv_ci.compile.references import compiled_target
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.benchmark import RunnerSpec
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.exchange import Environment, ProviderError, Request, Response, Warn
from agentv_ci.contracts.plan import Plan, seed_of, suites_by_path
from agentv_ci.contracts.report import GateResult
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target, workspace_settings
from agentv_ci.errors import UsageError
from agentv_ci.execute.prompt import build_request, plain_request
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.resolution import resolve_targets
from agentv_ci.execute.run_services import RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.targets import open_target
from agentv_ci.load.discover import find_dotenv
from agentv_ci.load.files import with_dotenv
from agentv_ci.results.rows import Effort, Trial, failed_row, unscored_row


class BoundRunner(Struct, frozen=True):
    """A runner: a function of a program or, without one, a target by its name or provider."""

    spec: RunnerSpec
    function: AnswerFunction | None


class BenchmarkEngine(Struct, frozen=True):
    """Runs scenarios through the stages."""

    environment: Environment
    """With the program's own variables; `.env` files beside the documents add to them."""
    cwd: Path
    warn: Warn

    def require_runner(self, runner: BoundRunner, eval_file: str | None) -> None:
        """Check a runner before anything runs, for an eval file or for a function (None).

        Raises its errors.
        """
        if eval_file is not None:
            self._compiled(eval_file, runner)
        elif runner.function is None:
            self._opened(runner)

    async def run_eval_file(
        self, path: str, runner: BoundRunner, seeds: Sequence[int | None] | None
    ) -> tuple[list[tuple[ResultRow, JsonObject]], GateResult]:
        """Run an eval file against a runner.

        Returns its trials in plan order, with the form that validators see, and the decision of its
        gate.

        `seeds` has one seed per trial; None keeps the document's. Raises what compiling and running
        raise.
        """
        compiled = self._compiled(path, runner)
        for found in compiled.origin.warnings:
            place = f"{found.path}:{found.line}:{found.column}"
            self.warn(f"{place}: {found.message} [{found.rule}]")
        root = compiled.origin.root
        plan = _for_benchmark(compiled.plan, seeds)
        environment = self._with_dotenv(compiled.origin.dotenv_files)
        stored = None
        if runner.function is not None:
            trials = _trials(plan)
            answers = [await _answered(plan, trial, runner, root, environment) for trial in trials]
            stored = StoredAnswers(lambda: iter(answers), len(answers))
        services = RunServices(environment, warn=self.warn)
        with TemporaryDirectory(prefix="agentv-benchmark-") as scratch:
            files = RunFiles(Path(scratch, "results.jsonl"), "jsonl")
            options = RunOptions(root=root, logs=Path(scratch, "logs"))
            ending = await run_trials(plan, options, files, services, stored=stored)
            if ending.write_error is not None:
                raise UsageError(f"cannot write the runs: {ending.write_error}")
            rows = list(files.rows())
        places = {plan.key_of(case): place for place, case in enumerate(plan.cases)}
        rows.sort(key=lambda row: (places[row.case_key], row.trial))
        scenarios = validate_runs(gate_settings(plan), ((row, plan.digest) for row in rows))
        run_report, _ = report(plan, rows, ending, scenarios=scenarios)
        return [(row, run_of(row, plan.digest)) for row in rows], run_report.gate

    @asynccontextmanager
    async def open_runner(self, runner: BoundRunner) -> AsyncIterator[AskRunner]:
        """Open a runner for a scenario function; asking raises ProviderError.

        Raises UsageError for an unknown runner, TargetUnavailable for one that cannot be asked.
        """
        if runner.function is not None:
            redactor = Redactor(secrets_of({}, {}, self.environment.variables))
            yield partial(_ask_function, runner.function, runner.spec.config, redactor)
            return
        async with self._opened(runner) as ask_target:

            async def ask(
                question: str | Sequence[Message], seed: int | None
            ) -> tuple[Answer, Response]:
                response = await ask_target(
                    plain_request(messages_of(question), cwd=self.cwd, seed=seed)
                )
                return response.answer, response

            yield ask

    def _opened(
        self, runner: BoundRunner
    ) -> AbstractAsyncContextManager[Callable[[Request], Awaitable[Response]]]:
        """Resolve the target of a scenario function; returns what opens the connection to it."""
        beside = self.cwd / "scenario"
        documents = Documents(self.cwd, None)
        context, root = documents.valid_context(beside), documents.root(beside)
        target = target_of(runner.spec, context.target_list)
        if workspace_settings(target) is not None:
            message = f"target '{target.name}' works in a workspace, and functions have none"
            raise UsageError(message, hint="write the scenario as an eval file")
        if context.targets is not None:
            target = compiled_target(target, context.targets.source)
        dotenv = find_dotenv(beside, root, self.cwd)
        environment = self._with_dotenv([dotenv] if dotenv else [])
        resolved = resolve_targets({"": target}, environment.variables, self.warn)[""]
        redactor = Redactor(secrets_of({"": target}, {"": resolved}, environment.variables))
        services = ProviderServices(
            root=root,
            logs=Path(".agentv", "logs"),
            environment=environment,
            log=lambda _: None,
            warn=self.warn,
            redact=redactor.text,
            pause=lambda _, wait_s: environment.sleep(wait_s),
        )
        return open_target(resolved, services, redactor, context.config.prices or {})

    def _compiled(self, path: str, runner: BoundRunner) -> CompiledPlan:
        file = self.cwd / path
        known = Documents(self.cwd, None).valid_context(file).target_list
        target = _target(runner, known)
        more = () if target in known else (target,)
        return compile_paths(
            Selection([str(file)], target_names=(target.name,), more_targets=more), cwd=self.cwd
        )

    def _with_dotenv(self, files: Sequence[Path]) -> Environment:
        return replace(self.environment, variables=with_dotenv(self.environment.variables, files))


def _target(runner: BoundRunner, known: Sequence[Target]) -> Target:
    """Return the target that represents a runner in the plan."""
    names = [target.name for target in known]
    if runner.function is not None:
        # It never runs. It is a command because, like a function, a command cannot judge answers.
        return CliTarget(
            name=_free(runner.spec.key, names),
            provider="cli",
            command_template="false",
            prompt="none",
        )
    target = target_of(runner.spec, known)
    if target.name == DEFAULT_TARGET:
        # As an override, that name means that each case keeps its own target.
        return target.model_copy(update={"name": _free(target.name, names)})
    return target


def _free(name: str, taken: Collection[str]) -> str:
    free, numbers = name, count(2)
    while free in taken or free == DEFAULT_TARGET:
        free = f"{name} ({next(numbers)})"
    return free


def _for_benchmark(plan: Plan, seeds: Sequence[int | None] | None) -> Plan:
    """Return a plan whose trials all run: one per seed, else as many as the document sets."""
    update: dict[str, object] = {"stop_when": None}
    if seeds is not None:
        update |= {"trials": len(seeds), "seeds": tuple(present(seeds))}
    return resealed((case.model_copy(update=update) for case in plan.cases), plan)


def _trials(plan: Plan) -> list[Trial]:
    suites = suites_by_path(plan)
    trials: list[Trial] = []
    for case in plan.cases:
        suite, target = suites[case.suite], plan.targets[case.target]
        for number in range(1, case.trials + 1):
            seed = seed_of(case, number)
            trials.append(Trial(case, suite, target, number, seed, dry_run=False))
    return trials


async def _answered(
    plan: Plan, trial: Trial, runner: BoundRunner, root: Path, environment: Environment
) -> ResultRow:
    """Return the unscored row of a function's answer to a case, or the row of its error."""
    assert runner.function is not None, "targets are asked by the run itself"
    request = build_request(
        trial.case, plan.files, lambda reference: root / reference.path, cwd=root, seed=trial.seed
    )
    messages: list[Message] = [
        {"role": message.role, "content": message.content} for message in request.chat
    ]
    begun = environment.monotonic()
    try:
        answer = text_of(await call(runner.function, messages, runner.spec.config))
    except ProviderError as error:
        took_ms = round((environment.monotonic() - begun) * 1000)
        return failed_row(
            trial, Effort(1, 0, took_ms, error.expenses), error, now=environment.now()
        )
    took_ms = round((environment.monotonic() - begun) * 1000)
    return unscored_row(trial, answer, duration_ms=took_ms, now=environment.now())


async def _ask_function(
    function: AnswerFunction,
    config: JsonObject,
    redactor: Redactor,
    question: str | Sequence[Message],
    _: int | None,
) -> tuple[Answer, None]:
    if isinstance(question, str):
        question = [{"role": "user", "content": question}]
    messages = [*question]
    try:
        answer = await call(function, messages, config)
    except ProviderError as error:
        redactor.clean(error)
        raise
    clean = redactor.value(answer)
    answer = clean if isinstance(clean, (str, dict)) else answer
    return answer, None
