"""A Dask scheduler and workers on loopback, each a process with its own folder and an empty home."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

STARTS_S = 30.0


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def wait_until(is_so: Callable[[], bool], seconds: float = STARTS_S) -> None:
    """Wait until something is so; fails instead of hanging."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass(slots=True)
class DaskCluster:
    """A scheduler, and workers with one thread each."""

    folder: Path
    port: int = field(default_factory=free_port)
    protocol: str = "tcp"
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return f"{self.protocol}://127.0.0.1:{self.port}"

    @property
    def flags(self) -> list[str]:
        """The options of `eval` that use it."""
        return ["--engine", "dask", "--scheduler", self.address]

    def start_scheduler(self, env: Mapping[str, str] | None = None, *flags: str) -> None:
        """Start the scheduler."""
        host = f"{self.protocol}://127.0.0.1"
        self._start("scheduler", "--host", host, "--port", str(self.port), *flags, env=env)
        wait_until(lambda: "Scheduler at:" in self.log("scheduler"))

    def start_worker(
        self, name: str, env: Mapping[str, str] | None = None, *flags: str, threads: int = 1, scheduler: str = ""
    ) -> None:
        """Start a worker without a nanny, so that it stays dead when it is killed."""
        options = ("--name", name, "--nthreads", str(threads), "--no-nanny", *flags)
        self._start(f"worker {name}", scheduler or self.address, "--local-directory", "scratch", *options, env=env)
        wait_until(lambda: "Registered to:" in self.log(f"worker {name}"))

    @contextmanager
    def joined(self, name: str, env: Mapping[str, str] | None = None, *flags: str) -> Iterator[None]:
        """Start a worker that is killed at the end."""
        self.start_worker(name, env, *flags)
        try:
            yield
        finally:
            self.kill(f"worker {name}")

    def _start(self, what: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        folder = self.folder / what
        (folder / "home").mkdir(parents=True, exist_ok=True)
        module = f"distributed.cli.dask_{what.split(maxsplit=1)[0]}"
        with (folder / "log").open("wb") as log:
            self.processes[what] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, "--no-dashboard"],
                cwd=folder,
                env={"PATH": os.environ["PATH"], "HOME": str(folder / "home"), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def log(self, what: str) -> str:
        """Return what a process has printed."""
        return (self.folder / what / "log").read_text("utf-8")

    def kill(self, what: str) -> None:
        """Kill a process."""
        process = self.processes.pop(what)
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextmanager
def dask_cluster(
    folder: Path, *workers: str, env: Mapping[str, str] | None = None, protocol: str = "tcp"
) -> Iterator[DaskCluster]:
    """Start a scheduler and workers with these variables, and kill them at the end."""
    cluster = DaskCluster(folder, protocol=protocol)
    try:
        cluster.start_scheduler(env)
        for name in workers:
            cluster.start_worker(name, env)
        yield cluster
    finally:
        for what in [*cluster.processes]:
            cluster.kill(what)
