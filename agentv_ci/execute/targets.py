"""Open targets: asked within their limits and through the cache.

Answers are redacted and priced.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import chain, count, filterfalse

from msgspec.structs import replace

from agentv_ci.base.prices import cost_of_response, priced
from agentv_ci.base.redaction import Redactor
from agentv_ci.base.text import counted
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.exchange import Attachment, ProviderError, Request, Response
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.targets import MockTarget, Target, refused_attachment
from agentv_ci.errors import TargetUnavailable
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.dumps import Dumps
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.providers import BatchProvider, Provider, open_provider
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.execute.stores import AnswerStores, Question
from agentv_ci.results.rows import Trial, TrialKey
from agentv_ci.workspaces.bases import UnusableWorkspace
from agentv_ci.workspaces.places import Workspaces
from agentv_ci.workspaces.trees import TooMuchChanged


class OpenTargets:
    """The targets of a run; answers and judgements all come from here."""

    def __init__(
        self,
        plan: Plan,
        resolved: Mapping[str, Target],
        options: RunOptions,
        services: RunServices,
        *,
        limits: Limits,
        budget: Budget,
        progress: Progress,
        workspaces: Workspaces | None = None,
    ) -> None:
        self.unrecorded = 0
        """Questions of a replay that had no recording."""
        self.keys = resolved.keys()
        self._resolved = resolved
        self._options = options
        self._services = services
        self._limits = limits
        self._budget = budget
        self._progress = progress
        self._workspaces = workspaces
        self.stores = AnswerStores(plan.targets, resolved, options, services.warn)
        self._dumps = Dumps(options.prompts, options.traces, services.redactor, services.warn)
        self._providers: dict[str, Provider] = {}
        self._together: dict[TrialKey, Response] = {}
        """Answers of batches, until their trials take them."""
        self._alike: dict[TrialKey, dict[str | None, set[int]]] = {}
        """Occurrences taken by identical questions of a trial."""
        self._under_way: dict[str, asyncio.Event] = {}
        """By cache key, questions being asked; set when they have ended, with or without an answer.
        """

    async def open(self, key: str, stack: AsyncExitStack) -> None:
        """Open a target; raises TargetUnavailable when it cannot be asked at all."""
        target = self._resolved[key]
        if self._options.dry_run:
            target = MockTarget(name=target.name, provider="mock")
        if self.stores.replays(target):
            return
        provider = self._providers[key] = open_provider(target, self._provider_services(key))
        stack.push_async_callback(provider.close)
        self._warn_of_workers(target)
        await _require_available(provider, target, self._services.redactor)

    def _provider_services(self, key: str) -> ProviderServices:
        async def pause(error: ProviderError, wait_s: float) -> None:
            self._progress.retries += 1
            await self._limits.of(key).pause(error, wait_s)

        return ProviderServices(
            root=self._options.root,
            logs=self._options.logs,
            environment=self._services.environment,
            log=self._services.log,
            warn=self._services.warn,
            redact=self._services.redactor.text,
            pause=pause,
        )

    def _warn_of_workers(self, target: Target) -> None:
        workers = self._options.workers or target.workers
        if (
            target.most_workers is not None
            and isinstance(workers, int)
            and workers > target.most_workers
        ):
            self._services.warn(
                f"{target.name}: '{target.provider}' supports "
                f"{counted(target.most_workers, 'concurrent request')}; "
                f"workers={workers} is ignored"
            )

    async def ask_together(self, key: str, questions: Iterable[tuple[Trial, Request]]) -> None:
        """Ask all questions to a target in one session; if that fails, every trial asks its own.

        That needs `provider_batching`, and a provider that supports it.
        """
        target, provider = self._resolved[key], self._providers.get(key)
        if target.provider_batching is not True or self._options.dry_run or provider is None:
            return
        if not isinstance(provider, BatchProvider):
            self._services.log(
                f"{target.name}: '{target.provider}' does not support provider_batching; "
                "asking case by case"
            )
            return
        requests = {
            trial.key: request
            for trial, request in questions
            if self.stores.find(self.stores.question(key, request, trial)) is None
        }
        await self._ask_batch(key, provider, requests)

    async def _ask_batch(
        self, key: str, provider: BatchProvider, requests: Mapping[TrialKey, Request]
    ) -> None:
        if not requests:
            return
        name, log = self._resolved[key].name, self._services.log
        monotonic = self._services.environment.monotonic
        log(f"{name}: asking {counted(len(requests), 'question')} in one batch")
        begun = monotonic()
        try:
            async with self._limits.of(key).slot():
                responses = await provider.ask_together(list(requests.values()))
        except (ProviderError, OSError) as error:
            log(f"{name}: provider_batching failed: {error}; asking case by case")
            return
        share_ms = round((monotonic() - begun) * 1000 / len(requests))
        for trial_key, response in zip(requests, responses, strict=True):
            self._together[trial_key] = replace(response, duration_ms=share_ms)

    async def answer(self, trial: Trial, request: Request) -> Response:
        """Return a trial's answer, from its target's batch where there was one.

        Raises ProviderError, redacted.
        """
        response = self._together.pop(trial.key, None)
        if response is None:
            response = await self.ask(trial.case.target, request, trial)
        else:
            question = self.stores.question(trial.case.target, request, trial)
            self._dumps.prompt(trial, question.target, request)
            response = self._accepted(question, self._services.redactor.response(response))
        self._dumps.trace(trial, response)
        return response

    async def ask(self, key: str, request: Request, trial: Trial) -> Response:
        """Return the answer to a question; raises ProviderError, redacted.

        Identical questions of a trial, such as those of two judges, are numbered; a failed one
        leaves its number to the next attempt.
        """
        question = self.stores.question(key, request, trial)
        places = self._alike.setdefault(trial.key, {}).setdefault(
            question.cached or question.recorded, set()
        )
        place = next(filterfalse(places.__contains__, count()))
        places.add(place)
        try:
            return await self._ask(
                self.stores.question(key, request, trial, occurrence=place) if place else question
            )
        except BaseException:
            places.discard(place)
            raise

    async def _ask(self, question: Question) -> Response:
        self._dumps.prompt(question.trial, question.target, question.request)
        if question.cached in self._under_way:
            await self._under_way[question.cached].wait()
        stored = self.stores.find(question)
        if stored is not None:
            self.stores.keep(question, self._services.redactor.stored(stored))
            self._services.log(
                f"{question.target.name}: {question.request.case_id}: not asked, "
                "the answer is stored"
            )
            return self._priced(question, self._services.redactor.response(stored))
        if self.stores.replays(question.target):
            self.unrecorded += 1
            raise ProviderError("request", self.stores.not_recorded(question.target), requests=0)
        with self._first_of_its_like(question.cached):
            return self._accepted(question, await self._ask_provider(question))

    async def _ask_provider(self, question: Question) -> Response:
        redactor = self._services.redactor
        _require_taken(question.target, question.request)
        async with self._limits.of(question.key).slot():
            try:
                if question.request.workspace is None or self._options.dry_run:
                    return await self._timed(question, question.request)
                return await self._ask_in_workspace(question)
            except ProviderError as error:
                redactor.clean(error)
                self._charge(question, error)
                raise

    async def _timed(self, question: Question, request: Request) -> Response:
        begun = self._services.environment.monotonic()
        response = self._services.redactor.response(
            await self._providers[question.key].ask(request)
        )
        if response.duration_ms is not None:
            return response
        return replace(
            response, duration_ms=round((self._services.environment.monotonic() - begun) * 1000)
        )

    async def _ask_in_workspace(self, question: Question) -> Response:
        """Return the answer with what has changed in a fresh workspace.

        No process of the agent is alive by then.
        """
        workspace = question.trial.case.workspace
        assert workspace is not None, "a request with a workspace is of a case with one"
        assert self._workspaces is not None, "only judges are asked without workspaces"
        try:
            async with self._workspaces.open(workspace, question.trial.key) as (place, changes):
                response = await self._timed(question, replace(question.request, place=place))
                try:
                    return replace(response, changes=await asyncio.to_thread(changes))
                except TooMuchChanged as error:
                    raise _unusable(response, str(error)) from error
        except UnusableWorkspace as error:
            raise ProviderError(
                "request", f"the workspace cannot be made: {error}", requests=0
            ) from error

    @contextmanager
    def _first_of_its_like(self, cached: str | None) -> Iterator[None]:
        """Make the same question of other cases wait, so that the cache can answer them.

        If the first one fails, the others are asked side by side: none waits for more than one
        failure.
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
        """Discard what is kept only while a trial runs."""
        self._alike.pop(trial.key, None)
        self._dumps.forget(trial)

    def _accepted(self, question: Question, response: Response) -> Response:
        """Store, price and count a provider's answer."""
        self.stores.keep(question, self._services.redactor.stored(response))
        response = self._priced(question, response)
        if not self._options.dry_run:
            self._budget.answered(question.target, response, question.trial.case.suite)
        return response

    def _priced(self, question: Question, response: Response) -> Response:
        """Return an answer with its cost; in a dry run answers cost nothing."""
        if self._options.dry_run:
            return response
        target, prices = question.target, question.trial.suite.prices
        if response.expenses:
            response = replace(response, expenses=priced(response.expenses, target, prices))
        cost_usd = cost_of_response(target, response, prices)
        if cost_usd != response.cost_usd:
            return replace(response, cost_usd=cost_usd)
        return response

    def _charge(self, question: Question, error: ProviderError) -> None:
        """Price and count what requests have used that failed."""
        if self._options.dry_run or not error.expenses:
            return
        target, trial = question.target, question.trial
        error.price(priced(error.expenses, target, trial.suite.prices))
        self._budget.failed(target, error.expenses, trial.case.suite)


