"""Which trials of a case run: all, or with `stop_when: decided` no more than its verdict takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.plan import CaseKey, Plan, PlanCase, case_key
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.rows import TrialKey
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
