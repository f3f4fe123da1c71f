"""What a run keeps on each worker of a Dask cluster, from its beginning to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any

from distributed import Scheduler, SchedulerPlugin, Semaphore, Worker, WorkerPlugin, get_worker
from msgspec import Struct

from agentv_ci.errors import CannotGoOn, TargetUnavailable

RECONNECT_S = 0.5


class Problem(Struct, frozen=True):
    """Why a worker cannot take part."""

    worker: str
    exit_code: int
    message: str
    hint: str | None


class ClusterSlots:
    """Slots of a target for a whole cluster.

    They are a semaphore of Dask, which gives back those of workers that die.
    """

    def __init__(self, name: str, number: int, worker: Worker) -> None:
        self._semaphore = Semaphore(number, name, scheduler_rpc=worker.scheduler, loop=worker.loop)
        self._holders: set[asyncio.Task[Any] | None] = set()

    async def acquire(self) -> None:
        """See SharedSlots."""
        while True:
            try:
                await self._semaphore.acquire()
                break
            except OSError:
                # The connection broke; when it stays so, Dask closes the worker, which cancels
                # this.
                await asyncio.sleep(RECONNECT_S)
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
    report: Callable[[Sequence[str | float]], None]
    """Sends an event to the machine that submits the run, at once."""


class Session(WorkerPlugin):  # type: ignore[misc]  # distributed is untyped here
    """What a run keeps on each worker, also on those that join later."""

    def __init__(
        self, name: str, begin: Callable[[Place], AbstractAsyncContextManager[object]]
    ) -> None:
        """`begin` opens what is kept on a worker."""
        self.name = name
        self.problem: Problem | None = None
        self.kept: object = None
        self._begin = begin

    async def setup(self, worker: Worker) -> None:
        """Open what is kept."""
        self._stack = AsyncExitStack()
        self._under_way: set[asyncio.Task[Any]] = set()

        def slots(target: str, number: int) -> ClusterSlots:
            shared = ClusterSlots(_semaphore(self.name, target), number, worker)
            self._stack.callback(shared.close)
            return shared

        def report(event: Sequence[str | float]) -> None:
            worker.log_event(self.name, list(event))

        try:
            place = Place(str(worker.name), worker.state.nthreads, slots, report)
            self.kept = await self._stack.enter_async_context(self._begin(place))
        except CannotGoOn as error:
            self.problem = Problem(str(worker.name), error.exit_code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001  # such as a full disk: the run names the worker
            why = f"{type(error).__name__}: {error}"
            self.problem = Problem(str(worker.name), TargetUnavailable.exit_code, why, None)

    async def teardown(self, worker: Worker) -> None:  # noqa: ARG002  # as Dask calls it
        """Cancel what runs, and close what is kept."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._stack.aclose()

    async def run(
        self, work: Callable[..., Awaitable[Any]], arguments: tuple[object, ...]
    ) -> object:
        """Do work with what is kept, until the run ends."""
        if self.problem is not None:
            return self.problem
        task = asyncio.ensure_future(work(self.kept, *arguments))
        self._under_way.add(task)
        try:
            return await task
        finally:
            self._under_way.discard(task)


class SessionEnd(SchedulerPlugin):  # type: ignore[misc]  # distributed is untyped here
    """Ends a session when the machine that submits the run is gone.

    It also removes what the scheduler keeps for the session.
    """

    def __init__(self, session: str, client: str, targets: Sequence[str]) -> None:
        """`targets` are those with slots."""
        self.name = f"{session}-end"
        self._session = session
        self._client = client
        self._semaphores = [_semaphore(session, target) for target in targets]

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Begin to end the session."""
        if client == self._client:
            self._ending = asyncio.ensure_future(self._end(scheduler))

    async def _end(self, scheduler: Scheduler) -> None:
        # A worker may be lost, and the session may have ended before.
        with suppress(OSError, ValueError):
            await scheduler.unregister_worker_plugin(None, self._session)
        for name in self._semaphores:
            scheduler.extensions["semaphores"].close(name)
        with suppress(ValueError):
            scheduler.remove_plugin(self.name)


def _semaphore(session: str, target: str) -> str:
    return f"{session}-{target}"


async def run_on_worker(
    session: str, work: Callable[..., Awaitable[Any]], *arguments: object
) -> object:
    """Do work in a session of the worker that calls this."""
    return await get_worker().plugins[session].run(work, arguments)


def problem_on_worker(session: str, dask_worker: Worker) -> Problem | None:
    """Return why a worker cannot take part in a session."""
    found: Problem | None = dask_worker.plugins[session].problem
    return found


def call_on_worker(
    session: str, work: Callable[..., None], *arguments: object, dask_worker: Worker
) -> None:
    """Call a function with what a worker keeps in a session, if it takes part."""
    found = dask_worker.plugins.get(session)
    if found is not None and found.kept is not None:
        work(found.kept, *arguments)
