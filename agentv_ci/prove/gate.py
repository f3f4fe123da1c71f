"""The decision about a proof, and its counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv_ci.analysis.statistics import apart
from agentv_ci.contracts.plan import PlanSuite
from agentv_ci.contracts.proof import CaseProof, NullAgentsGate, ProofGate, ProofSummary, kill_rate
from agentv_ci.text import counted


def gate_of(
    suites: Sequence[PlanSuite],
    proofs: Sequence[CaseProof],
    min_kill_rate: float | None,
    null_agents: NullAgentsGate | None,
) -> ProofGate:
    """Return the decision by the thresholds of the suites; given ones replace them, and are for all cases together."""
    failed = sum(each.reference == "fails" for each in proofs)
    reasons = [_failed_references(failed)] if failed else []
    reasons += _reasons(proofs, min_kill_rate, null_agents)
    for suite in suites:
        own = [each for each in proofs if each.suite == suite.path]
        least = suite.gate.min_kill_rate if min_kill_rate is None else None
        about_nulls = suite.gate.null_agents if null_agents is None else None
        reasons += (f"{suite.path}: {each}" for each in _reasons(own, least, about_nulls))
    return ProofGate(passed=not reasons, reasons=tuple(reasons))


def _failed_references(number: int) -> str:
    return counted(number, "reference answer fails its evaluators", "reference answers fail their evaluators")


def _reasons(proofs: Sequence[CaseProof], least: float | None, null_agents: NullAgentsGate | None) -> Iterator[str]:
    killed, survived = sum(each.killed for each in proofs), sum(each.survived for each in proofs)
    rate = killed / (killed + survived) if killed + survived else None
    if least is not None and rate is not None and rate < least:
        yield "kill rate {} is below {}".format(*apart(rate, least, ".{}%", least=1))
    passed = sum(bool(each.passing) for each in proofs)
    if null_agents == "forbid" and passed:
        yield f"{counted(passed, 'case')} can be passed by doing nothing"


def summary_of(proofs: Sequence[CaseProof], *, skipped: int) -> ProofSummary:
    """Return the counts over cases."""
    killed, survived = sum(each.killed for each in proofs), sum(each.survived for each in proofs)
    return ProofSummary(
        cases=len(proofs),
        skipped=skipped,
        unproven=sum(not each.proven for each in proofs),
        without_reference=sum(each.reference == "none" for each in proofs),
        passed_by_null_agents=sum(bool(each.passing) for each in proofs),
        references_failed=sum(each.reference == "fails" for each in proofs),
        mutants=sum(each.mutants for each in proofs),
        killed=killed,
        survived=survived,
        kill_rate=kill_rate(killed, survived),
        judged_evaluators=sum(one.state == "judged" for each in proofs for one in each.evaluators),
    )
