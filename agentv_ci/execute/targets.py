"""The targets of a run, opened: asked within limits, through the cache; what they say is cleaned and priced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.targets import HttpTarget, MockTarget, Target, model_name
from agentv_ci.costs import cost_of_response
from agentv_ci.errors import TargetUnavailable
from agentv_ci.execute.batches import Batch
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.cache import Store, key_of, settings_of
from agentv_ci.execute.dumps import Dumps
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.providers import BatchProvider, Provider, open_provider
from agentv_ci.execute.services import Pause, ProviderServices
from agentv_ci.redaction import Redactor
from agentv_ci.results.rows import Trial, TrialKey


@dataclass(frozen=True, slots=True)
class Stores:
    """Where answers are kept and found."""

    cache: Store | None = None
    """Looked into first, and filled."""
    record: Store | None = None
    """Filled, never looked into."""
    replay: Store | None = None
    """Looked into instead of asking anybody."""

    def __bool__(self) -> bool:
        return self.cache is not None or self.keeps_recordings

    @property
    def keeps_recordings(self) -> bool:
        """Whether recordings are made or used."""
        return self.record is not None or self.replay is not None


@dataclass(frozen=True, slots=True)
class Desk:
    """What every question passes."""

    limits: Limits
    budget: Budget
    stores: Stores
    dumps: Dumps
    redactor: Redactor
    on_retry: Callable[[], None]
    """Told of every repeated request."""
    on_unrecorded: Callable[[], None]
    """Told of every question of a replay that has no recording."""
    on_lost: Callable[[str], None]
    """Told why a recording is not there."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What a target is asked, and where answers to it are kept."""

    key: str
    """Of the target."""
    target: Target
    request: Request
    trial: Trial
    cached: str | None = None
    """Its key in the cache; None: it has none."""
    recorded: str | None = None
    """Its key among recordings; None: it has none."""
    identity: str | None = None
    """What questions of a trial have in common that are alike."""


