"""The targets of a run, opened: asked within limits, through the cache; what they say is cleaned and priced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.targets import HttpTarget, MockTarget, Target, model_name
from agentv_ci.errors import TargetUnavailable
from agentv_ci.execute.batches import Batch
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.cache import Store, key_of, settings_of
from agentv_ci.execute.context import Context, Pause
from agentv_ci.execute.costs import cost_of_response
from agentv_ci.execute.dumps import Dumps
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.providers import BatchProvider, Provider, open_provider
from agentv_ci.execute.rows import Trial
from agentv_ci.redaction import Redactor


@dataclass(frozen=True, slots=True)
class Stores:
    """Where answers are kept and found."""

    cache: Store | None = None
    """Looked into first, and filled."""
    record: Store | None = None
    """Filled, never looked into."""
    replay: Store | None = None
    """Looked into instead of asking anybody."""


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


class OpenTargets:
    """The targets of a run; answers and judgements all come from here."""

    def __init__(
        self,
        authored: Mapping[str, Target],
        resolved: Mapping[str, Target],
        context: Context,
        desk: Desk,
        *,
        dry_run: bool,
    ) -> None:
        self._resolved = resolved
        self._context = context
        self._desk = desk
        self._dry_run = dry_run
        self._providers: dict[str, Provider] = {}
        self._batches: dict[str, Batch] = {}
        self._settings = {key: settings_of(authored[key], resolved[key]) for key in resolved}
        self._written = {key: settings_of(authored[key], None) for key in resolved}

    async def open(self, key: str, workers: int | None, stack: AsyncExitStack) -> None:
        """Make a target ready; raises TargetUnavailable when it cannot be asked at all."""
        target = self._resolved[key]
        if self._dry_run:
            target = MockTarget(name=target.name, provider="mock")
        if self._is_replayed(target):
            return
        provider = open_provider(target, replace(self._context, pause=self._pause(key)))
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
            self._context.warn(
                f"{target.name}: '{target.provider}' takes {target.most_workers} question at once, not {wanted}"
            )

    def open_batch(self, key: str, questions: Iterable[tuple[Trial, Request]], stack: AsyncExitStack) -> None:
        """Have all questions to a target asked in one session, if it wants that and can."""
        target = self._resolved[key]
        if self._dry_run or target.provider_batching is not True or key not in self._providers:
            return
        provider = self._providers[key]
        if not isinstance(provider, BatchProvider):
            self._context.log(
                f"{target.name}: provider_batching was requested but not applied: '{target.provider}' cannot"
            )
            return
        requests = {
            trial.key: request
            for trial, request in questions
            if self._desk.stores.cache is None or self._stored(key, request, trial) is None
        }
        slot = self._desk.limits.of(key).slot()
        batch = Batch(target.name, provider, requests, slot=slot, world=self._context.world, log=self._context.log)
        self._batches[key] = batch
        stack.push_async_callback(batch.close)

    async def answer(self, trial: Trial, request: Request) -> Response:
        """Return a trial's answer out of its target's batch, else the answer to its own question."""
        key = trial.case.target
        batch = self._batches.get(key)
        if batch is None or request.attempt:
            return await self.ask(key, request, trial)
        answered = await batch.answer(trial.key)
        if answered is None:
            return await self.ask(key, request, trial)
        self._desk.dumps.prompt(trial, self._resolved[key], request)
        return self._taken(key, request, trial, self._desk.redactor.response(answered))

    async def ask(self, key: str, request: Request, trial: Trial) -> Response:
        """Return the answer to a question; raises ProviderError, cleaned."""
        target = self._resolved[key]
        self._desk.dumps.prompt(trial, target, request)
        stored = self._stored(key, request, trial)
        if stored is not None:
            return stored
        if self._is_replayed(target):
            raise ProviderError("request", _not_recorded(target, self._desk.stores), requests=0)
        async with self._desk.limits.of(key).slot():
            begun = self._context.world.monotonic()
            try:
                response = self._desk.redactor.response(await self._providers[key].ask(request))
            except ProviderError as error:
                self._desk.redactor.clean(error)
                raise
            if response.duration_ms is None:
                response = replace(response, duration_ms=round((self._context.world.monotonic() - begun) * 1000))
        return self._taken(key, request, trial, response)

    def _taken(self, key: str, request: Request, trial: Trial, response: Response) -> Response:
        """Price, count and keep an answer; what the mock says in a target's place costs nothing."""
        if self._dry_run:
            return response
        target = self._resolved[key]
        response = replace(response, cost_usd=cost_of_response(target, response, trial.suite.prices))
        self._desk.budget.answered(target, response, trial.case.suite)
        stores = self._desk.stores
        if stores.cache is not None:
            self._keep(stores.cache, target, self._settings[key], request, trial, response)
        if stores.record is not None:
            self._keep(stores.record, target, self._written[key], request, trial, response)
        return response

    def _keep(
        self, store: Store, target: Target, settings: JsonObject, request: Request, trial: Trial, response: Response
    ) -> None:
        if isinstance(target, MockTarget):
            return
        asked: JsonObject = {
            "target": target.name,
            "model": model_name(target) or response.model,
            "suite": trial.case.suite,
            "eval_id": trial.case.id,
            "trial": trial.number,
        }
        try:
            store.keep(self._key(settings, target, request, trial), asked, response)
        except OSError as error:
            self._context.warn(f"an answer cannot be kept in '{store.folder}': {error.strerror}")

    def _stored(self, key: str, request: Request, trial: Trial) -> Response | None:
        target = self._resolved[key]
        if self._dry_run or isinstance(target, MockTarget):
            return None
        for store, settings in (
            (self._desk.stores.replay, self._written[key]),
            (self._desk.stores.cache, self._settings[key]),
        ):
            if store is not None:
                found = store.find(self._key(settings, target, request, trial))
                if found is not None:
                    return self._desk.redactor.response(found)
        return None

    def _key(self, settings: JsonObject, target: Target, request: Request, trial: Trial) -> str:
        knows_case = not isinstance(target, HttpTarget)
        return key_of(settings, request, trial.number, root=self._context.root, knows_case=knows_case)


def _not_recorded(target: Target, stores: Stores) -> str:
    assert stores.replay is not None, "only a replay has no answer"
    return f"{target.name}: no recorded answer to this question in '{stores.replay.folder}'; record it with --record"
