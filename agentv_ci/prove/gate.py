"""The decision about a proof, and its counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from agentv_ci.analysis.cases.counts import apart
from agentv_ci.base.mappings import grouped
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
    reasons = [*_failed_references(total), *_reasons(total, min_kill_rate, null_agents)]
    of_suites = grouped(proofs, lambda proof: proof.suite)
    for suite in suites:
        least = suite.gate.min_kill_rate if min_kill_rate is None else None
        about_nulls = suite.gate.null_agents if null_agents is None else None
        own = summary_of(of_suites.get(suite.path, ()))
        reasons += (f"{suite.path}: {reason}" for reason in _reasons(own, least, about_nulls))
    return ProofGate(passed=not reasons, reasons=tuple(reasons))


def _failed_references(total: ProofSummary) -> Iterator[str]:
    if number := total.references_failed:
        one, several = "answer fails its evaluators", "answers fail their evaluators"
        yield counted(number, f"reference {one}", f"reference {several}")


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
    references: Counter[str] = Counter()
    without_mutants = mutants = killed = survived = unproven = passing = 0
    for proof in proofs:
        references[proof.reference] += 1
        without_mutants += proof.reference in ("passes", "undecided") and not proof.mutants
        mutants += proof.mutants
        killed += proof.killed
        survived += proof.survived
        unproven += not proof.proven
        passing += bool(proof.passing)
    judgements = _judgements(proofs)
    if judges == "skip":
        judgements = judgements._replace(missing=0, error=None)
    return ProofSummary(
        cases=len(proofs),
        skipped=skipped,
        unproven=unproven,
        without_reference=references["none"],
        without_mutants=without_mutants,
        passed_by_null_agents=passing,
        references_failed=references["fails"],
        mutants=mutants,
        killed=killed,
        survived=survived,
        kill_rate=kill_rate(killed, survived),
        unjudged_evaluators=judgements.evaluators_without,
        judgements=judgements.given,
        failed_judgements=judgements.missing,
        judge_error=judgements.error,
    )


class _Judgements(NamedTuple):
    """What judges say of all answers."""

    given: int
    missing: int
    evaluators_without: int
    """Evaluators of which at least one judgement is missing."""
    error: str | None
    """Why the first one is missing, if that is known."""


def _judgements(proofs: Sequence[CaseProof]) -> _Judgements:
    given = missing = evaluators_without = 0
    error: str | None = None
    for evaluator in chain.from_iterable(proof.evaluators for proof in proofs):
        given += evaluator.judged
        if evaluator.unjudged:
            missing += evaluator.unjudged
            evaluators_without += 1
            error = error or evaluator.reason or None
    return _Judgements(given, missing, evaluators_without, error)
