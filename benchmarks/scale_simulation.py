"""Simulate runs of a million cases on a thousand workers, from the costs that `scale_costs.py` measures.

Needs the package simpy. Prints a table, and draws docs/scale-run.svg and docs/scale-workers.svg with --plots.
Run: python benchmarks/scale_simulation.py --plots docs

The model: the submitting machine and the scheduler are servers that do one thing at a time. A case takes time of both
before it runs and after it, and runs on a thread of a worker for a time with a heavy tail (log-normal, at most the
time limit). Workers are lost at random; what they ran runs again once Dask has noticed. An API refuses questions over
its rate (429), which halves the slots; each full round of answers adds slots again, as in
`agentv_ci/execute/limits.py`. Retries wait as long as the server asks. Not in the model: networks, disks, and several
targets.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import simpy
from plots import drawing

SUBMIT_S, SCHEDULE_S = 0.0021, 0.0027
"""CPU time of a case that travels alone, on the submitting machine and the scheduler:
`scale_costs.py`.
"""
TIME_LIMIT_S = 600.0
LOST_S = 300.0
"""Until Dask notices a worker that vanished: `distributed.scheduler.worker-ttl`."""
REPLACED_S = 120.0
RETRY_S = 2.0
"""What the API asks to wait after a 429."""
MINUTE_S = 60.0
GROWTH = 16
"""Slots grow by this part of them, or by one, after a full round of answers."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated."""

    name: str
    cases: int = 1_000_000
    workers: int = 1_000
    threads: int = 1
    median_s: float = 20.0
    """Of the time that a case runs."""
    spread: float = 1.2
    """Sigma of the log-normal distribution: one in a hundred takes 16 times the median."""
    limit_per_s: float | None = None
    """Questions that the API takes."""
    lost_per_hour: float = 0.0
    """The share of workers that are lost."""
    growth: int = GROWTH


@dataclass(slots=True)
class Outcome:
    """What came out."""

    wall_s: float
    ideal_s: float
    """All work on all threads without losses, limits and costs."""
    submitting: float
    """The share of the time in which the submitting machine was busy."""
    scheduling: float
    refused: int
    repeated: int
    rows: Counter[int]
    """Rows by the minute in which they were written."""
    ends: Sequence[float]
    """When a quarter and three quarters of the rows were there."""

    @property
    def peak_per_s(self) -> float:
        """The most rows a second, over a minute."""
        return max(self.rows.values()) / MINUTE_S


class Server:
    """Does one thing at a time, in the order of asking."""

    def __init__(self, env: simpy.Environment) -> None:
        self.busy_s = 0.0
        self._env = env
        self._free = 0.0

    def wait_s(self, seconds: float, *, after_s: float = 0.0) -> float:
        """Return how long it is until it has done something that takes so long, and that begins later."""
        self._free = max(self._env.now + after_s, self._free) + seconds
        self.busy_s += seconds
        return self._free - float(self._env.now)


@dataclass(slots=True)
class Worker:
    """A worker, and what runs on it."""

    is_lost: bool = False
    running: set[simpy.Process] = field(default_factory=set)


