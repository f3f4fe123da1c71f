"""Which trials of a case run: all, or with `stop_when: decided` no more than its verdict takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.plan import CaseKey, Plan, PlanCase, case_key, seed_of, targets_of
from agentv_ci.contracts.report import Stop
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.queue import Lane, Queue
from agentv_ci.execute.run import RunOptions
from agentv_ci.results.resume import FinishedTrials
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


def still_asked(plan: Plan, finished: Mapping[TrialKey, Result]) -> AbstractSet[str]:
    """Return the keys of the targets that are asked anything yet."""
    left = (case for case in plan.cases if first_trials(case, finished))
    return {key for case in left for key in targets_of(case)}


class RunTrials:
    """The trials of a run: hands them out, and takes in what they come to."""

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        options: RunOptions,
        finished: FinishedTrials,
        *,
        limits: Limits,
        budget: Budget,
    ) -> None:
        self.stopped: Stop | None = None
        """Why there is more in the plan than has run."""
        self.number = trials_left(plan, finished.results)
        self.asked = still_asked(plan, finished.results)
        """Keys of the targets that are asked anything yet."""
        self._plan = plan
        self._targets = targets
        self._options = options
        self._finished = finished.results
        self._budget = budget
        self._suites = {suite.path: suite for suite in plan.suites}
        self._cases = {case_key(case): case for case in plan.cases}
        self._places = {key: place for place, key in enumerate(self._cases)}
        self._schedule = TrialSchedule(finished.results)
        self._failures = Failures()
        self._queue = Queue(self._lanes(), limits, self._is_wanted)
        self.next = self._queue.next
        self.running = self._queue.running

    def _lanes(self) -> Iterator[Lane]:
        own: dict[str, list[PlanCase]] = {}
        for case in self._plan.cases:
            own.setdefault(case.target, []).append(case)
        for target, cases in own.items():
            yield Lane(target, (placed for case in cases for placed in self._begin(case)))

    def _begin(self, case: PlanCase) -> Iterator[tuple[int, Trial]]:
        place = self._places[case_key(case)]
        return ((place, self._trial(case, number)) for number in self._schedule.begin(case))

    def _trial(self, case: PlanCase, number: int) -> Trial:
        return Trial(
            case=case,
            suite=self._suites[case.suite],
            target=self._targets[case.target],
            number=number,
            seed=seed_of(case, number),
            dry_run=self._options.dry_run,
        )

    def of_row(self, row: ResultRow) -> Trial:
        """Return the trial that a stored answer is of."""
        return replace(self._trial(self._cases[row.suite, row.eval_id], row.trial), seed=row.seed)

    def first(self, target: str) -> Iterator[Trial]:
        """Yield the trials that the cases of a target begin with."""
        for case in self._plan.cases:
            if case.target == target:
                yield from (self._trial(case, number) for number in first_trials(case, self._finished))

    def finish(self, trial: Trial, row: ResultRow) -> int:
        """Take in a trial's row; returns how many further trials of its case need not run.

        While the verdict of the case is open, others of its trials follow.
        """
        case = trial.case
        for number in self._schedule.next_trials(case, row):
            if not self._queue.add(self._places[case_key(case)], self._trial(case, number)):
                self.stopped = self.stopped or "fail-fast"
        if self._options.fail_fast and self._failures.add(case, row.verdict):
            self._stop()
        return self._schedule.take_unneeded(case)

    def stop_if_failed(self) -> None:
        """With --fail-fast, begin nothing when a case of an earlier run cannot pass any more."""
        if self._options.fail_fast:
            failed = [
                self._failures.add(self._cases[key[:2]], result.verdict) for key, result in self._finished.items()
            ]
            if any(failed):
                self._stop()

    def _stop(self) -> None:
        if self._queue.stop():
            self.stopped = self.stopped or "fail-fast"

    def _is_wanted(self, trial: Trial) -> bool:
        """Whether a trial whose turn it is runs; a suite without money left does not hold up the others."""
        if self._budget.is_exhausted(trial.case.suite):
            self.stopped = "budget"
            return False
        return True


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
