"""What the grades of wrong answers show of one case and its evaluators."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from agentv_ci.base.text import on_one_line, shortened
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanDiffEvaluator, PlanEvaluator, needs_judge
from agentv_ci.contracts.proof import (
    CaseProof,
    EvaluatorRecord,
    LeftOut,
    NullAgentRecord,
    Outcome,
    Survivor,
)
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.contracts.trace_evaluators import ToolTrajectoryEvaluator
from agentv_ci.prove.answers import Mutant, NullAnswer, WrittenAnswer, reference_of

LONGEST_ANSWER = 300
LONGEST_DIFF = 2_000
LONGEST_REASON = 200

State = Literal["needed", "vacuous", "redundant", "untried", "unjudged"]


class Graded(Struct, frozen=True):
    """What the evaluators of a case say of an answer."""

    outcome: Outcome
    without: tuple[Outcome, ...]
    """For each evaluator, the outcome if it is taken out."""
    results: tuple[EvaluatorResult | None, ...]
    """One for each evaluator; None for one whose judge is left out."""

    @property
    def is_caught_by_score(self) -> bool:
        """Whether the answer is caught, and not only because no evaluator could score it."""
        is_scored = any(each is not None and each.verdict != "error" for each in self.results)
        return self.outcome == "caught" and is_scored

    def scored(self, verdict: str) -> tuple[str, ...]:
        """Return the names of the evaluators with this verdict."""
        return tuple(
            each.name for each in self.results if each is not None and each.verdict == verdict
        )


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
    unusual: Sequence[Graded] = ()
    """Answers that break most constraints, for evaluators that seem vacuous."""
    left_out: Sequence[LeftOut] = ()
    """Null agents and operators that are not tried."""

    def every(self) -> list[tuple[str, Graded]]:
        """Return the grades of all answers, each with the name of its null agent or operator."""
        reference = [("reference", self.reference)] if self.reference is not None else []
        nulls = ((answer.agent, graded) for answer, graded in self.null_agents)
        return [*reference, *nulls, *((mutant.operator, graded) for mutant, graded in self.mutants)]


def states_of(grades: CaseGrades) -> set[State]:
    """Return what the evaluators seem to be."""
    every = [graded for _, graded in grades.every()]
    return {_state(*each, every, grades) for each in enumerate(grades.case.evaluators)}


def case_proof(grades: CaseGrades, template: int | None = None) -> CaseProof:
    """Return what the grades show of a case; `template` is the line of that of a data row."""
    case, reference, every = grades.case, grades.reference, grades.every()
    outcomes = [graded.outcome for _, graded in grades.mutants]
    records = tuple(
        _evaluator(index, each, every, grades) for index, each in enumerate(case.evaluators)
    )
    failed_by = _failed_by(reference)
    return CaseProof(
        suite=case.suite,
        id=case.id,
        path=case.source.path,
        line=case.source.line,
        template=template,
        proven=any(graded.outcome == "passes" or graded.is_caught_by_score for _, graded in every),
        reference=_reference(reference),
        failed_by=failed_by,
        reference_error=_error_of(reference, failed_by),
        null_agents=tuple(
            _null_agent(answer, graded, case) for answer, graded in grades.null_agents
        ),
        left_out=tuple(grades.left_out),
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
    return tuple(
        name for verdict in ("error", "fail", "borderline") for name in reference.scored(verdict)
    )


def _error_of(reference: Graded | None, failed_by: Sequence[str]) -> str | None:
    """Return what the first evaluator that a reference answer fails says of it."""
    found = (
        each
        for each in (reference.results if reference else ())
        if each and each.name == failed_by[0]
    )
    result = next(found, None) if failed_by else None
    if result is None:
        return None
    said = result.misses[0] if result.misses else result.reasoning
    return shortened(on_one_line(said), LONGEST_REASON) if said else None


def _accepting(case: PlanCase, graded: Graded) -> tuple[str, ...]:
    """Return the evaluators that accept an answer; limits say nothing of it."""
    limits = {each.name for each in case.evaluators if each.is_limit}
    return tuple(each for each in graded.scored("pass") if each not in limits)


def _null_agent(answer: NullAnswer, graded: Graded, case: PlanCase) -> NullAgentRecord:
    if graded.outcome != "passes":
        return NullAgentRecord(agent=answer.agent, outcome=graded.outcome)
    return NullAgentRecord(
        agent=answer.agent,
        outcome="passes",
        evaluators=_accepting(case, graded),
        answer=shortened(answer.answer.text, LONGEST_ANSWER),
    )


def _survivors(grades: CaseGrades) -> Iterator[Survivor]:
    reference = reference_of(grades.case) or WrittenAnswer("")
    for mutant, graded in grades.mutants:
        if graded.outcome == "passes":
            diff = shortened(
                mutant.diff or "\n".join(_diff(reference, mutant.answer)), LONGEST_DIFF
            )
            through = _accepting(grades.case, graded)
            yield Survivor(
                operator=mutant.operator, change=mutant.change, diff=diff, evaluators=through
            )


def _diff(reference: WrittenAnswer, mutant: WrittenAnswer) -> Iterator[str]:
    lines = difflib.unified_diff(_lines(reference), _lines(mutant), n=1, lineterm="")
    yield from islice(lines, 2, None)  # without the names of files


def _lines(answer: WrittenAnswer) -> list[str]:
    calls = (f"{each.tool}({json.dumps(each.input, ensure_ascii=False)})" for each in answer.calls)
    return [*calls, *answer.text.splitlines()]


def _evaluator(
    index: int, evaluator: PlanEvaluator, every: Sequence[tuple[str, Graded]], grades: CaseGrades
) -> EvaluatorRecord:
    results = [(name, each.results[index]) for name, each in every]
    errors = [
        (name, each.reasoning)
        for name, each in results
        if each is not None and each.verdict == "error"
    ]
    judged = (
        sum(each is not None and each.verdict != "error" for _, each in results)
        if needs_judge(evaluator)
        else 0
    )
    state = _state(index, evaluator, [graded for _, graded in every], grades)
    return EvaluatorRecord(
        name=evaluator.name,
        state=state,
        errors=tuple(dict.fromkeys(name for name, _ in errors))
        if not needs_judge(evaluator)
        else (),
        reason=shortened(errors[0][1], LONGEST_REASON) if errors else None,
        same_as=_same_as(index, every, grades) if state == "redundant" else None,
        judged=judged,
        unjudged=len(results) - judged if needs_judge(evaluator) else 0,
    )


def _same_as(index: int, every: Sequence[tuple[str, Graded]], grades: CaseGrades) -> str | None:
    """Return an evaluator that gives each answer the same verdict."""

    def verdicts(place: int) -> list[str]:
        answers = (*(graded for _, graded in every), *grades.probes)
        return [
            "" if result is None else result.verdict
            for result in (each.results[place] for each in answers)
        ]

    own = verdicts(index)
    others = (each for each in range(len(grades.case.evaluators)) if each != index)
    return next(
        (grades.case.evaluators[each].name for each in others if verdicts(each) == own), None
    )


def _state(
    index: int, evaluator: PlanEvaluator, every: Sequence[Graded], grades: CaseGrades
) -> State:
    if evaluator.is_limit or _only_shows(evaluator):
        return "untried"  # nothing ran, or it is not to matter
    results = [each.results[index] for each in every]
    given = {"none" if each is None else each.verdict for each in results}
    if given <= {"none", "error"}:
        return "unjudged" if needs_judge(evaluator) else "untried"
    if given == {"pass"}:
        # What forbids something has nothing to catch in these answers.
        is_blamed = any(graded.outcome == "passes" for _, graded in grades.null_agents)
        has_failed = any(
            (result := each.results[index]) and result.verdict != "pass" for each in grades.unusual
        )
        return "vacuous" if is_blamed or not (_only_forbids(evaluator) or has_failed) else "untried"
    is_missed = any(each.outcome != each.without[index] for each in every)
    if is_missed or any(
        each.outcome == "caught" and each.without[index] != "caught" for each in grades.probes
    ):
        return "needed"
    is_open = "none" in given or (needs_judge(evaluator) and "error" in given)
    return (
        "redundant"
        if grades.mutants and not is_open and not _only_forbids(evaluator)
        else "untried"
    )


def _only_forbids(evaluator: PlanEvaluator) -> bool:
    """Whether wrong answers need not fail it: it forbids something, or keeps what works before an agent begins."""
    is_subset = isinstance(evaluator, ToolTrajectoryEvaluator) and evaluator.mode == "subset"
    return evaluator.negate or is_subset or evaluator.needs_workspace


def _only_shows(evaluator: PlanEvaluator) -> bool:
    """Whether an evaluator has no weight because its golden patch is one solution of many."""
    has_golden = isinstance(evaluator, PlanDiffEvaluator) and evaluator.golden is not None
    return has_golden and not evaluator.weight and not evaluator.required
