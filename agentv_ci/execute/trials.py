"""Which trials run, and which one is next.

A case runs all its trials, or with `stop_when: decided` no more than its verdict takes. Next is the first trial, in the
plan's order, whose target has room for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.plan import CaseKey, Plan, PlanCase, case_key
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.limits import Limits
from agentv_ci.results.rows import Trial, TrialKey
from agentv_ci.results.trials import Result, enough, needed


def first_trials(case: PlanCase, finished: Mapping[TrialKey, Result]) -> Sequence[int]:
    """Return the numbers of the trials that a case begins with, beside those that are finished."""
    if not finished and case.stop_when is None:
        return _numbers(case)
    known = _known(case, finished)
    if case.stop_when is None:
        return [number for number in _numbers(case) if number not in known]
    # What an earlier run left out or has no answer to is made up for first.
    gaps = [number for number in range(1, max(known, default=0)) if number not in known]
    return gaps or _next(case, known)


def trials_left(plan: Plan, finished: Mapping[TrialKey, Result]) -> int:
    """Return how many trials a run has to make at the most."""
    done = Counter(key[:2] for key in finished)
    return sum(case.trials - done[case_key(case)] for case in plan.cases if first_trials(case, finished))


class TrialSchedule:
    """Chooses the trials of each case while results come in."""

    def __init__(self, finished: Mapping[TrialKey, Result]) -> None:
        self._finished = finished
        self._known: dict[CaseKey, dict[int, Result]] = {}
        """Results of cases that stop when they are decided, while they are not."""
        self._running: dict[CaseKey, set[int]] = {}

    def begin(self, case: PlanCase) -> Sequence[int]:
        """Return the numbers of the trials that a case begins with."""
        numbers = first_trials(case, self._finished)
        if case.stop_when is not None:
            self._running[case_key(case)] = set(numbers)
            self._known[case_key(case)] = _known(case, self._finished)
        return numbers

    def next_trials(self, case: PlanCase, row: ResultRow) -> Sequence[int]:
        """Take in a row; returns the numbers of the trials that run next.

        Those that run side by side are waited for, so that the same trials run whatever the number of workers.
        """
        key = case_key(case)
        if key not in self._running:
            return ()
        self._known[key][row.trial] = Result(row.verdict, row.score)
        self._running[key].discard(row.trial)
        if self._running[key]:
            return ()
        numbers = _next(case, self._known[key])
        self._running[key] = set(numbers)
        return numbers

    def take_unneeded(self, case: PlanCase) -> int:
        """Return how many trials of a case need not run, once its verdict is decided; 0 before and after."""
        key = case_key(case)
        if key not in self._running or self._running[key]:
            return 0
        del self._running[key]
        return case.trials - len(self._known.pop(key))


class Failures:
    """Counts the trials of each case that did not pass."""

    def __init__(self) -> None:
        self._missed: Counter[CaseKey] = Counter()

    def add(self, case: PlanCase, verdict: Verdict) -> bool:
        """Take in a trial's verdict; returns whether the case cannot pass any more."""
        if verdict == "pass":
            return False
        self._missed[case_key(case)] += 1
        return self._missed[case_key(case)] > case.trials - enough(case.trials, case.require)


def _known(case: PlanCase, finished: Mapping[TrialKey, Result]) -> dict[int, Result]:
    return {number: finished[key] for number in _numbers(case) if (key := (*case_key(case), number)) in finished}


def _next(case: PlanCase, known: Mapping[int, Result]) -> Sequence[int]:
    number = needed(tuple(known.values()), case.trials, case.require)
    return [each for each in _numbers(case) if each not in known][:number]


def _numbers(case: PlanCase) -> range:
    return range(1, case.trials + 1)


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
        assert self._next is not None, "there is a next trial, or nobody takes it"
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
