"""The decision about a proof, and its counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv_ci.analysis.cases.counts import apart
from agentv_ci.base.text import counted
from agentv_ci.contracts.gate import NullAgentsGate
from agentv_ci.contracts.plan import PlanSuite
from agentv_ci.contracts.proof import CaseProof, Judges, ProofGate, ProofSummary, kill_rate


def gate_of(
    suites: Sequence[PlanSuite],
    proofs: Sequence[CaseProof],
    min_kill_rate: float | None,
    null_agents: NullAgentsGate | None,
) -> ProofGate:
    """Return the decision by the thresholds of the suites.

    Given ones replace them, and are for all cases together.
    """
    total = summary_of(proofs)
    reasons = [_failed_references(total.references_failed)] if total.references_failed else []
    reasons += _reasons(total, min_kill_rate, null_agents)
    of_suites: dict[str, list[CaseProof]] = {}
    for each in proofs:
        of_suites.setdefault(each.suite, []).append(each)
    for suite in suites:
        least = suite.gate.min_kill_rate if min_kill_rate is None else None
        about_nulls = suite.gate.null_agents if null_agents is None else None
        own = summary_of(of_suites.get(suite.path, ()))
        reasons += (f"{suite.path}: {each}" for each in _reasons(own, least, about_nulls))
    return ProofGate(passed=not reasons, reasons=tuple(reasons))


def _failed_references(number: int) -> str:
    return counted(
        number, "reference answer fails its evaluators", "reference answers fail their evaluators"
    )


def _reasons(
    total: ProofSummary, least: float | None, null_agents: NullAgentsGate | None
) -> Iterator[str]:
    if (
        least is not None
        and total.kill_rate is not None
        and total.killed / (total.killed + total.survived) < least
    ):
        yield "kill rate {} is below {}".format(*apart(total.kill_rate, least, ".{}%", least=1))
    if null_agents == "forbid" and total.passed_by_null_agents:
        yield total.passed_text


def summary_of(
    proofs: Sequence[CaseProof], *, skipped: int = 0, judges: Judges = "skip"
) -> ProofSummary:
    """Return the counts over cases."""
    killed, survived = sum(each.killed for each in proofs), sum(each.survived for each in proofs)
    judged = [one for each in proofs for one in each.evaluators if one.judged or one.unjudged]
    failed = [] if judges == "skip" else [each for each in judged if each.unjudged]
    return ProofSummary(
        cases=len(proofs),
        skipped=skipped,
        unproven=sum(not each.proven for each in proofs),
        without_reference=sum(each.reference == "none" for each in proofs),
        without_mutants=sum(
            each.reference in ("passes", "undecided") and not each.mutants for each in proofs
        ),
        passed_by_null_agents=sum(bool(each.passing) for each in proofs),
        references_failed=sum(each.reference == "fails" for each in proofs),
        mutants=sum(each.mutants for each in proofs),
        killed=killed,
        survived=survived,
        kill_rate=kill_rate(killed, survived),
        unjudged_evaluators=sum(bool(each.unjudged) for each in judged),
        judgements=sum(each.judged for each in judged),
        failed_judgements=sum(each.unjudged for each in failed),
        judge_error=next((each.reason for each in failed if each.reason), None),
    )
