"""A Dask cluster: connect to it, keep something on each of its workers, and submit work to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from dask import config
from distributed import Client, LocalCluster, Security
from distributed.client import Future, FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.errors import CannotGoOn, TargetUnavailable, UsageError
from agentv_ci.execute.cluster_session import (
    Place,
    Problem,
    Session,
    SessionEnd,
    call_on_worker,
    problem_on_worker,
    run_on_worker,
)
from agentv_ci.execute.run_services import ClusterOptions
from agentv_ci.version import __version__

LOOPBACK = "127.0.0.1"
NO_PAGES: Mapping[str, list[str]] = {
    f"distributed.{kind}.http.routes": [] for kind in ("scheduler", "worker", "nanny")
}
"""Without TLS, everyone on the machine could read pages about tasks, logs and call stacks."""
CONNECT_S = 10.0
WORKERS_S = 30.0
BEGIN_TRIES = 3
END_S = 15.0
"""The longest wait for workers that end a session; a worker that hangs must not hold up a finished
run.
"""
PACKAGE = "agentv_ci"
LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.core",
    "distributed.comm",
    "distributed.utils",
)
"""Their reports of lost workers and connections are repeated in one sentence each."""


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

    async def worker_addresses(self) -> list[str]:
        """Return where the workers are reached.

        Raises OSError when the scheduler does not answer.
        """
        return list(await self._client.nthreads())

    async def count_threads(self) -> None:
        """Count the threads of workers again; raises OSError when the scheduler does not answer."""
        self.threads = sum((await self._client.nthreads()).values())

    @asynccontextmanager
    async def session(
        self,
        name: str,
        begin: Callable[[Place], AbstractAsyncContextManager[object]],
        *,
        on_event: Callable[[Sequence[str | float]], None],
        shared: Sequence[str],
    ) -> AsyncIterator[None]:
        """Open a session on every worker.

        `shared` are the keys of targets with slots for the whole cluster.

        Raises UsageError or TargetUnavailable, which name the worker.
        """
        self._client.subscribe_topic(name, lambda event: on_event(event[1]))
        try:
            await self._client.register_plugin(SessionEnd(name, self._client.id, shared))
            for problem in filter(None, await self._begin(Session(name, begin))):
                raise refusal(problem)
        except ImportError as error:
            raise UsageError(
                f"the scheduler at '{self.address}' cannot load agentv-ci: {_why(error)}",
                hint="start it where agentv-ci[dask] is installed",
            ) from error
        except OSError as error:
            raise TargetUnavailable(
                f"a worker was lost as the run began: {_why(error)}", hint="run it again"
            ) from error
        try:
            yield
        finally:
            await self._end(name)

    async def _begin(self, session: Session) -> Sequence[Problem | None]:
        """Open a session on all workers; raises OSError."""
        for tries_left in reversed(range(BEGIN_TRIES)):
            try:
                await self._client.register_plugin(session)
                return [
                    *(await self._client.run(partial(problem_on_worker, session.name))).values()
                ]
            except OSError:
                # A worker was lost meanwhile, and Dask counts it no more.
                if not tries_left or self._client.status != "running":
                    raise
        raise AssertionError("the last try ends the loop")

    async def _end(self, session: str) -> None:
        """End a session.

        A worker that is lost or hangs changes nothing, since all rows are here.
        """
        if self._client.status == "running":
            with suppress(Exception):
                await asyncio.wait_for(self._client.unregister_worker_plugin(session), END_S)

    async def tell(self, session: str, work: Callable[..., None], *arguments: object) -> None:
        """Call a function with what each worker keeps in a session.

        Workers that are lost do not matter.
        """
        with suppress(OSError):
            await self._client.run(
                partial(call_on_worker, session, work, *arguments), on_error="ignore"
            )

    def keep(self, name: str, value: object) -> Future:
        """Return a value that the cluster keeps; a worker that dies with it does not lose it."""
        if name not in self._kept:
            # A task, whose argument the scheduler has: scattered values are lost with their worker.
            self._kept[name] = self._client.submit(_same, value, key=f"agentv-ci-{name}")
        return self._kept[name]

    async def require_resources(self, what: str, resources: Mapping[str, float]) -> None:
        """Raise UsageError if no worker has these resources: Dask would wait for one."""
        workers = (await self._client.scheduler.identity())["workers"].values()

        def fits(worker: Mapping[str, Mapping[str, float]]) -> bool:
            return all(worker["resources"].get(key, 0) >= need for key, need in resources.items())

        if not any(map(fits, workers)):
            needed = ", ".join(f"{key}: {value:g}" for key, value in resources.items())
            hint = "start one with: dask worker --resources 'NAME=NUMBER'"
            raise UsageError(
                f"{what} needs a worker with the resources {needed}, and there is none", hint=hint
            )

    async def result(
        self,
        name: str,
        session: str,
        work: Callable[..., Awaitable[Any]],
        *arguments: object,
        resources: Mapping[str, float] | None = None,
    ) -> Any:  # noqa: ANN401  # what the work returns
        """Return the result of work on a worker that has these resources.

        Raises ProviderError when workers die of it, and TargetUnavailable when the scheduler or the
        worker is gone.
        """
        if self._client.status != "running":
            raise _lost()
        future = self._client.submit(
            run_on_worker, session, work, *arguments, key=name, pure=False, resources=resources
        )
        try:
            result = await future
        except KilledWorker as error:
            failure = ProviderError(
                "process", f"{counted(error.allowed_failures + 1, 'worker')} died while it ran"
            )
            failure.blame = "infrastructure"
            raise failure from error
        except (FutureCancelledError, OSError) as error:
            raise _lost() from error
        except asyncio.CancelledError:
            await future.cancel()
            raise
        if isinstance(result, Problem):
            raise refusal(result)
        return result


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
    """Connect to a cluster, or start one on this machine with these variables.

    `workers` is how many units it runs.

    Raises UsageError when there is no cluster, when it has no workers, or when one has another
    version.
    """
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    security: Security | None = None
    async with AsyncExitStack() as stack:
        address, where = options.scheduler, f"the scheduler at '{options.scheduler}'"
        try:
            if options.local is not None:
                where = "a cluster on this machine"
                security = _certified()
                local = await stack.enter_async_context(
                    _local_cluster(options.local, variables, workers, security)
                )
                address = local.scheduler_address
            connecting = Client(address, asynchronous=True, timeout=CONNECT_S, security=security)
            client = await stack.enter_async_context(connecting)
            await _require_workers(client, where)
            cluster = Cluster(client, await client.nthreads())
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise UsageError(
                f"{where} cannot be reached: {_why(error)}", hint=_hint(address)
            ) from error
        yield cluster


def _local_cluster(
    number: int, variables: Mapping[str, str], workers: int | None, security: Security
) -> LocalCluster:
    # For these and the workers that they start. Not for a moment: servers read it when they begin.
    config.set(NO_PAGES)
    return LocalCluster(
        security=security,
        host=LOOPBACK,
        protocol="tls://",
        n_workers=number,
        threads_per_worker=max(1, -(-(workers or 1) // number)),
        dashboard_address=None,
        # Without an address of its own, its HTTP server takes a port that another cluster may have.
        scheduler_kwargs={"dashboard_address": f"{LOOPBACK}:0"},
        asynchronous=True,
        silence_logs=logging.CRITICAL,
        env=dict(variables),
    )


def _certified() -> Security:
    """Return certificates of this run alone.

    A program that connects to a worker can have it execute anything.

    Agents with a network reach loopback, and so do all users of the machine. Raises UsageError
    without `cryptography`.
    """
    try:
        return Security.temporary()
    except ImportError as error:
        message = "--local-cluster needs the package 'cryptography' for its certificates"
        raise UsageError(message, hint="python -m pip install cryptography") from error


def _hint(address: str | None) -> str | None:
    if address is not None and address.startswith("tls://"):
        return "set the certificates in Dask's configuration: distributed.comm.tls"
    if address is None:
        return None
    return "if it uses TLS, its address begins with tls://"


def _why(error: Exception) -> str:
    if type(error) is CommClosedError:
        return "the connection was closed"
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


async def _require_workers(client: Client, where: str) -> None:
    """Raise UsageError when no worker joins in time, or when one has another version."""
    try:
        await client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError as error:
        raise UsageError(f"no worker joined {where} within {WORKERS_S:g} s") from error
    versions = await client.get_versions(packages=[PACKAGE])
    others: dict[str, list[str]] = {}
    for worker, found in versions["workers"].items():
        version = found["packages"].get(PACKAGE)
        if version != __version__:
            others.setdefault(f"agentv-ci {version}" if version else "no agentv-ci", []).append(
                worker
            )
    if others:
        named = "; ".join(f"{version} on {listed(workers)}" for version, workers in others.items())
        raise UsageError(f"workers must have agentv-ci {__version__}, as this machine has: {named}")
