"""Programs that bring their own scenarios and runners → the same stages → runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentv_ci.app.compile import Compiled, Selection, compile_paths
from agentv_ci.app.concluding import RunFiles
from agentv_ci.app.run import Outside, Prior, Stored, carry_out
from agentv_ci.app.runners import Answer, AnswerFunction, Answering, Ask, Message, call, messages_of, target_of, text_of
from agentv_ci.app.workspace import Documents
from agentv_ci.compile.cases import DEFAULT_TARGET
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment, ProviderError, Response
from agentv_ci.errors import UsageError
from agentv_ci.load.discover import find_dotenv, find_root
from agentv_ci.load.environment import with_dotenv

if TYPE_CHECKING:
    from agentv_ci.contracts.config import Price
    from agentv_ci.contracts.documents import DocumentContext
    from agentv_ci.contracts.plan import Plan
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.contracts.targets import Target
    from agentv_ci.redaction import Redactor
    from agentv_ci.results.rows import Trial


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a benchmark."""

    environment: Environment
    """Its environment is the program's own; `.env` files are read beside the documents."""
    cwd: Path
    warn: Callable[[str], None]

    def outside(self, dotenv_files: Sequence[Path]) -> Outside:
        """Return what a run is given from outside."""
        environment = replace(self.environment, variables=with_dotenv(self.environment.variables, dotenv_files))
        return Outside(environment, None, self.warn, lambda _: None, lambda _: None)


@dataclass(frozen=True, slots=True)
class CaseRun:
    """A trial of a case of an eval file."""

    run: JsonObject
    """As validators see it."""
    scores: Mapping[str, float]
    """What its evaluators found, by their names."""
    error: str | None


async def run_eval_file(
    path: str, answering: Answering, seeds: Sequence[int | None] | None, around: Around
) -> list[CaseRun]:
    """Run an eval file against a runner; returns its trials in the plan's order.

    `seeds` has one for each trial; None: as the document says. Raises what compiling and running raise.
    """
    from agentv_ci.analysis.scenarios import run_of
    from agentv_ci.contracts.plan import case_key
    from agentv_ci.execute.run import RunSettings
    from agentv_ci.results.forms import read

    compiled = _compiled(path, answering, around)
    for each in compiled.origin.warnings:
        around.warn(f"{each.path}:{each.line}:{each.column}: {each.message} [{each.rule}]")
    plan = _with_seeds(compiled.plan, seeds) if seeds is not None else _with(compiled.plan)
    outside = around.outside(compiled.origin.dotenv_files)
    prior = Prior()
    if answering.function is not None:
        answers = [
            await _answered(
                plan, trial, answering.function, answering.config, compiled.origin.root, outside.environment
            )
            for trial in _trials(plan)
        ]
        prior = Prior(stored=Stored(lambda: iter(answers), len(answers)))
    with TemporaryDirectory(prefix="agentv-benchmark-") as scratch:
        files = RunFiles(Path(scratch, "results.jsonl"), "jsonl")
        settings = RunSettings(root=compiled.origin.root, logs=Path(scratch, "logs"))
        ending = await carry_out(plan, settings, files, outside, prior)
        if ending.write_error is not None:
            raise UsageError(f"the runs could not be kept: {ending.write_error}")
        rows = list(read(files.results, files.form))
    places = {case_key(case): place for place, case in enumerate(plan.cases)}
    rows.sort(key=lambda row: (places[row.suite, row.eval_id], row.trial))
    return [CaseRun(run_of(row, plan.digest), _scores(row), row.error) for row in rows]


def _scores(row: ResultRow) -> dict[str, float]:
    return {each.name: each.score for each in row.evaluator_results if each.status == "ok"}


def require_runner(path: str | None, answering: Answering, around: Around) -> None:
    """Raise what is wrong with a runner before anything runs: for an eval file, or for a function (None)."""
    if path is not None:
        _compiled(path, answering, around)
    elif answering.function is None:
        _resolved_target(answering, around)


@asynccontextmanager
async def open_runner(answering: Answering, around: Around) -> AsyncIterator[Ask]:
    """Open a runner that a program asks by itself; asking raises ProviderError.

    Raises UsageError for a runner that nobody knows, TargetUnavailable for one that cannot be asked.
    """
    if answering.function is not None:
        yield _asking_function(answering.function, answering.config, _redactor_of(around))
        return
    from agentv_ci.execute.asking import Asking
    from agentv_ci.execute.services import ProviderServices
    from agentv_ci.redaction import Redactor, secrets_of

    found = _resolved_target(answering, around)
    environment = found.environment
    redactor = Redactor(secrets_of({"": found.authored}, {"": found.resolved}, environment.variables))
    services = ProviderServices(
        root=found.root,
        logs=Path(".agentv", "logs"),
        environment=environment,
        log=lambda _: None,
        warn=around.warn,
        redact=redactor.text,
        pause=lambda _, wait_s: environment.sleep(wait_s),
    )
    asking = Asking(found.resolved, services, redactor, found.prices)
    try:
        await asking.open()

        async def ask(said: str | Sequence[Message], seed: int | None) -> tuple[Answer, Response]:
            response = await asking.ask(messages_of(said), name="scenario", cwd=around.cwd, seed=seed)
            return response.answer, response

        yield ask
    finally:
        await asking.close()