@asynccontextmanager
async def open_target(
    target: Target, services: ProviderServices, redactor: Redactor, prices: Mapping[str, Price]
) -> AsyncIterator[Callable[[Request], Awaitable[Response]]]:
    """Open a resolved target without a plan; raises TargetUnavailable.

    Asking raises ProviderError, redacted.
    """
    provider = open_provider(target, services)

    async def ask(request: Request) -> Response:
        try:
            response = redactor.response(await provider.ask(request))
        except ProviderError as error:
            redactor.clean(error)
            error.price(priced(error.expenses, target, prices))
            raise
        expenses = priced(response.expenses, target, prices)
        return replace(
            response, cost_usd=cost_of_response(target, response, prices), expenses=expenses
        )

    try:
        await _require_available(provider, target, redactor)
        yield ask
    finally:
        await provider.close()


def _unusable(response: Response, detail: str) -> ProviderError:
    """Return the failure of an answer that cannot be graded; it has used what the answer has."""
    error = ProviderError("process", detail, requests=response.requests)
    error.model, error.usage, error.cost_usd = response.model, response.usage, response.cost_usd
    error.earlier = response.expenses
    return error


def _require_taken(target: Target, request: Request) -> None:
    """Raise ProviderError for images and documents that a resolved target does not take."""
    for part in chain.from_iterable(message.parts for message in request.chat):
        if isinstance(part, Attachment):
            is_url = part.url is not None
            reason = refused_attachment(target, part.type, part.media_type, by_url=is_url)
            if reason is not None:
                raise ProviderError("request", reason, requests=0)


async def _require_available(provider: Provider, target: Target, redactor: Redactor) -> None:
    try:
        await provider.check()
    except ProviderError as error:
        redactor.clean(error)
        raise TargetUnavailable(
            f"target '{target.name}' is not available: {error.detail}"
        ) from error
