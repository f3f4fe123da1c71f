"""Which trial is next: the first one, in the plan's order, whose target has room for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from agentv_ci.execute.limits import Limits
from agentv_ci.results.rows import Trial


class Lane:
    """The trials of one target, in order."""

    def __init__(self, target: str, trials: Iterator[tuple[int, Trial]]) -> None:
        self.target = target
        self.running = 0
        """Trials under way: asked, or judged."""
        self._trials = trials
        self._next = next(trials, None)
        self._again: deque[tuple[int, Trial]] = deque()
        """Further trials of cases that have begun; they go first."""

    @property
    def place(self) -> int | None:
        """Where the next trial stands in the run; None when there is none."""
        coming = self._again[0] if self._again else self._next
        return None if coming is None else coming[0]

    def add(self, place: int, trial: Trial) -> None:
        """Have a trial run before those that have not begun."""
        self._again.append((place, trial))

    def rest(self) -> Iterator[Trial]:
        """Take all that is left."""
        while self.place is not None:
            yield self.take()

    def take(self) -> Trial:
        """Return the next trial."""
        if self._again:
            return self._again.popleft()[1]
        assert self._next is not None, "there is a next trial when one is taken"
        (_, trial), self._next = self._next, next(self._trials, None)
        return trial


class Queue:
    """Hands out trials to all workers of a run; one that is free gets the next at once."""

    def __init__(self, lanes: Iterable[Lane], limits: Limits, is_wanted: Callable[[Trial], bool]) -> None:
        self._lanes = {lane.target: lane for lane in lanes}
        self._limits = limits
        self._is_wanted = is_wanted
        self._waiting: list[asyncio.Future[None]] = []
        self._is_stopped = False
        for lane in self._lanes.values():
            limits.of(lane.target).on_room = self._wake

    def stop(self) -> bool:
        """Hand out nothing more; returns whether anything was left."""
        self._is_stopped = True
        self._wake()
        return any(self._is_wanted(trial) for lane in self._lanes.values() for trial in lane.rest())

    def add(self, place: int, trial: Trial) -> bool:
        """Have a further trial of a case run; returns whether it will."""
        if not self._is_stopped:
            self._lanes[trial.case.target].add(place, trial)
            self._wake()
        return not self._is_stopped

    async def next(self) -> Trial | None:
        """Return the next trial; waits until there is room for one. None: there are no more."""
        while not self._is_stopped:
            coming = [lane for lane in self._lanes.values() if lane.place is not None]
            if not coming:
                if not any(lane.running for lane in self._lanes.values()):
                    return None
                # A case that runs may need further trials.
                await self._room()
                continue
            free = [lane for lane in coming if lane.running < self._limits.of(lane.target).width]
            if not free:
                await self._room()
                continue
            trial = min(free, key=lambda lane: lane.place or 0).take()
            if self._is_wanted(trial):
                return trial
        return None

    @contextmanager
    def running(self, trial: Trial) -> Iterator[None]:
        """Count a trial as under way; one that waits for a slow judge takes no place that another target brings."""
        lane = self._lanes[trial.case.target]
        lane.running += 1
        try:
            yield
        finally:
            lane.running -= 1
            self._wake()

    async def _room(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
