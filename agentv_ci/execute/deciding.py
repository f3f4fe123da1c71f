"""Which trials of a case run next: all, or with `stop_when: decided` no more than its verdict takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from agentv_ci.contracts.plan import CaseKey, Plan, PlanCase, case_key
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.rows import TrialKey
from agentv_ci.results.trials import Result, needed


def first_trials(case: PlanCase, finished: Mapping[TrialKey, Result]) -> Sequence[int]:
    """Return the numbers of the trials that a case begins with, beside those that are finished."""
    if not finished and case.stop_when is None:
        return _numbers(case)
    known = {number: finished[key] for number in _numbers(case) if (key := (*case_key(case), number)) in finished}
    if case.stop_when is None:
        return [number for number in _numbers(case) if number not in known]
    # What an earlier run left out or has no answer to is made up for first.
    gaps = [number for number in range(1, max(known, default=0)) if number not in known]
    return gaps or _next(case, known)


def trials_left(plan: Plan, finished: Mapping[TrialKey, Result]) -> int:
    """Return how many trials a run has to make at the most."""
    done = Counter(key[:2] for key in finished)
    return sum(case.trials - done[case_key(case)] for case in plan.cases if first_trials(case, finished))


class Deciding:
    """Keeps what trials came to while the verdict of their case is open; only of cases that stop when it is not."""

    def __init__(self, finished: Mapping[TrialKey, Result], leave_out: Callable[[int], None]) -> None:
        """`leave_out` is told how many trials of a case need not run."""
        self._finished = finished
        self._leave_out = leave_out
        self._known: dict[CaseKey, dict[int, Result]] = {}
        self._running: dict[CaseKey, set[int]] = {}

    def begin(self, case: PlanCase) -> Sequence[int]:
        """Return the numbers of the trials that a case begins with."""
        numbers = first_trials(case, self._finished)
        if case.stop_when is not None:
            key = case_key(case)
            self._running[key] = set(numbers)
            self._known[key] = {
                number: self._finished[*key, number] for number in _numbers(case) if (*key, number) in self._finished
            }
        return numbers

    def go_on(self, case: PlanCase, row: ResultRow) -> Sequence[int]:
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
        if not numbers:
            self._leave_out(case.trials - len(self._known[key]))
            del self._running[key], self._known[key]
        return numbers


def _next(case: PlanCase, known: Mapping[int, Result]) -> Sequence[int]:
    number = needed(tuple(known.values()), case.trials, case.require)
    return [each for each in _numbers(case) if each not in known][:number]


def _numbers(case: PlanCase) -> range:
    return range(1, case.trials + 1)
