"""Judges of answers that are not from a target."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import chain

from msgspec.structs import replace

from agentv_ci.contracts.exchange import Ask, JudgeQuestion, ProviderError, Response
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase, suites_by_path
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.prompt import judge_request
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.results.rows import Trial


class ProofJudges:
    """Asks the judges of a plan, within the budget, or replays what they said."""

    def __init__(
        self, plan: Plan, targets: Mapping[str, Target], options: RunOptions, services: RunServices
    ) -> None:
        """`targets` are the plan's, resolved."""
        self._plan = plan
        self._options = options
        self._suites = suites_by_path(plan)
        tried = (case for case in heads_of(plan) if case.skip is None)
        asked = sorted(set(chain.from_iterable(case.judges for case in tried)))
        self._asked = asked
        self._limits = Limits(options.workers, targets, asked, services.environment, services.log)
        self._budget = Budget(options.max_cost_usd, self._suites, 1, services.warn)
        self._targets = OpenTargets(
            plan,
            targets,
            options,
            services,
            limits=self._limits,
            budget=self._budget,
            progress=Progress(0),
        )

    async def open(self, stack: AsyncExitStack) -> None:
        """Get ready to ask; raises TargetUnavailable when a judge cannot be asked at all."""
        stack.push_async_callback(self._limits.close)
        for key in self._asked:
            await self._targets.open(key, stack)

    def of(self, case: PlanCase) -> Ask:
        """Return how the judges of a case are asked.

        A question beyond the budget raises ProviderError.
        """
        trial = self._trial(case)
        cwd = (self._options.root / case.suite).parent

        async def ask(target: str, question: JudgeQuestion) -> Response:
            if self._budget.is_exhausted(case.suite):
                raise ProviderError("request", "the budget is used up", requests=0)
            response = await self._targets.ask(
                target, judge_request(question, case, cwd=cwd), trial
            )
            if response.cached:
                return replace(response, cost_usd=0.0)
            return response

        return ask

    def forget(self, case: PlanCase) -> None:
        """Discard what is kept only while a case is proven."""
        self._targets.forget(self._trial(case))

    def _trial(self, case: PlanCase) -> Trial:
        return Trial(
            case,
            self._suites[case.suite],
            self._plan.targets[case.target],
            1,
            seed=None,
            dry_run=False,
        )
