"""Findings: what the proof of a case asks its author to fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from agentv_ci.base.text import counted, listed, quoted
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
    "empty-object": (
        "list the fields in 'required' of the schema, or compare them with field_accuracy"
    ),
    "changes-nothing": OUTCOME,
    "empty-array": (
        "say with a schema which fields the answer has, or compare them with field_accuracy"
    ),
}
"""What would have caught them; of several that pass, the first one decides."""
OPERATORS: Mapping[Operator, str] = {
    "tool-arguments": (
        "give the 'input' of the expected calls, and leave 'args_match' out or set it to subset"
    ),
    "json-text": (
        "compare the field with field_accuracy, or list its values in an 'enum' of the schema"
    ),
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
NO_EFFECT = (
    "it notices wrong answers, but does not fail the case: "
    "set 'required: true', or raise the threshold"
)
UNREAD = "print a score of 0 for an answer that it cannot read"
ON_BASE = "see that it runs on the base of the workspace"
SAME = "remove it, or let it check what no other evaluator does"


class CaseFindings:
    """The findings of one case."""

    def __init__(self, case: PlanCase, proof: CaseProof, line_of: LineOf) -> None:
        self._case = case
        self._proof = proof
        self._line_of = line_of
        self._evaluators = {evaluator.name: evaluator for evaluator in case.evaluators}
        self._records = {record.name: record for record in proof.evaluators}

    def all(self) -> Iterator[ProofFinding]:
        """Yield them, those on the first line of the case before those of its evaluators."""
        proof = self._proof
        if not proof.proven and proof.reference != "fails":
            yield self._unproven()
        if proof.passing:
            accepting = chain.from_iterable(agent.evaluators for agent in proof.passing)
            yield self._of_case(
                "AV401",
                f"null agents pass this case: {self._passing()}",
                self._catching(),
                dict.fromkeys(accepting),
            )
        if proof.reference == "fails":
            hint = "correct the answer or the evaluator"
            yield self._of_case("AV402", self._failing(), hint, proof.failed_by)
        if proof.survivors:
            yield self._of_case("AV403", self._surviving(), self._noticing(), ())
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
        silent = [record for record in self._proof.evaluators if record.unjudged or record.errors]
        message = "not proven: no evaluator scored an answer"
        if any(record.unjudged for record in silent):
            message = "not proven: without what judges say, no answer passes or fails"
        for record in silent:
            if record.reason:
                message = f"{message}: {record.reason}"
                break
        return self._of_case("AV407", message, None, [record.name for record in silent])

    def _passing(self) -> str:
        """Return the null agents that pass, and the evaluators that accept their answers."""
        agents: dict[tuple[str, ...], dict[str, None]] = {}
        for record in self._proof.passing:
            agents.setdefault(record.evaluators, {})[record.agent] = None
        parts: list[str] = []
        for evaluators, names in agents.items():
            reason = "no evaluator of the answer passes, but the score is high enough"
            if evaluators:
                reason = f"accepted by {listed(evaluators)}"
            parts.append(f"{listed(names)} ({reason})")
        return "; ".join(parts)

    def _catching(self) -> str:
        """Return what would have caught the first null agent that passes."""
        passing = self._proof.passing
        accepting = list(map(self._evaluators.__getitem__, passing[0].evaluators))
        if accepting and all(evaluator.negate for evaluator in accepting):
            return f"only negated checks accept it: {REQUIRE}"
        catching = filter(self._could_catch, self._evaluators.values())
        others = [evaluator.name for evaluator in catching if evaluator not in accepting]
        if others:
            return f"the score is high enough without {listed(others)}: set 'required: true' there"
        agents = {record.agent for record in passing}
        return next(hint for agent, hint in NULL_AGENTS.items() if agent in agents)

    def _could_catch(self, evaluator: PlanEvaluator) -> bool:
        is_tried = self._records[evaluator.name].state != "unjudged"
        return is_tried and not evaluator.negate and not evaluator.is_limit

    def _failing(self) -> str:
        proof = self._proof
        by = quoted(proof.failed_by) or "the threshold"
        answer = "the reference answer"
        if golden_of(self._case) is not None:
            answer = "the reference answer with the golden patch"
        verb = "fails"
        if any("reference" in self._records[name].errors for name in proof.failed_by):
            verb = "cannot be scored by"
        if proof.reference_error:
            return f"{answer} {verb} {by}: {proof.reference_error}"
        return f"{answer} {verb} {by}"

    @property
    def _operators(self) -> Sequence[Operator]:
        """The operators of the mutants that survive, each once."""
        return list(dict.fromkeys(mutant.operator for mutant in self._proof.survivors))

    def _surviving(self) -> str:
        proof = self._proof
        verb = "survives" if proof.survived == 1 else "survive"
        mutants = f"{proof.survived} of {counted(proof.mutants, 'mutant')}"
        return f"{mutants} {verb}: {listed(self._operators)}"

    def _noticing(self) -> str:
        """Return what nothing notices, and what would."""
        first, operators = self._proof.survivors[0], self._operators
        change = f"nothing notices this: {first.change}"
        if set(HARMLESS).issuperset(operators):
            entries = listed(f"{operator}: WHY" for operator in operators)
            return f"{change}; if such answers are right, accept them: accept: {{{entries}}}"
        if first.operator in OPERATORS:
            return f"{change}: {OPERATORS[first.operator]}"
        return change

    def _of_evaluator(self, record: EvaluatorRecord) -> Iterator[ProofFinding]:
        name, proof = record.name, self._proof
        if record.errors and "reference" not in record.errors:
            answers = listed(record.errors)
            message = f"evaluator '{name}' cannot score the answers of {answers}: {record.reason}"
            hint = ON_BASE if self._evaluators[name].needs_workspace else UNREAD
            yield self._of_evaluators("AV404", message, hint, name)
        if record.state == "vacuous":
            answers = counted(len(proof.null_agents) + proof.mutants, "wrong answer")
            message = f"evaluator '{name}' passes all of {answers}"
            kind = self._evaluators[name].type
            hint = VACUOUS.get(kind, "let it require something, or remove it")
            yield self._of_evaluators("AV405", message, hint, name)
        if record.state == "redundant":
            yield from self._redundant(name, record.same_as)

    def _redundant(self, name: str, same_as: str | None) -> Iterator[ProofFinding]:
        if same_as is None:
            message = (
                f"evaluator '{name}' is redundant: without it each answer gets the same verdict"
            )
            hint = NO_EFFECT if self._notices(name) else SAME
            yield self._of_evaluators("AV406", message, hint, name)
            return
        names = [*self._records]
        if names.index(same_as) < names.index(name):
            message = f"'{same_as}' and '{name}' always agree, and neither changes a verdict alone"
            yield self._of_evaluators("AV406", message, "remove one of them", name, same_as)

    def _notices(self, name: str) -> bool:
        """Whether an evaluator does not accept a wrong answer that passes the case."""
        proof = self._proof
        fails_null_agents = any(name not in agent.evaluators for agent in proof.passing)
        return fails_null_agents or any(name not in mutant.evaluators for mutant in proof.survivors)

    def _of_evaluators(
        self, rule: str, message: str, hint: str, name: str, *others: str
    ) -> ProofFinding:
        """Return a finding on the line of the first evaluator."""
        line = self._line_of(name) or self._proof.template
        return self._found(rule, message, hint, (name, *others), line)


def by_template(findings: Iterable[tuple[int | None, ProofFinding]]) -> list[ProofFinding]:
    """Return the findings; those of the cases of one template become one with their number.

    `findings` have the line of their template, or None.
    """
    groups: dict[tuple[object, ...], list[ProofFinding]] = {}
    for index, (template, finding) in enumerate(findings):
        about = finding.evaluators if finding.rule in ("AV404", "AV405", "AV406") else ()
        alone = index if template is None else None
        key = (alone, finding.suite, template, finding.rule, about)
        groups.setdefault(key, []).append(finding)
    return list(map(_of_all, groups.values()))


def _of_all(findings: list[ProofFinding]) -> ProofFinding:
    first, more = findings[0], len(findings) - 1
    if not more:
        return first
    message = f"{first.message}; and {counted(more, 'more case')} of this template"
    return first.model_copy(update={"message": message, "cases": len(findings)})
