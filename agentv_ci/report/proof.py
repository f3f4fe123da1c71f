"""What reports show of a proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentv_ci.report.lines import Line
from agentv_ci.text import counted

if TYPE_CHECKING:
    # Few runs have a proof.
    from agentv_ci.contracts.proof import Proof, ProofFinding, ProofSummary

OF_ANOTHER_PLAN = "It is the proof of another plan: prove the same cases, targets and settings again."
SHOWN = ("error", "warning")
"""Severities of the findings that reports of a run show."""


def verdict_text(proof: Proof) -> str:
    """Return whether the proof is good enough."""
    return "passed" if proof.gate.passed else "not passed"


def nulls_text(proof: Proof) -> str:
    """Return how many cases null agents pass."""
    total = proof.summary
    return f"{total.passed_by_null_agents} of {counted(total.cases, 'case')} can be passed by doing nothing"


def mutants_text(total: ProofSummary) -> str:
    """Return the kill rate, and the counts behind it."""
    if total.kill_rate is None:
        return f"no kill rate: of {counted(total.mutants, 'mutant')}, none could be judged"
    undecided = total.mutants - total.killed - total.survived
    others = f", {undecided} undecided" if undecided else ""
    killed = f"{total.killed} of {counted(total.mutants, 'mutant')} killed, {total.survived} survived{others}"
    return f"kill rate {rate_text(total.kill_rate)}: {killed}"


def rate_text(rate: float | None) -> str:
    """Return a kill rate, rounded down."""
    return "–" if rate is None else f"{int(rate * 1000) / 10:g}%"


def summary_lines(proof: Proof) -> Iterator[Line]:
    """Yield the counts of a proof."""
    total = proof.summary
    judged = "which are left out" if proof.judges == "skip" else "and some answers are not judged"
    if total.cases:
        yield Line(nulls_text(proof), "warn" if total.passed_by_null_agents else "good")
        yield Line(mutants_text(total), "warn" if total.survived else "good")
    for number, one, several in (
        (total.without_reference, "case has no reference answer to damage", "cases have no reference answer to damage"),
        (total.judged_evaluators, f"evaluator needs judges, {judged}", f"evaluators need judges, {judged}"),
        (total.unproven, "case is not proven", "cases are not proven"),
        (total.skipped, "case is skipped", "cases are skipped"),
    ):
        if number:
            yield Line(counted(number, one, several))


def shown_findings(proof: Proof) -> Sequence[ProofFinding]:
    """Return the findings that authors should fix, the worst first."""
    found = (each for each in proof.findings if each.severity in SHOWN)
    return sorted(found, key=lambda each: SHOWN.index(each.severity))


def is_of(proof: Proof, plan_digest: str | None) -> bool:
    """Whether a proof is of a plan; if the plan is not known, it may be."""
    return plan_digest in (None, proof.plan_digest)