@dataclass(frozen=True, slots=True)
class _Found:
    """A target that a function asks."""

    authored: Target
    resolved: Target
    root: Path
    environment: Environment
    prices: Mapping[str, Price]


def _resolved_target(answering: Answering, around: Around) -> _Found:
    from agentv_ci.compile.targets import compiled_target
    from agentv_ci.execute.settings import resolve_targets

    beside = around.cwd / "scenario"
    context = _valid_context(beside, around.cwd)
    target = target_of(answering, context.target_list)
    if context.targets is not None:
        target = compiled_target(target, context.targets.source)
    root = find_root(beside, around.cwd)
    dotenv = find_dotenv(beside, root, around.cwd)
    environment = around.outside([dotenv] if dotenv else []).environment
    resolved = resolve_targets({"": target}, environment.variables, around.warn)[""]
    return _Found(target, resolved, root, environment, context.prices)


def _compiled(path: str, answering: Answering, around: Around) -> Compiled:
    from agentv_ci.contracts.targets import CliTarget

    file = around.cwd / path
    context = _valid_context(file, around.cwd)
    names = [target.name for target in context.target_list]
    if answering.function is not None:
        # A command does not judge its own answers; this one is never run.
        target: Target = CliTarget(name=_free(answering.key, names), provider="cli", command_template="false")
    else:
        target = target_of(answering, context.target_list)
        if target.name == DEFAULT_TARGET:
            # To `--target` that name means no target of its own.
            target = target.model_copy(update={"name": _free(target.name, names)})
    more = () if target in context.target_list else (target,)
    return compile_paths(Selection([str(file)], target=target.name, more_targets=more), cwd=around.cwd)


def _free(name: str, taken: Collection[str]) -> str:
    candidates = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(each for each in candidates if each not in taken and each != DEFAULT_TARGET)


def _valid_context(path: Path, cwd: Path) -> DocumentContext:
    from agentv_ci.errors import InvalidInput

    context = Documents(cwd, None).context(path)
    if not all(each.valid for each in context.others):
        raise InvalidInput([found for each in context.others for found in each.diagnostics])
    return context


def _with_seeds(plan: Plan, seeds: Sequence[int | None]) -> Plan:
    given = tuple(seed for seed in seeds if seed is not None)
    return _with(plan, trials=len(seeds), seeds=given)


def _with(plan: Plan, **update: object) -> Plan:
    """Return a plan whose cases are as said; a benchmark runs all their trials."""
    from agentv_ci.compile.document import resealed

    cases = tuple(case.model_copy(update={**update, "stop_when": None}) for case in plan.cases)
    return resealed(plan.model_copy(update={"cases": cases}))


def _trials(plan: Plan) -> list[Trial]:
    from agentv_ci.contracts.plan import seed_of
    from agentv_ci.results.rows import Trial

    suites = {suite.path: suite for suite in plan.suites}
    return [
        Trial(
            case,
            suites[case.suite],
            plan.targets[case.target],
            number,
            seed_of(case, number),
            dry_run=False,
        )
        for case in plan.cases
        for number in range(1, case.trials + 1)
    ]


async def _answered(
    plan: Plan, trial: Trial, function: AnswerFunction, config: JsonObject, root: Path, environment: Environment
) -> ResultRow:
    """Return what a function says to a case, not scored yet, or why it says nothing."""
    from agentv_ci.execute.prompt import build_request
    from agentv_ci.results.rows import Effort, failed_row, unscored_row

    request = build_request(trial.case, plan.files, lambda reference: root / reference.path, cwd=root, seed=trial.seed)
    messages: list[Message] = [{"role": each.role, "content": each.content} for each in request.chat]
    begun = environment.monotonic()
    try:
        answer = text_of(await call(function, messages, config))
    except ProviderError as error:
        took_ms = round((environment.monotonic() - begun) * 1000)
        return failed_row(trial, Effort(1, 0, took_ms), error, now=environment.now())
    took_ms = round((environment.monotonic() - begun) * 1000)
    return unscored_row(trial, answer, duration_ms=took_ms, now=environment.now())


def _redactor_of(around: Around) -> Redactor:
    """Return what takes the secrets of the environment out of what a function says."""
    from agentv_ci.redaction import Redactor, secrets_of

    return Redactor(secrets_of({}, {}, around.environment.variables))


def _asking_function(function: AnswerFunction, config: JsonObject, redactor: Redactor) -> Ask:
    from agentv_ci.contracts.results import OutputMessage

    async def ask(said: str | Sequence[Message], _seed: int | None) -> tuple[Answer, Response]:
        messages: list[Message] = [{"role": "user", "content": said}] if isinstance(said, str) else [*said]
        try:
            answer = await call(function, messages, config)
        except ProviderError as error:
            redactor.clean(error)
            raise
        clean = redactor.value(answer)
        answer = clean if isinstance(clean, (str, dict)) else answer
        text = text_of(answer)
        return answer, Response(text, (OutputMessage(role="assistant", content=text),), has_trace=False)

    return ask
