"""The command line's word over a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentv_ci.compile.document import resealed
from agentv_ci.contracts.plan import Plan, PlanCase, PlanGate, PlanSuite


@dataclass(frozen=True, slots=True)
class Overrides:
    """What flags say; None leaves the plan's own."""

    repeat: int | None = None
    """As many trials of each case, all of them."""
    seed: int | None = None
    """The n-th trial uses `seed + n - 1`."""
    threshold: float | None = None
    timeout_s: float | None = None
    max_retries: int | None = None
    min_pass_rate: float | None = None
    min_mean_score: float | None = None
    max_errors: int | None = None


def override(plan: Plan, flags: Overrides) -> Plan:
    """Return the plan as the flags want it, with the digests that go with it."""
    if flags == Overrides():
        return plan
    cases = tuple(_case(case, flags) for case in plan.cases)
    suites = tuple(_suite(suite, flags) for suite in plan.suites)
    return resealed(plan.model_copy(update={"cases": cases, "suites": suites}))


def with_trials(plan: Plan, trials: Mapping[tuple[str, str], int]) -> Plan:
    """Return the plan with as many trials as are said: suite and id of a case → number."""
    cases = tuple(case.model_copy(update={"trials": trials[case.suite, case.id]}) for case in plan.cases)
    return resealed(plan.model_copy(update={"cases": cases}))


def _case(case: PlanCase, flags: Overrides) -> PlanCase:
    trials = flags.repeat or case.trials
    seeds = case.seeds if flags.seed is None else tuple(range(flags.seed, flags.seed + trials))
    changed: PlanCase = case.model_copy(
        update={
            "trials": max(trials, len(seeds)) if flags.repeat is None else trials,
            "seeds": seeds,
            "stop_when": case.stop_when if flags.repeat is None else None,
            "threshold": case.threshold if flags.threshold is None else flags.threshold,
            "timeout_seconds": flags.timeout_s or case.timeout_seconds,
            "max_retries": case.max_retries if flags.max_retries is None else flags.max_retries,
        }
    )
    return changed


def _suite(suite: PlanSuite, flags: Overrides) -> PlanSuite:
    given = {
        "min_pass_rate": flags.min_pass_rate,
        "min_mean_score": flags.min_mean_score,
        "max_errors": flags.max_errors,
    }
    gate: PlanGate = suite.gate.model_copy(update={name: value for name, value in given.items() if value is not None})
    return suite.model_copy(update={"gate": gate})
