"""A Dask cluster: connect to it, keep something on each of its workers, and submit work to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from distributed import Client, LocalCluster, Semaphore, Worker, WorkerPlugin, get_worker
from distributed.client import Future, FutureCancelledError
from distributed.scheduler import KilledWorker
from msgspec import Struct

from agentv_ci import __version__
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.errors import CannotGoOn, TargetUnavailable, UsageError
from agentv_ci.execute.run_services import ClusterOptions
from agentv_ci.text import counted, listed

CONNECT_S = 10.0
WORKERS_S = 30.0
PACKAGE = "agentv_ci"


class Problem(Struct, frozen=True):
    """Why a worker cannot take part."""

    worker: str
    exit_code: int
    message: str
    hint: str | None


class ClusterSlots:
    """Slots of a target for a whole cluster: a semaphore of Dask, which gives back those of workers that die."""

    def __init__(self, name: str, number: int, worker: Worker) -> None:
        self._semaphore = Semaphore(number, name, scheduler_rpc=worker.scheduler, loop=worker.loop)
        self._holders: set[asyncio.Task[Any] | None] = set()

    async def acquire(self) -> None:
        """See SharedSlots."""
        await self._semaphore.acquire()
        self._holders.add(asyncio.current_task())

    async def release(self) -> None:
        """See SharedSlots."""
        if (task := asyncio.current_task()) in self._holders:
            self._holders.discard(task)
            await self._semaphore.release()

    def close(self) -> None:
        """Stop telling the scheduler that slots are in use."""
        self._semaphore.refresh_callback.stop()


class Place(Struct, frozen=True):
    """A worker, as a run sees it."""

    name: str
    threads: int
    slots: Callable[[str, int], ClusterSlots]
    """Returns the slots of a target for the whole cluster, by its key and their number."""


class Session(WorkerPlugin):  # type: ignore[misc]  # distributed is untyped here
    """What a run keeps on each worker, also on those that join later."""

    def __init__(self, name: str, begin: Callable[[Place], AbstractAsyncContextManager[object]]) -> None:
        """`begin` opens what is kept on a worker."""
        self.name = name
        self.problem: Problem | None = None
        self._begin = begin

    async def setup(self, worker: Worker) -> None:
        """Open what is kept."""
        self._stack = AsyncExitStack()
        self._under_way: set[asyncio.Task[Any]] = set()

        def slots(target: str, number: int) -> ClusterSlots:
            shared = ClusterSlots(f"{self.name}-{target}", number, worker)
            self._stack.callback(shared.close)
            return shared

        try:
            place = Place(str(worker.name), worker.state.nthreads, slots)
            self._kept = await self._stack.enter_async_context(self._begin(place))
        except CannotGoOn as error:
            self.problem = Problem(str(worker.name), error.exit_code, error.message, error.hint)

    async def teardown(self, worker: Worker) -> None:  # noqa: ARG002  # as Dask calls it
        """Cancel what runs, and close what is kept."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._stack.aclose()

    async def do(self, work: Callable[..., Awaitable[Any]], arguments: tuple[object, ...]) -> object:
        """Do work with what is kept, until the run ends."""
        if self.problem is not None:
            return self.problem
        task = asyncio.ensure_future(work(self._kept, *arguments))
        self._under_way.add(task)
        try:
            return await task
        finally:
            self._under_way.discard(task)


async def do_on_worker(session: str, work: Callable[..., Awaitable[Any]], *arguments: object) -> object:
    """Do work in a session of the worker that calls this."""
    return await get_worker().plugins[session].do(work, arguments)


def problem_on_worker(session: str, dask_worker: Worker) -> Problem | None:
    """Return why a worker cannot take part in a session."""
    found: Problem | None = dask_worker.plugins[session].problem
    return found


