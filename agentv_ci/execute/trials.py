"""Which trial runs next.

A case gets all of its trials, or with `stop_when: decided` only as many as its verdict needs.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain, filterfalse

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.contracts.cases import CaseHead, CaseKey
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase, seed_of, suites_by_path, targets_of
from agentv_ci.contracts.report import Stop, quarantine_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.results.caps import NOTHING_USED, is_capped
from agentv_ci.results.resume import EarlierRun
from agentv_ci.results.rows import Trial, TrialKey
from agentv_ci.results.trials import Result, enough, needed


def first_trials(plan: Plan, case: CaseHead, finished: Mapping[TrialKey, Result]) -> Sequence[int]:
    """Return the numbers of the trials that a case begins with, except those that are finished."""
    known = _known(plan, case, finished)
    if case.skip is not None:
        return ()
    if case.stop_when is None:
        return _without(case, known)
    # Trials that an earlier run skipped or could not answer come first.
    gaps = list(filterfalse(known.__contains__, range(1, max(known, default=0))))
    return gaps or _next(case, known)


def trials_left(plan: Plan, case: CaseHead, finished: Mapping[TrialKey, Result]) -> int:
    """Return how many trials of a case may still run."""
    if first_trials(plan, case, finished):
        return case.trials - len(_known(plan, case, finished))
    return 0


def still_asked(plan: Plan, finished: Mapping[TrialKey, Result]) -> AbstractSet[str]:
    """Return the keys of the targets that are still to be asked."""
    left = (case for case in heads_of(plan) if first_trials(plan, case, finished))
    return set(chain.from_iterable(map(targets_of, left)))


def can_pass(case: CaseHead, missed: int) -> bool:
    """Whether a case can still pass after this many of its trials did not."""
    return missed <= case.trials - enough(case.trials, case.require)


class _UndecidedCase(Struct):
    """A case with `stop_when: decided` that is not decided yet."""

    place: int
    """Its index in the plan."""
    known: dict[int, Result]
    """Finished trials, by number."""
    under_way: int
    """Trials that are running or about to."""


class TrialSchedule:
    """Hands out the trials of a run to workers, and takes in their results.

    The next trial is the first one in the plan's order whose target has room for it. The trials of
    an experiment run in rounds: the first ones of all cases, then the second ones, so that a look
    may follow any number of them.
    """

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        options: RunOptions,
        finished: EarlierRun,
        limits: Limits,
        budget: Budget,
    ) -> None:
        self.number = 0
        """How many trials the run may need."""
        self.stopped: Stop | None = None
        """Why parts of the plan did not run."""
        self._plan = plan
        self._targets = targets
        self._options = options
        self._limits = limits
        self._budget = budget
        self._suites = suites_by_path(plan)
        self._heads = heads_of(plan)
        self._finished = finished.results
        self._earlier_expenses = finished.expenses
        self._coming: dict[str, deque[int]] = {case.target: deque() for case in self._heads}
        """By target, the places of the cases that are not in `_waiting` yet."""
        self._waiting: dict[str, list[tuple[int, int, int, Iterator[int]]]] = {
            target: [] for target in self._coming
        }
        """By target, a heap of cases with trials to begin: round, place in the plan, next trial
        number, others.
        """
        self._held: dict[CaseKey, tuple[int, str, int, Iterator[int]]] = {}
        """Cases with caps whose next trial waits for the last one: place, target, its number,
        others.
        """
        self._used = dict(finished.used)
        """What cases with caps have used."""
        self._has_rounds = any(case.arm is not None for case in self._heads)
        self._under_way: Counter[str] = Counter()
        """By target, trials being asked or judged."""
        self._undecided: dict[CaseKey, _UndecidedCase] = {}
        self._missed: Counter[CaseKey] = Counter()
        """Trials that did not pass, if there are any."""
        self._is_stopped = False
        self._reason: Stop = "fail-fast"
        self._room = asyncio.Event()
        for place, case in enumerate(self._heads):
            self._add(place, case)
        for target, coming in self._coming.items():
            for _ in range(len(coming) if self._has_rounds else 1):
                self._wait_for_next(target)
            limits.of(target).on_room = self._room.set

    @cached_property
    def _places(self) -> Mapping[CaseKey, int]:
        return {self._plan.key_of(case): place for place, case in enumerate(self._heads)}

    def _add(self, place: int, case: CaseHead) -> None:
        known, numbers = (
            _known(self._plan, case, self._finished),
            first_trials(self._plan, case, self._finished),
        )
        if missed := sum(result.verdict != "pass" for result in known.values()):
            self._missed[self._plan.key_of(case)] = missed
        if numbers:
            self.number += trials_left(self._plan, case, self._finished)
            self._coming[case.target].append(place)
        if numbers and case.stop_when is not None:
            self._undecided[self._plan.key_of(case)] = _UndecidedCase(place, known, len(numbers))

    def _wait_for_next(self, target: str) -> None:
        """Add the next case of a target to those that wait."""
        if coming := self._coming[target]:
            place = coming.popleft()
            self._begin(place, target, first_trials(self._plan, self._heads[place], self._finished))

    def _begin(self, place: int, target: str, numbers: Sequence[int]) -> None:
        others = iter(numbers)
        self._wait(place, target, next(others), others)

    def _wait(self, place: int, target: str, number: int, others: Iterator[int]) -> None:
        heappush(self._waiting[target], (number if self._has_rounds else 0, place, number, others))

    def first(self, target: str) -> Iterator[Trial]:
        """Yield the trials that the cases of a target begin with, as far as the budget allows."""
        for place, case in enumerate(self._heads):
            if (
                case.target == target
                and not self._is_stopped
                and not self._budget.is_exhausted(case.suite)
            ):
                for number in first_trials(self._plan, case, self._finished):
                    yield self._trial(place, number)

    def skipped(self) -> Iterator[Trial]:
        """Yield the first trial of every case that is not run and has no row yet."""
        for place, case in enumerate(self._heads):
            if case.skip is not None and (self._plan.key_of(case), 1) not in self._finished:
                yield self._trial(place, 1)

    def of_row(self, row: ResultRow) -> Trial:
        """Return the trial of a stored answer."""
        return replace(self._trial(self._places[row.case_key], row.trial), seed=row.seed)

    def _trial(self, place: int, number: int) -> Trial:
        case = self._plan.cases[place]
        suite, target = self._suites[case.suite], self._targets[case.target]
        earlier = self._earlier_expenses.get((self._plan.key_of(self._heads[place]), number), ())
        seed, used = seed_of(case, number), self._used.get(self._plan.key_of(case), NOTHING_USED)
        return Trial(case, suite, target, number, seed, self._options.dry_run, used, earlier)

    async def next(self) -> Trial | None:
        """Return the next trial, once there is room for it; None when there are no more."""
        # A running case may need further trials.
        while not self._is_stopped and (any(self._waiting.values()) or self._under_way.total()):
            free = self._with_room()
            if not free:
                self._room.clear()
                await self._room.wait()
                continue
            _, place, number, others = min(free)
            case = self._heads[place]
            heappop(self._waiting[case.target])
            if not self._waiting[case.target]:
                self._wait_for_next(case.target)
            if self._is_affordable(case):
                trial = self._trial(place, number)
                self._wait_after(trial, place, others)
                self._under_way[case.target] += 1
                return trial
        return None

    def _with_room(self) -> list[tuple[int, int, int, Iterator[int]]]:
        """Return the first trial of each target that has room for one."""
        return [
            trials[0]
            for target, trials in self._waiting.items()
            if trials and self._under_way[target] < self._limits.of(target).width
        ]

    def _wait_after(self, trial: Trial, place: int, others: Iterator[int]) -> None:
        """Let the next trial of a case wait: with caps, until the one that runs has ended."""
        following = next(others, None)
        if following is None:
            return
        if is_capped(trial.case):
            self._held[trial.key[0]] = place, trial.case.target, following, others
        else:
            self._wait(place, trial.case.target, following, others)

    def _is_affordable(self, case: CaseHead) -> bool:
        """Whether the budget allows a case.

        A suite whose budget is used up does not hold up the others.
        """
        if self._budget.is_exhausted(case.suite):
            self.stopped = "budget"
            return False
        return True

    def finish(self, trial: Trial, row: ResultRow) -> int:
        """Take in a trial's row; returns how many further trials of its case are not needed."""
        case, (key, _) = trial.case, trial.key
        # A trial that waits for a slow judge takes no worker from another target.
        self._under_way[case.target] -= 1
        self._room.set()
        if is_capped(case):
            self._used[key] = self._used.get(key, NOTHING_USED).plus_row(row)
        if (held := self._held.pop(key, None)) is not None and not self._is_stopped:
            self._wait(*held)
        unneeded = self._decide(case, key, row) if key in self._undecided else 0
        if row.verdict != "pass":
            self._missed[key] += 1
            if self._options.fail_fast and self._has_failed(case, key):
                self.stop("fail-fast")
        return unneeded

    def _decide(self, case: PlanCase, key: CaseKey, row: ResultRow) -> int:
        """Schedule more trials of an undecided case; returns how many a decided one does not need.

        Waits for trials that are running, so that the number of workers does not change which
        trials run.
        """
        state = self._undecided[key]
        state.known[row.trial] = Result(row.verdict, row.score or 0.0, row.is_crash)
        state.under_way -= 1
        if state.under_way:
            return 0
        numbers = _next(case, state.known)
        state.under_way = len(numbers)
        if not numbers:
            del self._undecided[key]
            return case.trials - len(state.known)
        if self._is_stopped:
            self.stopped = self.stopped or self._reason
        else:
            self._begin(state.place, case.target, numbers)
        return 0

    def stop_if_failed(self) -> None:
        """With --fail-fast, begin nothing when a case of an earlier run can no longer pass."""
        if self._options.fail_fast and any(
            self._has_failed(case, self._plan.key_of(case)) for case in self._heads
        ):
            self.stop("fail-fast")

    def _has_failed(self, case: CaseHead, key: CaseKey) -> bool:
        """Whether a case that gates can no longer pass."""
        return (
            not can_pass(case, self._missed[key])
            and quarantine_of(self._options.quarantine, key) is None
        )

    def stop(self, reason: Stop) -> None:
        """Hand out nothing more."""
        waiting = (place for _, place, *_ in chain.from_iterable(self._waiting.values()))
        held = (place for place, *_ in self._held.values())
        if any(
            self._is_affordable(self._heads[place])
            for place in chain(waiting, held, *self._coming.values())
        ):
            self.stopped = self.stopped or reason
        self._reason = reason
        self._is_stopped = True
        for target, trials in self._waiting.items():
            trials.clear()
            self._coming[target].clear()
        self._room.set()


def _known(plan: Plan, case: CaseHead, finished: Mapping[TrialKey, Result]) -> dict[int, Result]:
    numbers = range(1, case.trials + 1) if finished else ()
    return {
        number: finished[key]
        for number in numbers
        if (key := (plan.key_of(case), number)) in finished
    }


def _next(case: CaseHead, known: Mapping[int, Result]) -> Sequence[int]:
    return _without(case, known)[: needed(tuple(known.values()), case.trials, case.require)]


def _without(case: CaseHead, known: Mapping[int, Result]) -> Sequence[int]:
    numbers = range(1, case.trials + 1)
    if known:
        return list(filterfalse(known.__contains__, numbers))
    return numbers
