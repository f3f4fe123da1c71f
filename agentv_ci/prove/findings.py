"""Findings: what the proof of a case asks its author to fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.diagnostics import PROOF_RULES
from agentv_ci.contracts.gate import NullAgent, Operator
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.proof import CaseProof, EvaluatorRecord, ProofFinding
from agentv_ci.prove.answers import golden_of

LineOf = Callable[[str], int | None]
"""Return the line of an evaluator of a case in its eval file, None if it is not known."""

REQUIRE = "add an evaluator that requires what a good answer says"
OUTCOME = (
    "require what is not there before, such as a test in fail_to_pass, or a file in must_change"
)
ECHO = "the question contains what is looked for: require what only the answer says"
NULL_AGENTS: Mapping[NullAgent, str] = {
    "empty": REQUIRE,
    "refusal": REQUIRE,
    "dont-know": REQUIRE,
    "echo-prompt": ECHO,
    "echo-last-message": ECHO,
    "other-reference": "require what only the answer to this question says",
    "empty-object": "list the fields in 'required' of the schema, or compare them with field_accuracy",
    "changes-nothing": OUTCOME,
    "empty-array": "say with a schema which fields the answer has, or compare them with field_accuracy",
}
"""What would have caught them; of several that pass, the first one decides."""
OPERATORS: Mapping[Operator, str] = {
    "tool-arguments": "give the 'input' of the expected calls, and leave 'args_match' out or set it to subset",
    "json-text": "compare the field with field_accuracy, or list its values in an 'enum' of the schema",
    "first-sentence": "require what the rest of the answer says, too",
    "change-dropped": "add a test that needs it, or leave it out of the golden patch",
    "change-damaged": "add a test of this line",
}
HARMLESS: tuple[Operator, ...] = ("sentence-order", "tool-swapped", "tool-added", "first-sentence")
"""Mistakes that are often none."""
VACUOUS: Mapping[str, str] = {
    "regex": "anchor the pattern, and write '+' instead of '*'",
    "code": "let the script begin with a score of 0, and earn it",
}
NO_EFFECT = "it notices wrong answers, but does not fail the case: set 'required: true', or raise the threshold"
UNREAD = "print a score of 0 for an answer that it cannot read"
ON_BASE = "see that it runs on the base of the workspace"
SAME = "remove it, or let it check what no other evaluator does"


class CaseFindings:
    """The findings of one case."""

    def __init__(self, case: PlanCase, proof: CaseProof, line_of: LineOf) -> None:
        self._case = case
        self._proof = proof
        self._line_of = line_of
        self._evaluators = {each.name: each for each in case.evaluators}
        self._records = {each.name: each for each in proof.evaluators}

    def all(self) -> Iterator[ProofFinding]:
        """Yield them, those on the first line of the case before those of its evaluators."""
        proof = self._proof
        if not proof.proven and proof.reference != "fails":
            yield self._unproven()
        if proof.passing:
            through = dict.fromkeys(name for each in proof.passing for name in each.evaluators)
            yield self._of_case(
                "AV401", f"null agents pass this case: {self._passing()}", self._catching(), through
            )
        if proof.reference == "fails":
            yield self._of_case(
                "AV402", self._failing(), "correct the answer or the evaluator", proof.failed_by
            )
        if proof.survivors:
            operators = listed(dict.fromkeys(each.operator for each in proof.survivors))
            verb = "survives" if proof.survived == 1 else "survive"
            message = f"{proof.survived} of {counted(proof.mutants, 'mutant')} {verb}: {operators}"
            yield self._of_case("AV403", message, self._noticing(), ())
        for record in proof.evaluators:
            yield from self._of_evaluator(record)

    def _of_case(
        self, rule: str, message: str, hint: str | None, evaluators: Iterable[str]
    ) -> ProofFinding:
        return self._found(rule, message, hint, evaluators, self._proof.template)

    def _found(
        self, rule: str, message: str, hint: str | None, evaluators: Iterable[str], line: int | None
    ) -> ProofFinding:
        """Return a finding on a line of the eval file, or where the case is."""
        source = self._case.source
        return ProofFinding(
            rule=rule,
            severity=PROOF_RULES[rule].severity,
            message=message,
            suite=self._case.suite,
            path=source.path if line is None else self._case.suite,
            line=line or source.line,
            column=source.column if line is None else 1,
            case=self._case.id,
            evaluators=tuple(evaluators),
            hint=hint,
        )

    def _unproven(self) -> ProofFinding:
        silent = [each for each in self._proof.evaluators if each.unjudged or each.errors]
        reason = next((f": {each.reason}" for each in silent if each.reason), "")
        said = "without what judges say, no answer passes or fails"
        message = f"not proven: {said if any(each.unjudged for each in silent) else 'no evaluator scored an answer'}"
        return self._of_case("AV407", f"{message}{reason}", None, [each.name for each in silent])

    def _passing(self) -> str:
        """Return the null agents that pass, and the evaluators that accept their answers."""
        agents: dict[tuple[str, ...], dict[str, None]] = {}
        for each in self._proof.passing:
            agents.setdefault(each.evaluators, {})[each.agent] = None
        nothing = "no evaluator of the answer passes, but the score is high enough"
        parts = (
            f"{listed(each)} ({f'accepted by {listed(by)}' if by else nothing})"
            for by, each in agents.items()
        )
        return "; ".join(parts)

    def _catching(self) -> str:
        """Return what would have caught the first null agent that passes."""
        passing = self._proof.passing
        through = [self._evaluators[name] for name in passing[0].evaluators]
        if through and all(each.negate for each in through):
            return f"only negated checks accept it: {REQUIRE}"
        others = [
            each.name
            for each in self._evaluators.values()
            if self._could_catch(each) and each not in through
        ]
        if others:
            return f"the score is high enough without {listed(others)}: set 'required: true' there"
        agents = {each.agent for each in passing}
        return next(hint for agent, hint in NULL_AGENTS.items() if agent in agents)

    def _could_catch(self, evaluator: PlanEvaluator) -> bool:
        is_tried = self._records[evaluator.name].state != "unjudged"
        return is_tried and not evaluator.negate and not evaluator.is_limit

    def _failing(self) -> str:
        proof = self._proof
        by = listed(f"'{each}'" for each in proof.failed_by) or "the threshold"
        reason = f": {proof.reference_error}" if proof.reference_error else ""
        answer = "the reference answer" + (
            " with the golden patch" if golden_of(self._case) is not None else ""
        )
        if any("reference" in self._records[each].errors for each in proof.failed_by):
            return f"{answer} cannot be scored by {by}{reason}"
        return f"{answer} fails {by}{reason}"

    def _noticing(self) -> str:
        """Return what nothing notices, and what would."""
        survivors = self._proof.survivors
        first, operators = survivors[0], {each.operator: None for each in survivors}
        if all(each in HARMLESS for each in operators):
            also = f"; if such answers are right, accept them: accept: {{{listed(f'{each}: WHY' for each in operators)}}}"
        else:
            also = next(
                (f": {OPERATORS[each]}" for each in [first.operator] if each in OPERATORS), ""
            )
        return f"nothing notices this: {first.change}{also}"

    def _of_evaluator(self, record: EvaluatorRecord) -> Iterator[ProofFinding]:
        name, proof = record.name, self._proof

        def found(rule: str, message: str, hint: str, *others: str) -> ProofFinding:
            return self._found(
                rule, message, hint, (name, *others), self._line_of(name) or proof.template
            )

        if record.errors and "reference" not in record.errors:
            message = f"evaluator '{name}' cannot score the answers of {listed(record.errors)}: {record.reason}"
            yield found(
                "AV404", message, ON_BASE if self._evaluators[name].needs_workspace else UNREAD
            )
        if record.state == "vacuous":
            answers = counted(len(proof.null_agents) + proof.mutants, "wrong answer")
            hint = VACUOUS.get(
                self._evaluators[name].type, "let it require something, or remove it"
            )
            yield found("AV405", f"evaluator '{name}' passes all of {answers}", hint)
        if record.state == "redundant" and record.same_as is not None:
            if [*self._records].index(record.same_as) < [*self._records].index(name):
                message = f"'{record.same_as}' and '{name}' always agree, and neither changes a verdict alone"
                yield found("AV406", message, "remove one of them", record.same_as)
        elif record.state == "redundant":
            message = (
                f"evaluator '{name}' is redundant: without it each answer gets the same verdict"
            )
            through = [
                *(each.evaluators for each in proof.passing),
                *(each.evaluators for each in proof.survivors),
            ]
            yield found(
                "AV406", message, NO_EFFECT if any(name not in names for names in through) else SAME
            )


def by_template(findings: Iterable[tuple[int | None, ProofFinding]]) -> list[ProofFinding]:
    """Return findings, each with the line of its template or None.

    Those of a template as one with their number.
    """
    groups: dict[tuple[object, ...], list[ProofFinding]] = {}
    for place, (template, found) in enumerate(findings):
        about = found.evaluators if found.rule in ("AV404", "AV405", "AV406") else ()
        alone = place if template is None else None
        groups.setdefault((alone, found.suite, template, found.rule, about), []).append(found)
    return [_of_all(found) for found in groups.values()]


def _of_all(findings: list[ProofFinding]) -> ProofFinding:
    first, more = findings[0], len(findings) - 1
    if not more:
        return first
    message = f"{first.message}; and {counted(more, 'more case')} of this template"
    return first.model_copy(update={"message": message, "cases": len(findings)})
