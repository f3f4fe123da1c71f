"""Programs that bring their own scenarios and runners → the same stages → runs."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind, ProviderError, Response, World
from agentv_ci.errors import UsageError
from agentv_ci.load.discover import find_dotenv, find_root
from agentv_ci.load.environment import with_dotenv
from agentv_ci.pipeline.checking import Documents
from agentv_ci.pipeline.compiling import Compiled, Selection, compile_paths
from agentv_ci.pipeline.concluding import RunFiles
from agentv_ci.pipeline.running import Outside, Prior, Stored, carry_out
from agentv_ci.suggestions import did_you_mean, listed

if TYPE_CHECKING:
    from agentv_ci.contracts.documents import Surroundings
    from agentv_ci.contracts.plan import Plan, PlanMessage
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.contracts.targets import Target
    from agentv_ci.execute.rows import Trial

Message = JsonObject
"""`{"role": ..., "content": ...}`"""
Answer = str | JsonObject
AnswerFunction = Callable[[list[Message], JsonObject], Answer | Awaitable[Answer]]
"""Given a conversation and a configuration, returns what the runner says to it."""
Ask = Callable[[str | Sequence[Message], int | None], Awaitable[tuple[Answer, Response]]]
"""Asks a runner, with a text or a conversation and a seed; returns what it said, and what that took."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers: a function, or a target by its name or its kind."""

    key: str
    config: JsonObject
    function: AnswerFunction | None


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a benchmark."""

    world: World
    """Its environment is the program's own; `.env` files are read beside the documents."""
    cwd: Path
    warn: Callable[[str], None]

    def outside(self, dotenv_files: Sequence[Path]) -> Outside:
        """Return the world of a run."""
        world = replace(self.world, environ=with_dotenv(self.world.environ, dotenv_files))
        return Outside(world, None, self.warn, lambda _: None, lambda _: None)


async def run_eval_file(
    path: str, answering: Answering, seeds: Sequence[int | None] | None, around: Around
) -> list[tuple[ResultRow, str]]:
    """Run an eval file against a runner; returns its rows in the plan's order, each with the plan's digest.

    `seeds` has one for each trial; None: as the document says. Raises what compiling and running raise.
    """
    from agentv_ci.execute.run import RunSettings
    from agentv_ci.report.reporters import read

    compiled = _compiled(path, answering, around)
    plan = _with_seeds(compiled.plan, seeds) if seeds is not None else compiled.plan
    outside = around.outside(compiled.origin.dotenv_files)
    prior = Prior()
    if answering.function is not None:
        answers = [
            await _answered(plan, trial, answering.function, answering.config, compiled.origin.root, outside.world)
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
    places = {(case.suite, case.id): place for place, case in enumerate(plan.cases)}
    rows.sort(key=lambda row: (places[row.suite, row.eval_id], row.trial))
    return [(row, plan.digest) for row in rows]


@asynccontextmanager
async def open_runner(answering: Answering, around: Around) -> AsyncIterator[Ask]:
    """Open a runner that a program asks by itself; asking raises ProviderError.

    Raises UsageError for a runner that nobody knows, TargetUnavailable for one that cannot be asked.
    """
    if answering.function is not None:
        yield _asking_function(answering.function, answering.config)
        return
    from agentv_ci.execute.asking import Asking
    from agentv_ci.execute.context import Context
    from agentv_ci.execute.settings import resolve_targets
    from agentv_ci.redaction import Redactor, secrets_of

    beside = around.cwd / "scenario"
    surroundings = _valid_surroundings(beside, around.cwd)
    target = _target(answering, surroundings.target_list)
    root = find_root(beside, around.cwd)
    dotenv = find_dotenv(beside, root, around.cwd)
    world = around.outside([dotenv] if dotenv else []).world
    resolved = resolve_targets({answering.key: target}, world.environ, around.warn)
    redactor = Redactor(secrets_of({answering.key: target}, resolved, world.environ))
    context = Context(
        root=root,
        logs=Path(".agentv", "logs"),
        world=world,
        log=lambda _: None,
        warn=around.warn,
        redact=redactor.text,
        pause=lambda _, wait_s: world.sleep(wait_s),
    )
    asking = Asking(resolved[answering.key], context, redactor, surroundings.prices)
    try:
        await asking.open()

        async def ask(said: str | Sequence[Message], seed: int | None) -> tuple[Answer, Response]:
            response = await asking.ask(_messages(said), name="scenario", cwd=around.cwd, seed=seed)
            return response.answer, response

        yield ask
    finally:
        await asking.close()


def _compiled(path: str, answering: Answering, around: Around) -> Compiled:
    from agentv_ci.contracts.targets import CliTarget

    file = around.cwd / path
    surroundings = _valid_surroundings(file, around.cwd)
    names = [target.name for target in surroundings.target_list]
    if answering.function is not None:
        # A command does not judge its own answers; this one is never run.
        name = next(each for each in (answering.key, f"{answering.key} (function)") if each not in names)
        target: Target = CliTarget(name=name, provider="cli", command_template="false")
    else:
        target = _target(answering, surroundings.target_list)
    more = () if target in surroundings.target_list else (target,)
    if surroundings.targets is not None:
        return compile_paths(Selection([str(file)], target=target.name, more_targets=more), cwd=around.cwd)
    with TemporaryDirectory(prefix="agentv-benchmark-") as scratch:
        # An eval file without targets has the runner's alone.
        alone = Path(scratch, "targets.yaml")
        written = [target.model_dump(mode="json", exclude_none=True)]
        alone.write_text(json.dumps({"$schema": "agentv-targets-v2.2", "targets": written}), encoding="utf-8")
        return compile_paths(Selection([str(file)], targets=str(alone), target=target.name), cwd=around.cwd)


def _valid_surroundings(path: Path, cwd: Path) -> Surroundings:
    from agentv_ci.errors import InvalidInput

    surroundings = Documents(cwd, None).surroundings(path)
    if not all(each.valid for each in surroundings.others):
        raise InvalidInput([found for each in surroundings.others for found in each.diagnostics])
    return surroundings


def _target(answering: Answering, known: Sequence[Target]) -> Target:
    """Return the target that a runner names, with its configuration over it; else one of the kind that it names."""
    named = {target.name: target for target in known}
    if answering.key in named and not answering.config:
        return named[answering.key]
    if answering.key in named:
        authored = named[answering.key].model_dump(mode="json", exclude_none=True)
        return _made({**authored, **answering.config, "name": f"{answering.key} (configured)"}, answering.key)
    if answering.key not in (kinds := _kinds()):
        choices = [*named, *kinds]
        close = did_you_mean(answering.key, choices)
        raise UsageError(f"unknown runner '{answering.key}'{close}; there are targets and kinds {listed(choices)}")
    return _made({"name": answering.key, "provider": answering.key, **answering.config}, answering.key)


def _kinds() -> list[str]:
    from typing import get_args

    from agentv_ci.contracts.targets import Target

    members = get_args(get_args(Target.__value__)[0])
    return [str(name) for member in members for name in get_args(member.model_fields["provider"].annotation)]


def _made(data: JsonObject, key: str) -> Target:
    from pydantic import ValidationError

    from agentv_ci.contracts.targets import TargetsDocument

    try:
        (target,) = TargetsDocument.model_validate({"targets": [data]}).targets
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(each) for each in first["loc"][3:]) or "provider"
        raise UsageError(f"runner '{key}': {field}: {first['msg']}") from error
    return target


