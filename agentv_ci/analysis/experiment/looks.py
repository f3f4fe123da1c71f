"""Looks at an experiment while it runs: each when the next trials are complete in all arms.

Trials run in rounds, and the cases of a round in the order of the plan. What a look shows depends
on the plan and the rows alone: neither on the order in which trials end nor on the number of
workers. Later trials do not count at a look; those after the last look are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from agentv_ci.analysis.experiment.plan import ComparedCase, ExperimentPlan
from agentv_ci.analysis.experiment.stopping import Stop
from agentv_ci.analysis.experiment.trials import CaseName, ExperimentTrials

Counted = Mapping[CaseName, int]
"""Case → how many of its trials count, the first ones."""
TakeLook = Callable[[Counted], Stop | None]
"""Take a look at these trials, and return why the experiment may stop; None: it goes on."""
LOOKS_A_ROUND = 5
"""How often there is a look by default, as in the simulations of docs/experiments.md."""


class Looks:
    """Takes looks as trials become complete, until one ends the experiment."""

    def __init__(self, plan: ExperimentPlan, trials: ExperimentTrials, look: TakeLook) -> None:
        self._arms = [arm.name for arm in plan.document.arms]
        self._trials = trials
        self._look = look
        self._coming = [*in_rounds(plan.cases)]
        self._ends = look_ends(plan)
        self._complete = 0
        """How many of the coming trials are complete."""
        self.counted: Counted = {}
        """The trials of the last look."""
        self.stopped: Stop | None = None
        """Why the last look ended the experiment."""

    def take(self) -> None:
        """Take the looks that the trials so far allow."""
        while self._ends and self.stopped is None and self._is_complete_up_to(self._ends[0]):
            self.counted = {case.name: number for case, number in self._coming[: self._ends.pop(0)]}
            self.stopped = self._look(self.counted)

    def _is_complete_up_to(self, end: int) -> bool:
        while self._complete < end:
            case, number = self._coming[self._complete]
            if not self._trials.has(case.name, number, self._arms):
                return False
            self._complete += 1
        return True


def in_rounds(cases: Sequence[ComparedCase]) -> Iterator[tuple[ComparedCase, int]]:
    """Yield the trials of cases in the order in which they run."""
    for number in range(1, max((case.trials for case in cases), default=0) + 1):
        for case in cases:
            if number <= case.trials:
                yield case, number


def look_ends(plan: ExperimentPlan) -> list[int]:
    """Return the numbers of trials after which there is a look.

    Looks are at whole clusters, and the last one is at all trials.
    """
    every = _look_every(plan)
    coming = [*in_rounds(plan.cases)]
    ends, last = list[int](), 0
    for end in range(1, len(coming) + 1):
        is_whole = end == len(coming) or coming[end][0].cluster != coming[end - 1][0].cluster
        if is_whole and (end - last >= every or end == len(coming)):
            ends.append(last := end)
    return ends


def _look_every(plan: ExperimentPlan) -> int:
    """Return how many trials there are at least from one look to the next."""
    rule = plan.document.stop
    if rule is not None and rule.look_every:
        return rule.look_every
    return -(-len(plan.cases) // LOOKS_A_ROUND) or 1
