"""What reports show of a proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentv_ci.base.text import counted
from agentv_ci.report.lines import Line, Style

if TYPE_CHECKING:
    # Few runs have a proof.
    from agentv_ci.contracts.proof import Proof, ProofFinding, ProofSummary

OF_ANOTHER_PLAN = (
    "It is the proof of another plan: prove the same cases, targets and settings again."
)
SHOWN = ("error", "warning")
"""Severities of the findings that reports of a run show."""


def verdict_text(proof: Proof) -> str:
    """Return whether the proof is good enough."""
    if proof.gate.passed:
        return "passed"
    return "not passed"


def headline(proof: Proof) -> Line:
    """Return how many cases null agents pass."""
    total = proof.summary
    if not total.cases:
        return Line("no case to prove", "plain")
    return Line(total.passed_text, "warn" if total.passed_by_null_agents else "good")


def mutants_text(total: ProofSummary) -> str:
    """Return the kill rate, and the counts behind it."""
    if not total.mutants:
        return "no mutants: nothing in the reference answers could be damaged"
    undecided = total.mutants - total.killed - total.survived
    if total.kill_rate is None:
        return f"no kill rate: {counted(undecided, 'mutant')} undecided"
    others = f", {undecided} undecided" if undecided else ""
    killed = (
        f"{total.killed} of {counted(total.mutants, 'mutant')} killed, "
        f"{total.survived} survived{others}"
    )
    return f"kill rate {rate_text(total.kill_rate)}: {killed}"


def rate_text(rate: float | None) -> str:
    """Return a kill rate."""
    if rate is None:
        return "–"
    return f"{round(rate * 100, 1):g}%"


def facts(proof: Proof) -> Iterator[Line]:
    """Yield what else there is to say of the cases."""
    total = proof.summary
    if total.mutants or total.without_mutants:
        style: Style = "good" if total.killed else "plain"
        if total.survived:
            style = "warn"
        yield Line(mutants_text(total), style)
    for number, one, several in _counts(proof):
        if number:
            yield Line(counted(number, one, several))
    if total.failed_judgements:
        yield Line(unjudged_text(total), "warn")


def _counts(proof: Proof) -> Sequence[tuple[int, str, str]]:
    total = proof.summary
    unjudged = total.unjudged_evaluators if proof.judges == "skip" else 0
    return (
        (total.without_mutants, "case has nothing to damage", "cases have nothing to damage"),
        (
            total.without_reference,
            "case has no reference answer to damage",
            "cases have no reference answer to damage",
        ),
        (
            unjudged,
            "evaluator needs a judge, which is left out",
            "evaluators need judges, which are left out",
        ),
        (total.unproven, "case is not proven", "cases are not proven"),
        (total.skipped, "case is skipped", "cases are skipped"),
    )


def unjudged_text(total: ProofSummary) -> str:
    """Return how many answers judges did not score."""
    asked = total.judgements + total.failed_judgements
    return f"judges did not score {total.failed_judgements} of {counted(asked, 'answer')}"


def shown_findings(proof: Proof) -> Sequence[ProofFinding]:
    """Return the findings that authors should fix, the worst first."""
    found = (finding for finding in proof.findings if finding.severity in SHOWN)
    return sorted(found, key=lambda finding: SHOWN.index(finding.severity))


def is_of(proof: Proof, plan_digest: str | None) -> bool:
    """Whether a proof is of a plan; if the plan is not known, it may be."""
    return plan_digest in (None, proof.plan_digest)
