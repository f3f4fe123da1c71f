"""Findings: what the proof of a case asks its author to fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agentv_ci.contracts.diagnostics import PROOF_RULES
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.proof import CaseProof, EvaluatorRecord, NullAgent, ProofFinding
from agentv_ci.text import counted, listed

LineOf = Callable[[str], int | None]
"""Return the line of an evaluator of a case, None if it is not known."""

HINTS: Mapping[NullAgent, str] = {
    "echo-prompt": "the question contains what is looked for: require what only the answer says",
    "echo-last-message": "the question contains what is looked for: require what only the answer says",
    "other-reference": "require what only the answer to this question says",
    "first-sentence": "require what the rest of the answer says, too",
    "empty-object": "list the fields in 'required' of the schema, or compare them with field_accuracy",
    "empty-array": "say with a schema which fields the answer has, or compare them with field_accuracy",
    "no-tools": "require the calls with tool_trajectory, in mode superset, in_order or exact",
    "wrong-order": "require the order of the calls with tool_trajectory, in mode in_order or exact",
    "wrong-arguments": "give the 'input' of the expected calls, and leave 'args_match' out or set it to subset",
}
NO_EFFECT = "it notices wrong answers, but does not fail the case: set 'required: true', or raise the threshold"
SAME = "remove it, or let it check what no other evaluator does"
REQUIRE = "add an evaluator that requires what a good answer says"


def findings(case: PlanCase, proof: CaseProof, line_of: LineOf) -> Iterator[ProofFinding]:
    """Yield the findings of one case, those on its first line before those of its evaluators."""

    def found(rule: str, message: str, hint: str | None = None, *evaluators: str) -> ProofFinding:
        line = line_of(evaluators[0]) if rule in ("AV404", "AV405", "AV406") else None
        return ProofFinding(
            rule=rule,
            severity=PROOF_RULES[rule].severity,
            message=message,
            path=case.source.path,
            line=line or case.source.line,
            column=1 if line else case.source.column,
            case=case.id,
            evaluators=evaluators,
            hint=hint,
        )

    if not proof.proven:
        names = [each.name for each in proof.evaluators]
        yield found("AV407", "not proven: all evaluators need a judge, and none scored", None, *names)
        return
    if proof.passing:
        agents = listed(each.agent for each in proof.passing)
        through = tuple(dict.fromkeys(name for each in proof.passing for name in each.evaluators))
        message = f"null agents pass this case: {agents}; let through by {listed(through)}"
        yield found("AV401", message, _hint(case, proof), *through)
    if proof.reference == "fails":
        by = f"'{proof.failed_by[0]}'" if len(proof.failed_by) == 1 else listed(proof.failed_by) or "the threshold"
        hint = "correct the answer or the evaluator; `agentv-ci eval --dry-run` shows the scores"
        yield found("AV402", f"the reference answer fails {by}", hint, *proof.failed_by)
    if proof.survivors:
        operators = listed(dict.fromkeys(each.operator for each in proof.survivors))
        verb = "survives" if proof.survived == 1 else "survive"
        message = f"{proof.survived} of {counted(proof.mutants, 'mutant')} of the reference answer {verb}: {operators}"
        yield found("AV403", message, f"nothing notices that {proof.survivors[0].change}")
    for evaluator in proof.evaluators:
        yield from _of_evaluator(evaluator, proof, found)


def _of_evaluator(
    evaluator: EvaluatorRecord, proof: CaseProof, found: Callable[..., ProofFinding]
) -> Iterator[ProofFinding]:
    name = evaluator.name
    if evaluator.errors and "reference" not in evaluator.errors:
        message = f"evaluator '{name}' cannot score the answers of {listed(evaluator.errors)}: {evaluator.reason}"
        yield found("AV404", message, "print a score of 0 for an answer that it cannot read", name)
    if evaluator.state == "vacuous":
        answers = counted(len(proof.null_agents) + proof.mutants, "wrong answer")
        yield found("AV405", f"evaluator '{name}' passes all of {answers}", REQUIRE, name)
    if evaluator.state == "redundant":
        message = f"evaluator '{name}' is redundant: without it each answer gets the same verdict"
        through = [*(each.evaluators for each in proof.passing), *(each.evaluators for each in proof.survivors)]
        notices = any(name not in names for names in through)
        yield found("AV406", message, NO_EFFECT if notices else SAME, name)


def _hint(case: PlanCase, proof: CaseProof) -> str:
    """Return what would have caught the null agents that pass."""
    through = {name for each in proof.passing for name in each.evaluators}
    evaluators = [each for each in case.evaluators if each.name in through]
    if all(each.negate for each in evaluators):
        return f"only negated checks let it through: {REQUIRE}"
    tried = {each.name for each in proof.evaluators if each.state != "judged"}
    others = [each.name for each in case.evaluators if each.name in tried - through and not each.negate]
    if others:
        return f"the score is high enough without {listed(others)}: set 'required: true' there"
    return HINTS.get(proof.passing[0].agent, REQUIRE)
