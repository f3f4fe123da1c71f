"""Measure what a case costs the machines of a cluster: CPU time, memory, and how soon rows come.

Starts a scheduler and workers on this machine, and runs mock cases on them: one by one, and in the
groups in which short cases travel. Needs Linux and the extra `dask`. `scale_simulation.py` uses the
figures; docs/scale.md has them. Run: python benchmarks/scale_costs.py --cases 100000
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scale import write_plan

WORKERS = 4
ONE_BY_ONE = 2_000
"""Cases that are submitted alone."""
MEMORY = 1.2
"""The bar: memory of the submitting machine, as a multiple of a process that reads the plan."""
READS = "import pathlib, sys; from agentv_ci.load.plan import load_plan; load_plan(pathlib.Path(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Run:
    """What a process took."""

    wall_s: float
    cpu_s: float
    memory_mb: float
    scheduler_s: float = 0.0
    """CPU time of the scheduler."""
    first_row_s: float = 0.0
    rows_before_half: float = 0.0
    """The share of rows that were there after half of the time between the first and the last row.
    """
    row_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler and workers on this machine."""

    address: str
    scheduler: int
    """Its process id."""

    def cpu_s(self) -> float:
        """Return the CPU time of the scheduler so far."""
        fields = Path(f"/proc/{self.scheduler}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    here = ["--no-dashboard"]
    commands = [["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), *here]]
    commands += [["dask_worker", address, "--nthreads", "1", "--no-nanny", *here]] * WORKERS
    processes = []
    try:
        for module, *options in commands:
            command = [sys.executable, "-m", f"distributed.cli.{module}", *options]
            processes.append(subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL))
        time.sleep(10)
        yield Cluster(address, processes[0].pid)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measured(command: Sequence[str], folder: Path, on: Cluster | None = None) -> Run:
    """Run a command, which must end with 0, and return what it took and how its rows came."""
    rows, sizes = folder / "rows.jsonl", dict[float, int]()
    rows.unlink(missing_ok=True)
    before, begun = on.cpu_s() if on else 0.0, time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], cwd=folder, stdout=subprocess.DEVNULL)
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        if rows.exists() and rows.stat().st_size:
            sizes[time.perf_counter() - begun] = rows.stat().st_size
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}")
    used, wall_s = ended[2], time.perf_counter() - begun
    run = Run(
        wall_s,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss / 1024,
        (on.cpu_s() if on else 0.0) - before,
    )
    if not sizes:
        return run
    final = max(sizes.values())
    first_s, last_s = min(sizes), min(at for at, size in sizes.items() if size == final)
    half = max(size for at, size in sizes.items() if at <= (first_s + last_s) / 2)
    count = rows.read_bytes().count(b"\n")
    return Run(
        run.wall_s, run.cpu_s, run.memory_mb, run.scheduler_s, first_s, half / final, final / count
    )


def main() -> int:
    """Print the figures as Markdown; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".git").mkdir()
        target = '{"$schema": "agentv-targets-v2.2", "targets": [{"name": "default", "provider": "mock", "response": "it"}]}'
        (folder / "targets.yaml").write_text(target)
        for file, cases in (("one", 1), ("few", ONE_BY_ONE), ("many", options.cases)):
            write_plan(folder, file, cases, "default")
        reading = measured(["-c", READS, "many.json"], folder)
        alone = measured(_eval("many"), folder)
        with cluster(folder) as running:
            flags = ["--engine", "dask", "--scheduler", running.address]
            start = measured(_eval("one", *flags), folder, running)
            single = measured(_eval("few", *flags, "--workers", str(WORKERS)), folder, running)
            many = measured(_eval("many", *flags), folder, running)
    return show(options.cases, reading, alone, start, single, many)


def _eval(plan: str, *flags: str) -> list[str]:
    return ["-m", "agentv_ci", "eval", f"{plan}.json", "--quiet", "--out", "rows.jsonl", *flags]


def show(cases: int, reading: Run, alone: Run, start: Run, single: Run, many: Run) -> int:
    """Print the figures; 1 if the bar is missed."""
    each_ms = 1000 / (ONE_BY_ONE - 1)
    memory = many.memory_mb / reading.memory_mb
    print(f"| {cases:,} mock cases on {WORKERS} workers | |\n|---|--:|")
    print(f"| memory of the submitting machine | {many.memory_mb:,.0f} MB |")
    print(f"| as a multiple of a process that reads the plan | {memory:.2f} |")
    print(f"| the same without a cluster | {alone.memory_mb / reading.memory_mb:.2f} |")
    print(f"| wall time; without a cluster | {many.wall_s:.0f} s; {alone.wall_s:.0f} s |")
    print(
        f"| until the first row; without a cluster | {many.first_row_s:.1f} s; {alone.first_row_s:.1f} s |"
    )
    print(
        f"| rows after half of the time between the first and the last | {many.rows_before_half:.0%} |"
    )
    print(f"| bytes of a row | {many.row_bytes:,.0f} |")
    print(
        f"| CPU time for each case, in groups: submitting | {(many.cpu_s - alone.cpu_s) / cases * 1000:+.2f} ms |"
    )
    print(
        f"| in groups: scheduler | {(many.scheduler_s - start.scheduler_s) / cases * 1000:.2f} ms |"
    )
    print(
        f"| CPU time for each case, one by one: submitting | {(single.cpu_s - start.cpu_s) * each_ms:.2f} ms |"
    )
    print(
        f"| one by one: scheduler | {(single.scheduler_s - start.scheduler_s) * each_ms:.2f} ms |"
    )
    return int(memory > MEMORY)


if __name__ == "__main__":
    sys.exit(main())