def _with_seeds(plan: Plan, seeds: Sequence[int | None]) -> Plan:
    from agentv_ci.compile.document import resealed

    given = tuple(seed for seed in seeds if seed is not None)
    update = {"trials": len(seeds), "seeds": given}
    return resealed(plan.model_copy(update={"cases": tuple(case.model_copy(update=update) for case in plan.cases)}))


def _trials(plan: Plan) -> list[Trial]:
    from agentv_ci.execute.rows import Trial

    suites = {suite.path: suite for suite in plan.suites}
    return [
        Trial(
            case,
            suites[case.suite],
            plan.targets[case.target],
            number,
            case.seeds[number - 1] if number <= len(case.seeds) else None,
            dry_run=False,
        )
        for case in plan.cases
        for number in range(1, case.trials + 1)
    ]


async def _answered(
    plan: Plan, trial: Trial, function: AnswerFunction, config: JsonObject, root: Path, world: World
) -> ResultRow:
    """Return what a function says to a case, not scored yet, or why it says nothing."""
    from agentv_ci.execute.prompt import build_request
    from agentv_ci.execute.rows import Effort, failed_row, unscored_row

    request = build_request(trial.case, plan.files, lambda reference: root / reference.path, cwd=root, seed=trial.seed)
    messages: list[Message] = [{"role": each.role, "content": each.content} for each in request.chat]
    begun = world.monotonic()
    try:
        answer = await _call(function, messages, config)
    except ProviderError as error:
        took_ms = round((world.monotonic() - begun) * 1000)
        return failed_row(trial, Effort(1, 0, took_ms), error, now=world.now())
    took_ms = round((world.monotonic() - begun) * 1000)
    return unscored_row(trial, _text(answer), duration_ms=took_ms, now=world.now())


def _asking_function(function: AnswerFunction, config: JsonObject) -> Ask:
    from agentv_ci.contracts.exchange import OutputMessage

    async def ask(said: str | Sequence[Message], _seed: int | None) -> tuple[Answer, Response]:
        messages: list[Message] = [{"role": "user", "content": said}] if isinstance(said, str) else [*said]
        answer = await _call(function, messages, config)
        text = _text(answer)
        return answer, Response(text, (OutputMessage("assistant", text),), has_trace=False)

    return ask


async def _call(function: AnswerFunction, messages: list[Message], config: JsonObject) -> Answer:
    """Return what a function says; raises ProviderError for what it raises, and for what is no answer."""
    try:
        # It may block; what it returns may be something to wait for.
        answer = await asyncio.to_thread(function, messages, dict(config))
        if inspect.isawaitable(answer):
            answer = await answer
    except ProviderError:
        raise
    except Exception as error:
        kind: ErrorKind = "timeout" if isinstance(error, TimeoutError) else "process"
        raise ProviderError(kind, f"the runner raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, (str, Mapping)):
        raise ProviderError("malformed", f"the runner returned {type(answer).__name__}, and not a text or a mapping")
    return answer


def _text(answer: Answer) -> str:
    if isinstance(answer, str):
        return answer
    try:
        return json.dumps(answer, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ProviderError("malformed", f"the runner returned what is no JSON: {error}") from error


def _messages(said: str | Sequence[Message]) -> list[PlanMessage]:
    from typing import get_args

    from agentv_ci.contracts.evals import Role
    from agentv_ci.contracts.plan import PlanMessage, TextPart

    def made(role: JsonValue, content: JsonValue) -> PlanMessage:
        if role not in get_args(Role) or not isinstance(content, str):
            raise ValueError("a message is {role: system|user|assistant|tool, content: text}")
        return PlanMessage.model_validate({"role": role, "content": (TextPart(text=content),)})

    if isinstance(said, str):
        return [made("user", said)]
    return [made(each.get("role"), each.get("content")) for each in said]
