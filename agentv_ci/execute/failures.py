"""Whether a case can still pass, while its trials come in."""

from __future__ import annotations

from collections import Counter

from agentv_ci.contracts.exchange import Verdict
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.results.trials import enough


class Failures:
    """Counts trials of cases that are not decided yet."""

    def __init__(self) -> None:
        self._missed: Counter[tuple[str, str]] = Counter()

    def add(self, case: PlanCase, verdict: Verdict) -> bool:
        """Take in a trial's verdict; returns whether the case cannot pass any more."""
        if verdict == "pass":
            return False
        self._missed[case.suite, case.id] += 1
        return self._missed[case.suite, case.id] > _may_miss(case)


def _may_miss(case: PlanCase) -> int:
    """Return how many trials of a case may do something else than pass."""
    return case.trials - enough(case.trials, case.require)
