"""What the grades of wrong answers show of one case and its evaluators."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from agentv_ci.contracts.evaluators import ToolTrajectoryEvaluator
from agentv_ci.contracts.plan import PlanCase, PlanEvaluator
from agentv_ci.contracts.proof import CaseProof, EvaluatorRecord, NullAgentRecord, Outcome, Survivor
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.prove.answers import Mutant, NullAnswer, WrittenAnswer, reference_of
from agentv_ci.text import shortened

LONGEST_ANSWER = 300
LONGEST_DIFF = 2_000
LONGEST_REASON = 200


class Graded(Struct, frozen=True):
    """What the evaluators of a case say of an answer."""

    outcome: Outcome
    without: tuple[Outcome, ...]
    """For each evaluator, the outcome if it is taken out."""
    results: tuple[EvaluatorResult | None, ...]
    """One for each evaluator; None for one that needs a judge which did not score."""

    def scored(self, verdict: str) -> tuple[str, ...]:
        """Return the names of the evaluators with this verdict."""
        return tuple(each.name for each in self.results if each is not None and each.verdict == verdict)


class CaseGrades(Struct, frozen=True):
    """All answers to one case with their grades."""

    case: PlanCase
    null_agents: Sequence[tuple[NullAnswer, Graded]]
    reference: Graded | None
    """None without a reference answer."""
    mutants: Sequence[tuple[Mutant, Graded]]
    """Empty if the reference answer fails."""
    probes: Sequence[Graded] = ()
    """Answers that need not be wrong, for evaluators that seem redundant."""

    @property
    def every(self) -> tuple[tuple[str, Graded], ...]:
        """The grades of all answers, each with the name of its null agent or operator."""
        reference = [("reference", self.reference)] if self.reference is not None else []
        nulls = ((answer.agent, graded) for answer, graded in self.null_agents)
        return (*reference, *nulls, *((mutant.operator, graded) for mutant, graded in self.mutants))


def seems_redundant(grades: CaseGrades) -> bool:
    """Whether each answer gets the same verdict without one of the evaluators."""
    return any(_evaluator(*each, grades).state == "redundant" for each in enumerate(grades.case.evaluators))


def case_proof(grades: CaseGrades) -> CaseProof:
    """Return what the grades show of a case."""
    case, reference = grades.case, grades.reference
    outcomes = [graded.outcome for _, graded in grades.mutants]
    records = tuple(_evaluator(index, each, grades) for index, each in enumerate(case.evaluators))
    return CaseProof(
        suite=case.suite,
        id=case.id,
        path=case.source.path,
        line=case.source.line,
        proven=any(each.state != "judged" for each in records),
        reference=_reference(reference),
        failed_by=_failed_by(reference),
        null_agents=tuple(_null_agent(answer, graded) for answer, graded in grades.null_agents),
        mutants=len(outcomes),
        killed=outcomes.count("caught"),
        survived=outcomes.count("passes"),
        survivors=tuple(_survivors(grades)),
        evaluators=records,
    )


def _reference(graded: Graded | None) -> Literal["passes", "fails", "undecided", "none"]:
    if graded is None:
        return "none"
    return "fails" if graded.outcome == "caught" else graded.outcome


def _failed_by(reference: Graded | None) -> tuple[str, ...]:
    """Return the evaluators that a reference answer fails, if it fails."""
    if reference is None or reference.outcome != "caught":
        return ()
    return tuple(name for verdict in ("error", "fail", "borderline") for name in reference.scored(verdict))


def _null_agent(answer: NullAnswer, graded: Graded) -> NullAgentRecord:
    if graded.outcome != "passes":
        return NullAgentRecord(agent=answer.agent, outcome=graded.outcome)
    return NullAgentRecord(
        agent=answer.agent,
        outcome="passes",
        evaluators=graded.scored("pass"),
        answer=shortened(answer.answer.text, LONGEST_ANSWER),
    )


def _survivors(grades: CaseGrades) -> Iterator[Survivor]:
    reference = reference_of(grades.case)
    for mutant, graded in grades.mutants:
        if graded.outcome == "passes" and reference is not None:
            diff = shortened("\n".join(_diff(reference, mutant.answer)), LONGEST_DIFF)
            through = graded.scored("pass")
            yield Survivor(operator=mutant.operator, change=mutant.change, diff=diff, evaluators=through)


def _diff(reference: WrittenAnswer, mutant: WrittenAnswer) -> Iterator[str]:
    lines = difflib.unified_diff(_lines(reference), _lines(mutant), n=1, lineterm="")
    yield from islice(lines, 2, None)  # without the names of files


def _lines(answer: WrittenAnswer) -> list[str]:
    calls = (f"{each.tool}({json.dumps(each.input, ensure_ascii=False)})" for each in answer.calls)
    return [*calls, *answer.text.splitlines()]


def _evaluator(index: int, evaluator: PlanEvaluator, grades: CaseGrades) -> EvaluatorRecord:
    if any(graded.results[index] is None for _, graded in grades.every):
        return EvaluatorRecord(name=evaluator.name, state="judged")
    scored = [(name, result) for name, each in grades.every if (result := each.results[index]) is not None]
    errors = [(name, result.reasoning) for name, result in scored if result.verdict == "error"]
    return EvaluatorRecord(
        name=evaluator.name,
        state=_state(index, evaluator, {result.verdict for _, result in scored}, grades),
        errors=tuple(dict.fromkeys(name for name, _ in errors)),
        reason=shortened(errors[0][1], LONGEST_REASON) if errors else None,
    )


def _state(
    index: int, evaluator: PlanEvaluator, given: Collection[str], grades: CaseGrades
) -> Literal["needed", "vacuous", "redundant", "untried"]:
    if evaluator.is_limit:
        return "untried"  # nothing ran
    if given == {"pass"}:
        # What forbids something has nothing to catch in these answers.
        is_blamed = any(graded.outcome == "passes" for _, graded in grades.null_agents)
        return "vacuous" if is_blamed or not _only_forbids(evaluator) else "untried"
    is_missed = any(graded.outcome != graded.without[index] for _, graded in grades.every)
    if is_missed or any(each.outcome == "caught" != each.without[index] for each in grades.probes):
        return "needed"
    return "redundant" if grades.mutants and not _only_forbids(evaluator) else "untried"


def _only_forbids(evaluator: PlanEvaluator) -> bool:
    is_subset = isinstance(evaluator, ToolTrajectoryEvaluator) and evaluator.mode == "subset"
    return evaluator.negate or is_subset
