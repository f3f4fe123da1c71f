"""Ledger → the health of its cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from agentv_ci.analysis.health.across import by_target, other_model, outliers, redundant
from agentv_ci.analysis.health.correlation import trial_correlation
from agentv_ci.analysis.health.drifts import (
    Series,
    drifting_judge,
    drifting_provider,
    is_flakiness,
    series_of,
    shifts_of,
)
from agentv_ci.analysis.health.histories import MIN_RUNS, CaseHistory, histories
from agentv_ci.analysis.health.verdicts import Proofs, broken, dead, flaky, is_unsteady, saturated
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.command_output import HealthFinding, HealthKind, HealthReport
from agentv_ci.contracts.ledger import Ledger
from agentv_ci.contracts.proof import Proof
from agentv_ci.jsonschema.schemas import schema_id

FALSE_ALARMS = 0.01
"""Accepted probability that any change of level in a report is chance."""
KINDS: tuple[HealthKind, ...] = get_args(HealthKind)


def health_of(ledger: Ledger, proof: Proof | None = None) -> HealthReport:
    """Return what a ledger says of its cases.

    With a proof, also whether saturated ones would notice anything.
    """
    cases = histories(ledger.runs)
    times = [run.head.time for run in ledger.runs]
    return HealthReport(
        schema_=schema_id("health-v1"),
        source=ledger.source,
        runs=len(times),
        first=times[0] if times else None,
        last=times[-1] if times else None,
        cases=len(cases),
        unjudged=sum(len(case.runs) < MIN_RUNS for case in cases),
        false_alarms=FALSE_ALARMS,
        trial_correlation=trial_correlation(cases),
        findings=tuple(sorted(_findings(cases, proof), key=_rank)),
        damaged=tuple(f"{line.place}: {line.reason}" for line in ledger.damaged),
    )


def _rank(found: HealthFinding) -> int:
    return KINDS.index(found.kind)


def _findings(cases: Sequence[CaseHistory], proof: Proof | None) -> Iterator[HealthFinding]:
    proofs = None
    if proof is not None:
        proofs = {(case.suite, case.id): case for case in proof.cases}
    series = [(case, series_of(case)) for case in cases if len(case.runs) >= MIN_RUNS]
    level = FALSE_ALARMS / max(1, sum(own.tests for _, own in series))
    defects: set[CaseKey] = set()
    for case in cases:
        if (defect := broken(case)) is not None:
            defects.add(case.key)
            yield defect
    for case, own in series:
        yield from _of_case(case, own, level, proofs, is_broken=case.key in defects)
    for of_target in by_target(cases).values():
        yield from redundant(of_target)
        yield from outliers(of_target)
        if (changed := other_model(of_target)) is not None:
            yield changed


def _of_case(
    case: CaseHistory, series: Series, level: float, proofs: Proofs | None, *, is_broken: bool
) -> Iterator[HealthFinding]:
    """Yield what is wrong with a case; of changes that explain each other, the first."""
    if not is_broken and (never := dead(case)) is not None:
        yield never
    shifts = shifts_of(series, level)
    if shifts.judged is not None:
        yield drifting_judge(case, series, shifts.judged)
    if is_broken or shifts.judged is not None:
        return
    is_new = is_flakiness(series, shifts.pass_rates, level)
    if shifts.scores is not None and not is_new:
        yield drifting_provider(case, series, shifts.scores, shifts.fell_from)
        start = shifts.scores.start
        if not all(map(is_unsteady, (series.runs[:start], series.runs[start:]))):
            return
    if (unsteady := flaky(series.runs, case, shifts.pass_rates)) is not None:
        yield unsteady
    elif shifts.scores is None and (always := saturated(case, proofs)) is not None:
        yield always