class OpenTargets:
    """The targets of a run; answers and judgements all come from here."""

    def __init__(
        self,
        authored: Mapping[str, Target],
        resolved: Mapping[str, Target],
        services: ProviderServices,
        desk: Desk,
        *,
        dry_run: bool,
    ) -> None:
        self._resolved = resolved
        self._services = services
        self._desk = desk
        self._dry_run = dry_run
        self._providers: dict[str, Provider] = {}
        self._batches: dict[str, Batch] = {}
        self._settings = {key: settings_of(authored[key], resolved[key]) for key in resolved}
        self._written = {key: settings_of(authored[key], None) for key in resolved}
        self._alike: dict[TrialKey, dict[str | None, set[int]]] = {}
        """Which places are taken among the questions of a trial that are alike."""
        self._under_way: dict[str, asyncio.Event] = {}
        """By key in the cache, questions that are being asked; set when that has ended, with or without an answer."""

    async def open(self, key: str, workers: int | None, stack: AsyncExitStack) -> None:
        """Make a target ready; raises TargetUnavailable when it cannot be asked at all."""
        target = self._resolved[key]
        if self._dry_run:
            target = MockTarget(name=target.name, provider="mock")
        if self._is_replayed(target):
            return
        provider = open_provider(target, replace(self._services, pause=self._pause(key)))
        self._providers[key] = provider
        stack.push_async_callback(provider.close)
        self._tell_limits(target, workers)
        try:
            await provider.check()
        except ProviderError as error:
            self._desk.redactor.clean(error)
            raise TargetUnavailable(f"target '{target.name}' is not available: {error.detail}") from error

    def _pause(self, key: str) -> Pause:
        limit = self._desk.limits.of(key)

        async def pause(error: ProviderError, wait_s: float) -> None:
            self._desk.on_retry()
            await limit.pause(error, wait_s)

        return pause

    def _is_replayed(self, target: Target) -> bool:
        """A mock needs no recording: it says what the targets document says."""
        return self._desk.stores.replay is not None and not isinstance(target, MockTarget)

    def _tell_limits(self, target: Target, workers: int | None) -> None:
        wanted = workers or target.workers
        if target.most_workers is not None and isinstance(wanted, int) and wanted > target.most_workers:
            self._services.warn(
                f"{target.name}: '{target.provider}' takes {target.most_workers} question at once, not {wanted}"
            )

    def open_batch(self, key: str, questions: Iterable[tuple[Trial, Request]], stack: AsyncExitStack) -> None:
        """Have all questions to a target asked in one session, if it wants that and can."""
        target = self._resolved[key]
        if self._dry_run or target.provider_batching is not True or key not in self._providers:
            return
        provider = self._providers[key]
        if not isinstance(provider, BatchProvider):
            self._services.log(
                f"{target.name}: provider_batching was requested but not applied: '{target.provider}' cannot"
            )
            return
        requests = {
            trial.key: request
            for trial, request in questions
            if self._stored(self._question(key, request, trial)) is None
        }
        if requests:
            slot = self._desk.limits.of(key).slot()
            batch = Batch(
                target.name,
                provider,
                requests,
                slot=slot,
                environment=self._services.environment,
                log=self._services.log,
            )
            self._batches[key] = batch
            stack.push_async_callback(batch.close)

    async def answer(self, trial: Trial, request: Request) -> Response:
        """Return a trial's answer out of its target's batch, else the answer to its own question."""
        batch = self._batches.get(trial.case.target)
        if batch is None or request.attempt or trial.key not in batch:
            return await self.ask(trial.case.target, request, trial)
        question = self._question(trial.case.target, request, trial)
        answered = await batch.answer(trial.key)
        if answered is None:
            return await self._asked(question)
        self._desk.dumps.prompt(trial, question.target, request)
        return self._taken(question, self._desk.redactor.response(answered))

    async def ask(self, key: str, request: Request, trial: Trial) -> Response:
        """Return the answer to a question; raises ProviderError, cleaned."""
        return await self._asked(self._question(key, request, trial))

    async def _asked(self, question: _Question) -> Response:
        """Take a place among the questions that are alike; one that gets no answer leaves it to the next attempt."""
        taken = self._alike.setdefault(question.trial.key, {}).setdefault(question.identity, set())
        place = next(number for number in count() if number not in taken)
        taken.add(place)
        try:
            return await self._answered(self._placed(question, place) if place else question)
        except BaseException:
            taken.discard(place)
            raise

    async def _answered(self, question: _Question) -> Response:
        key, request, trial = question.key, question.request, question.trial
        self._desk.dumps.prompt(trial, question.target, request)
        if question.cached in self._under_way:
            await self._under_way[question.cached].wait()
        stored = self._stored(question)
        if stored is not None:
            return self._found(question, stored)
        if self._is_replayed(question.target):
            self._desk.on_unrecorded()
            raise ProviderError("request", _not_recorded(question.target, self._desk.stores), requests=0)
        with self._first_of_its_like(question.cached):
            async with self._desk.limits.of(key).slot():
                begun = self._services.environment.monotonic()
                try:
                    response = self._desk.redactor.response(await self._providers[key].ask(request))
                except ProviderError as error:
                    self._desk.redactor.clean(error)
                    raise
                if response.duration_ms is None:
                    response = replace(
                        response, duration_ms=round((self._services.environment.monotonic() - begun) * 1000)
                    )
            return self._taken(question, response)

    @contextmanager
    def _first_of_its_like(self, cached: str | None) -> Iterator[None]:
        """Have the same question of other cases wait meanwhile: what the first one gets is in the cache then.

        Where it gets nothing, they are asked side by side, so that none waits for more than one failure.
        """
        if cached is None or cached in self._under_way:
            yield
            return
        ended = self._under_way[cached] = asyncio.Event()
        try:
            yield
        finally:
            del self._under_way[cached]
            ended.set()

    def forget(self, trial: Trial) -> None:
        """Let go of what only matters while a trial runs."""
        self._alike.pop(trial.key, None)
        self._desk.dumps.forget(trial)

    def _found(self, question: _Question, stored: Response) -> Response:
        if self._desk.stores.record is not None:
            self._keep(self._desk.stores.record, question.recorded, question, stored)
        return self._priced(question, self._desk.redactor.response(stored))

    def _taken(self, question: _Question, response: Response) -> Response:
        """Keep, price and count an answer."""
        stores = self._desk.stores
        for store, name in ((stores.cache, question.cached), (stores.record, question.recorded)):
            if store is not None:
                self._keep(store, name, question, response)
        response = self._priced(question, response)
        if not self._dry_run:
            self._desk.budget.answered(question.target, response, question.trial.case.suite)
        return response

    def _priced(self, question: _Question, response: Response) -> Response:
        """Return an answer with its cost; what the mock says in a target's place costs nothing."""
        if self._dry_run:
            return response
        cost_usd = cost_of_response(question.target, response, question.trial.suite.prices)
        return replace(response, cost_usd=cost_usd) if cost_usd != response.cost_usd else response

    def _question(self, key: str, request: Request, trial: Trial) -> _Question:
        """Return a question with its keys, which are formed before anybody can change the files that it names."""
        return self._placed(_Question(key, self._resolved[key], request, trial), 0)

    def _placed(self, question: _Question, occurrence: int) -> _Question:
        """Return a question with the keys of its place among those of its trial that are alike, such as two judges'."""
        if not self._keeps(question.target):
            return question
        cached, recorded = self._keys(question, occurrence)
        return replace(question, cached=cached, recorded=recorded, identity=question.identity or cached or recorded)

    def _keeps(self, target: Target) -> bool:
        """Whether answers of a target are kept anywhere."""
        return not self._dry_run and not isinstance(target, MockTarget) and bool(self._desk.stores)

    def _keys(self, question: _Question, occurrence: int) -> tuple[str | None, str | None]:
        """Return a question's keys in the cache and among recordings."""
        request, trial, stores = question.request, question.trial, self._desk.stores
        case: JsonValue = [trial.case.suite, request.case_id]
        # Commands and agents may see the case; a recording is to give the same run again, whoever was asked.
        seen = None if isinstance(question.target, HttpTarget) else case
        cached = recorded = None
        if stores.cache is not None:
            settings = self._settings[question.key]
            cached = key_of(settings, request, trial=trial.number, occurrence=occurrence, case=seen)
        if stores.keeps_recordings:
            settings = self._written[question.key]
            recorded = key_of(settings, request, trial=trial.number, occurrence=occurrence, case=case)
        return cached, recorded

    def _keep(self, store: Store, name: str | None, question: _Question, response: Response) -> None:
        if name is None:
            return
        trial, target = question.trial, question.target
        asked: JsonObject = {
            "target": target.name,
            "model": model_name(target) or response.model,
            "suite": trial.case.suite,
            "eval_id": trial.case.id,
            "trial": trial.number,
        }
        try:
            store.keep(name, asked, response)
        except OSError as error:
            self._services.warn(f"an answer cannot be kept in '{store.folder}': {error.strerror}")
            if store is self._desk.stores.record:
                self._desk.on_lost(f"{store.folder}: {error.strerror}")

    def _stored(self, question: _Question) -> Response | None:
        stores = self._desk.stores
        for store, name in ((stores.replay, question.recorded), (stores.cache, question.cached)):
            if store is not None and name is not None and (found := store.find(name)) is not None:
                return found
        return None


def _not_recorded(target: Target, stores: Stores) -> str:
    assert stores.replay is not None, "only a replay has no answer"
    return f"{target.name}: no recorded answer to this question in '{stores.replay.folder}'; record it with --record"
