"""What a case may use at most, across its trials and attempts."""

from __future__ import annotations

from msgspec import Struct

from agentv_ci.base.text import dollars
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.expenses import earlier_cost


class Used(Struct, frozen=True):
    """What the trials of a case have used so far."""

    cost_usd: float = 0.0
    """Known cost, with that of judges."""
    requests: int = 0
    """Requests to the target that answers, including retries."""

    def plus(self, cost_usd: float | None, requests: int) -> Used:
        """Return the sum with more."""
        return Used(self.cost_usd + (cost_usd or 0.0), self.requests + requests)

    def plus_row(self, row: ResultRow) -> Used:
        """Return the sum with a trial; what earlier runs have used for it is counted already."""
        known_usd = (row.cost_usd or 0.0) + (row.judge_cost_usd or 0.0)
        return self.plus(known_usd - earlier_cost(row), row.requests)


NOTHING_USED = Used()


def is_capped(case: PlanCase) -> bool:
    """Whether a case has a cap."""
    return case.max_cost_usd is not None or case.max_requests is not None


def reached(case: PlanCase, used: Used) -> str | None:
    """Return which cap of a case is reached; None if it may go on."""
    if case.max_cost_usd is not None and used.cost_usd >= case.max_cost_usd:
        return (
            f"the case has cost {dollars(used.cost_usd)}, "
            f"and its max_cost_usd is {case.max_cost_usd:g}"
        )
    if case.max_requests is not None and used.requests >= case.max_requests:
        return f"the case has made {used.requests} of its max_requests of {case.max_requests}"
    return None


def not_started(case: PlanCase, used: Used) -> ProviderError | None:
    """Return why a trial does not start; None if it may."""
    cap = reached(case, used)
    if cap is None:
        return None
    return ProviderError("cancelled", f"not started: {cap}", requests=0)