class Simulation:
    """One run."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._chance = random.Random(seed)  # noqa: S311  # a simulation
        self._env = simpy.Environment()
        self._submitter, self._scheduler = Server(self._env), Server(self._env)
        self._workers = [Worker() for _ in range(scenario.workers)]
        self._free = [worker for worker in self._workers for _ in range(scenario.threads)]
        self._most = self._width = len(self._free)
        self._to_begin = scenario.cases
        self._again: list[float] = []
        """Seconds of the cases that run again."""
        self._under_way = self._done = self._answered = self._stale = self._refused = (
            self._repeated
        ) = 0
        self._tokens, self._filled_at = (scenario.limit_per_s or 0.0) * MINUTE_S, 0.0
        self._work_s = 0.0
        self._rows: Counter[int] = Counter()
        self._ends: list[float] = []
        self._held_until = 0.0
        self._room = self._env.event()
        self._finished = self._env.event()

    def run(self) -> Outcome:
        """Run it to its end."""
        self._env.process(self._dispatch())
        if self._scenario.lost_per_hour:
            self._env.process(self._lose())
        self._env.run(self._finished)
        wall_s = self._env.now
        return Outcome(
            wall_s=wall_s,
            ideal_s=self._work_s / self._most,
            submitting=self._submitter.busy_s / wall_s,
            scheduling=self._scheduler.busy_s / wall_s,
            refused=self._refused,
            repeated=self._repeated,
            rows=self._rows,
            ends=self._ends,
        )

    def _next(self) -> float | None:
        """Return how long the next case runs, in seconds."""
        if self._again:
            return self._again.pop()
        if not self._to_begin:
            return None
        self._to_begin -= 1
        scenario = self._scenario
        seconds = min(
            TIME_LIMIT_S, scenario.median_s * math.exp(self._chance.gauss(0, scenario.spread))
        )
        self._work_s += seconds
        return seconds

    def _dispatch(self) -> Generator[simpy.Event, Any, None]:
        while True:
            if self._env.now < self._held_until:
                yield self._env.timeout(self._held_until - self._env.now)
            while self._free and self._free[-1].is_lost:
                self._free.pop()
            has_room = self._under_way < self._width and self._free
            if has_room and (seconds := self._next()) is not None:
                self._under_way += 1
                yield self._env.timeout(self._submitter.wait_s(SUBMIT_S / 2))
                self._env.process(self._case(self._free.pop(), seconds))
            else:
                self._room = self._env.event()
                yield self._room

    def _wake(self) -> None:
        if not self._room.triggered:
            self._room.succeed()

    def _case(self, worker: Worker, seconds: float) -> Generator[simpy.Event, Any, None]:
        process = self._env.active_process
        assert process is not None
        worker.running.add(process)
        try:
            begins_s = self._scheduler.wait_s(SCHEDULE_S / 2)
            if self._scenario.limit_per_s is not None:
                yield self._env.timeout(begins_s)
                begins_s = 0.0
                while not self._is_taken():
                    self._refuse()
                    yield self._env.timeout(RETRY_S)
            yield self._env.timeout(begins_s + seconds)
        except simpy.Interrupt:
            self._repeated += 1
            yield self._env.timeout(LOST_S)
            self._again.append(seconds)
        else:
            worker.running.discard(process)
            self._free.append(worker)
            known_s = self._scheduler.wait_s(SCHEDULE_S / 2)
            yield self._env.timeout(self._submitter.wait_s(SUBMIT_S / 2, after_s=known_s))
            self._write_row()
        self._under_way -= 1
        self._wake()

    def _write_row(self) -> None:
        scenario = self._scenario
        self._done += 1
        self._rows[int(self._env.now / MINUTE_S)] += 1
        if self._done in (scenario.cases // 4, 3 * scenario.cases // 4):
            self._ends.append(self._env.now)
        if self._done == scenario.cases:
            self._finished.succeed()
        if self._stale:
            self._stale -= 1
            return
        self._answered += 1
        if self._width < self._most and self._answered >= self._width:
            self._width = min(self._most, self._width + max(1, self._width // scenario.growth))
            self._answered = 0

    def _is_taken(self) -> bool:
        """Whether the API takes a question now: a bucket of tokens for one minute."""
        limit, now = self._scenario.limit_per_s or 0.0, self._env.now
        self._tokens = min(limit * MINUTE_S, self._tokens + (now - self._filled_at) * limit)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refuse(self) -> None:
        self._refused += 1
        self._answered = 0
        self._held_until = self._env.now + RETRY_S
        if not self._stale:
            self._stale = self._under_way
            self._width = max(1, self._width // 2)

    def _lose(self) -> Generator[simpy.Event, Any, None]:
        scenario = self._scenario
        while True:
            rate_per_s = scenario.workers * scenario.lost_per_hour / 3600
            yield self._env.timeout(self._chance.expovariate(rate_per_s))
            worker = self._workers.pop(self._chance.randrange(len(self._workers)))
            worker.is_lost = True
            for process in worker.running:
                process.interrupt()
            self._env.process(self._replace())

    def _replace(self) -> Generator[simpy.Event, Any, None]:
        yield self._env.timeout(REPLACED_S)
        worker = Worker()
        self._workers.append(worker)
        self._free += [worker] * self._scenario.threads
        self._wake()


ONE_THREAD = Scenario("1 thread", lost_per_hour=0.01)
SCENARIOS = (
    ONE_THREAD,
    replace(ONE_THREAD, name="1 thread, an API that takes 15/s", limit_per_s=15.0),
    replace(
        ONE_THREAD, name="the same, if slots grew one by one", limit_per_s=15.0, growth=sys.maxsize
    ),
    replace(ONE_THREAD, name="8 threads", threads=8),
    replace(ONE_THREAD, name="8 threads, median of 5 s", threads=8, median_s=5.0),
)
SIZES = (10, 30, 100, 300, 1000, 3000)
"""Workers with 8 threads."""
MEDIANS_S = (2.0, 20.0, 200.0)
MOST_SWEPT = 60_000
"""Cases in the simulations that vary the number of workers."""


def main() -> None:
    """Print the table, and draw the plots."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--plots", type=Path, help="the folder of the plots")
    options = parser.parse_args()
    print(
        "| 1,000 workers | hours | ideal | rows/s, most | submitting busy | scheduler busy | 429 | run again |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    over_time: dict[str, list[tuple[float, float]]] = {}
    for scenario in SCENARIOS:
        outcome = Simulation(replace(scenario, cases=options.cases), options.seed).run()
        print(row_of(scenario, outcome), flush=True)
        over_time[scenario.name] = [
            (minute / 60, rows / MINUTE_S) for minute, rows in sorted(outcome.rows.items())
        ]
    if options.plots is not None:
        by_workers = {
            f"median of {median_s:g} s": [*rates(median_s, options.seed)] for median_s in MEDIANS_S
        }
        ceiling = 1 / max(SUBMIT_S, SCHEDULE_S)
        by_workers["what the scheduler can do"] = [(SIZES[0], ceiling), (SIZES[-1], ceiling)]
        (options.plots / "scale-run.svg").write_text(drawing(over_time, "hours", "rows/s"), "utf-8")
        drawn = drawing(by_workers, "workers with 8 threads", "rows/s", is_log=True)
        (options.plots / "scale-workers.svg").write_text(drawn, "utf-8")


def row_of(scenario: Scenario, outcome: Outcome) -> str:
    """Return a row of the table."""
    cells = (
        f"{outcome.wall_s / 3600:.1f}",
        f"{outcome.ideal_s / 3600:.1f}",
        f"{outcome.peak_per_s:,.0f}",
        f"{outcome.submitting:.0%}",
        f"{outcome.scheduling:.0%}",
        f"{outcome.refused:,}",
        f"{outcome.repeated:,}",
    )
    return f"| {scenario.name} | {' | '.join(cells)} |"


def rates(median_s: float, seed: int) -> Iterator[tuple[float, float]]:
    """Yield the numbers of workers, and the rows that they return each second in the middle of a run."""
    for workers in SIZES:
        cases = min(MOST_SWEPT, 400 * workers)
        scenario = Scenario("", cases, workers, threads=8, median_s=median_s)
        begin, end = Simulation(scenario, seed).run().ends
        yield workers, cases / 2 / (end - begin)


if __name__ == "__main__":
    main()