class Cluster:
    """A connection to a cluster."""

    def __init__(self, client: Client, workers: Mapping[str, int]) -> None:
        """`workers` have so many threads."""
        self.address = str(client.scheduler.address)
        self.workers = len(workers)
        self.threads = sum(workers.values())
        """How many units run at once."""
        self._client = client
        self._kept: dict[str, Future] = {}

    @asynccontextmanager
    async def session(
        self, name: str, begin: Callable[[Place], AbstractAsyncContextManager[object]]
    ) -> AsyncIterator[None]:
        """Open a session on every worker; raises UsageError or TargetUnavailable, which name the worker."""
        await self._client.register_plugin(Session(name, begin))
        try:
            problems = await self._client.run(partial(problem_on_worker, name))
            for problem in filter(None, problems.values()):
                raise refusal(problem)
            yield
        finally:
            if self._client.status == "running":
                await self._client.unregister_worker_plugin(name)

    def keep(self, name: str, value: object) -> Future:
        """Return a value that the cluster keeps; a worker that dies with it does not lose it."""
        if name not in self._kept:
            # A task, whose argument the scheduler has: scattered values are lost with their worker.
            self._kept[name] = self._client.submit(_same, value, key=f"agentv-ci-{name}")
        return self._kept[name]

    async def require_resources(self, what: str, resources: Mapping[str, float]) -> None:
        """Raise UsageError if no worker has these resources: Dask would wait for one."""
        known = (await self._client.scheduler.identity())["workers"].values()
        if not any(all(each["resources"].get(key, 0) >= value for key, value in resources.items()) for each in known):
            needed = ", ".join(f"{key}: {value:g}" for key, value in resources.items())
            hint = "start one with: dask worker --resources 'NAME=NUMBER'"
            raise UsageError(f"{what} needs a worker with the resources {needed}, and there is none", hint=hint)

    async def do(
        self,
        name: str,
        session: str,
        work: Callable[..., Awaitable[Any]],
        *arguments: object,
        resources: Mapping[str, float] | None = None,
    ) -> Any:  # noqa: ANN401  # what the work returns
        """Do work on a worker that has these resources.

        Raises ProviderError when workers die of it, and TargetUnavailable when the scheduler or the worker is gone.
        """
        if self._client.status != "running":
            raise _lost()
        future = self._client.submit(do_on_worker, session, work, *arguments, key=name, pure=False, resources=resources)
        try:
            done = await future
        except KilledWorker as error:
            raise ProviderError(
                "process", f"{counted(error.allowed_failures + 1, 'worker')} died while it ran"
            ) from error
        except FutureCancelledError as error:
            raise _lost() from error
        except asyncio.CancelledError:
            await future.cancel()
            raise
        if isinstance(done, Problem):
            raise refusal(done)
        return done


def refusal(problem: Problem) -> CannotGoOn:
    """Return the error of a worker that cannot take part."""
    kind = UsageError if problem.exit_code == UsageError.exit_code else TargetUnavailable
    return kind(f"worker {problem.worker}: {problem.message}", hint=problem.hint)


def _lost() -> TargetUnavailable:
    message = "the connection to the scheduler is lost; finished rows are kept"
    return TargetUnavailable(message, hint="continue with --resume")


def _same(value: object) -> object:
    return value


@asynccontextmanager
async def open_cluster(
    options: ClusterOptions, variables: Mapping[str, str], workers: int | None
) -> AsyncIterator[Cluster]:
    """Connect to a cluster, or start one on this machine with these variables; `workers` is how many units it runs.

    Raises UsageError when there is no cluster, when it has no workers, or when one has another version.
    """
    # Its reports of lost workers and connections are repeated in one sentence each.
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm", "distributed.utils"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    async with AsyncExitStack() as stack:
        address: object = options.scheduler
        if options.local is not None:
            threads = max(1, -(-(workers or 1) // options.local))
            address = await stack.enter_async_context(
                LocalCluster(
                    n_workers=options.local,
                    threads_per_worker=threads,
                    dashboard_address=None,
                    asynchronous=True,
                    silence_logs=logging.CRITICAL,
                    env=dict(variables),
                )
            )
        try:
            client = await stack.enter_async_context(Client(address, asynchronous=True, timeout=CONNECT_S))
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise UsageError(f"the scheduler at '{options.scheduler}' cannot be reached: {_why(error)}") from error
        try:
            await client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            raise UsageError(f"no worker joined '{options.scheduler}' within {WORKERS_S:g} s") from error
        await _require_version(client)
        yield Cluster(client, await client.nthreads())


def _why(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


async def _require_version(client: Client) -> None:
    versions = await client.get_versions(packages=[PACKAGE])
    others: dict[str, list[str]] = {}
    for worker, found in versions["workers"].items():
        version = found["packages"].get(PACKAGE)
        if version != __version__:
            others.setdefault(f"agentv-ci {version}" if version else "no agentv-ci", []).append(worker)
    if others:
        named = "; ".join(f"{version} on {listed(workers)}" for version, workers in others.items())
        raise UsageError(f"workers must have agentv-ci {__version__}, as this machine has: {named}")
