"""What the grades of wrong answers show of one case and its evaluators."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, filterfalse, islice
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

NOT_SCORED = "none"
"""In place of a verdict where a judge is left out."""

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
        return self.outcome == "caught" and any(map(_is_scored, self.results))

    def scored(self, verdict: str) -> tuple[str, ...]:
        """Return the names of the evaluators with this verdict."""
        given = filter(None, self.results)
        return tuple(result.name for result in given if result.verdict == verdict)


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
        answers: list[tuple[str, Graded]] = []
        if self.reference is not None:
            answers.append(("reference", self.reference))
        answers += ((answer.agent, graded) for answer, graded in self.null_agents)
        answers += ((mutant.operator, graded) for mutant, graded in self.mutants)
        return answers


def _is_scored(result: EvaluatorResult | None) -> bool:
    return result is not None and result.verdict != "error"


def states_of(grades: CaseGrades) -> set[State]:
    """Return what the evaluators seem to be."""
    every = _unnamed(grades.every())
    states: set[State] = set()
    for index, evaluator in enumerate(grades.case.evaluators):
        states.add(_state(index, evaluator, every, grades))
    return states


def _unnamed(every: Iterable[tuple[str, Graded]]) -> list[Graded]:
    return [graded for _, graded in every]


def case_proof(grades: CaseGrades, template: int | None = None) -> CaseProof:
    """Return what the grades show of a case; `template` is the line of that of a data row."""
    case, reference, every = grades.case, grades.reference, grades.every()
    outcomes = [graded.outcome for _, graded in grades.mutants]
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
        null_agents=tuple(_null_agents(grades)),
        left_out=tuple(grades.left_out),
        mutants=len(outcomes),
        killed=outcomes.count("caught"),
        survived=outcomes.count("passes"),
        survivors=tuple(_survivors(grades)),
        evaluators=tuple(_evaluators(grades, every)),
    )


def _reference(graded: Graded | None) -> Literal["passes", "fails", "undecided", "none"]:
    if graded is None:
        return "none"
    return "fails" if graded.outcome == "caught" else graded.outcome


def _failed_by(reference: Graded | None) -> tuple[str, ...]:
    """Return the evaluators that a reference answer fails, if it fails."""
    if reference is None or reference.outcome != "caught":
        return ()
    return tuple(chain.from_iterable(map(reference.scored, ("error", "fail", "borderline"))))


def _error_of(reference: Graded | None, failed_by: Sequence[str]) -> str | None:
    """Return what the first evaluator that a reference answer fails says of it."""
    if reference is None or not failed_by:
        return None
    for result in filter(None, reference.results):
        if result.name == failed_by[0]:
            said = result.misses[0] if result.misses else result.reasoning
            return shortened(on_one_line(said), LONGEST_REASON) if said else None
    return None


def _accepting(case: PlanCase, graded: Graded) -> tuple[str, ...]:
    """Return the evaluators that accept an answer; limits say nothing of it."""
    limits = {evaluator.name for evaluator in case.evaluators if evaluator.is_limit}
    return tuple(filterfalse(limits.__contains__, graded.scored("pass")))


def _null_agents(grades: CaseGrades) -> Iterator[NullAgentRecord]:
    for answer, graded in grades.null_agents:
        if graded.outcome != "passes":
            yield NullAgentRecord(agent=answer.agent, outcome=graded.outcome)
            continue
        yield NullAgentRecord(
            agent=answer.agent,
            outcome="passes",
            evaluators=_accepting(grades.case, graded),
            answer=shortened(answer.answer.text, LONGEST_ANSWER),
        )


def _survivors(grades: CaseGrades) -> Iterator[Survivor]:
    reference = reference_of(grades.case) or WrittenAnswer("")
    for mutant, graded in grades.mutants:
        if graded.outcome != "passes":
            continue
        diff = mutant.diff or "\n".join(_diff(reference, mutant.answer))
        yield Survivor(
            operator=mutant.operator,
            change=mutant.change,
            diff=shortened(diff, LONGEST_DIFF),
            evaluators=_accepting(grades.case, graded),
        )


def _diff(reference: WrittenAnswer, mutant: WrittenAnswer) -> Iterator[str]:
    lines = difflib.unified_diff(_lines(reference), _lines(mutant), n=1, lineterm="")
    yield from islice(lines, 2, None)  # without the names of files


def _lines(answer: WrittenAnswer) -> list[str]:
    lines: list[str] = []
    for call in answer.calls:
        arguments = json.dumps(call.input, ensure_ascii=False)
        lines.append(f"{call.tool}({arguments})")
    return lines + answer.text.splitlines()


def _evaluators(
    grades: CaseGrades, every: Sequence[tuple[str, Graded]]
) -> Iterator[EvaluatorRecord]:
    answers = _unnamed(every)
    for index, evaluator in enumerate(grades.case.evaluators):
        state = _state(index, evaluator, answers, grades)
        same_as = _same_as(index, answers, grades) if state == "redundant" else None
        yield _evaluator(index, evaluator, every, state, same_as)


def _evaluator(
    index: int,
    evaluator: PlanEvaluator,
    every: Sequence[tuple[str, Graded]],
    state: State,
    same_as: str | None,
) -> EvaluatorRecord:
    judged, errors = _judged(index, every)
    reason = next(iter(errors.values()), None)
    by_judge = needs_judge(evaluator)
    return EvaluatorRecord(
        name=evaluator.name,
        state=state,
        errors=() if by_judge else tuple(errors),
        reason=shortened(reason, LONGEST_REASON) if reason is not None else None,
        same_as=same_as,
        judged=judged if by_judge else 0,
        unjudged=len(every) - judged if by_judge else 0,
    )


def _judged(index: int, every: Iterable[tuple[str, Graded]]) -> tuple[int, Mapping[str, str]]:
    """Return how many answers an evaluator scored, and why others have no score.

    The latter by null agent or operator, of each its first answer.
    """
    errors: dict[str, str] = {}
    judged = 0
    for name, graded in every:
        result = graded.results[index]
        if _is_scored(result):
            judged += 1
        elif result is not None:
            errors.setdefault(name, result.reasoning)
    return judged, errors


def _same_as(index: int, every: Sequence[Graded], grades: CaseGrades) -> str | None:
    """Return an evaluator that gives each answer the same verdict."""
    answers = [*every, *grades.probes]
    own = _verdicts(index, answers)
    for other, evaluator in enumerate(grades.case.evaluators):
        if other != index and _verdicts(other, answers) == own:
            return evaluator.name
    return None


def _verdicts(index: int, answers: Sequence[Graded]) -> list[str]:
    """Return the verdict of an evaluator on each answer; NOT_SCORED if its judge is left out."""
    return [_verdict(graded.results[index]) for graded in answers]


def _verdict(result: EvaluatorResult | None) -> str:
    return NOT_SCORED if result is None else result.verdict


def _state(
    index: int, evaluator: PlanEvaluator, every: Sequence[Graded], grades: CaseGrades
) -> State:
    if evaluator.is_limit or _only_shows(evaluator):
        return "untried"  # nothing ran, or it is not to matter
    given = set(_verdicts(index, every))
    if given <= {NOT_SCORED, "error"}:
        return "unjudged" if needs_judge(evaluator) else "untried"
    if given == {"pass"}:
        return "vacuous" if _is_vacuous(index, evaluator, grades) else "untried"
    if _is_needed(index, every, grades.probes):
        return "needed"
    is_open = NOT_SCORED in given or (needs_judge(evaluator) and "error" in given)
    if not grades.mutants or is_open or _only_forbids(evaluator):
        return "untried"
    return "redundant"


def _is_vacuous(index: int, evaluator: PlanEvaluator, grades: CaseGrades) -> bool:
    """Whether an evaluator that passes all answers would pass any."""
    if any(graded.outcome == "passes" for _, graded in grades.null_agents):
        return True
    # What forbids something has nothing to catch in these answers.
    if _only_forbids(evaluator):
        return False
    return set(_verdicts(index, grades.unusual)) <= {NOT_SCORED, "pass"}


def _is_needed(index: int, every: Sequence[Graded], probes: Sequence[Graded]) -> bool:
    """Whether an answer gets another outcome without the evaluator."""
    if any(graded.outcome != graded.without[index] for graded in every):
        return True
    return any(
        graded.outcome == "caught" and graded.without[index] != "caught" for graded in probes
    )


def _only_forbids(evaluator: PlanEvaluator) -> bool:
    """Whether wrong answers need not fail it.

    It forbids something, or keeps what works before an agent begins.
    """
    is_subset = isinstance(evaluator, ToolTrajectoryEvaluator) and evaluator.mode == "subset"
    return evaluator.negate or is_subset or evaluator.needs_workspace


def _only_shows(evaluator: PlanEvaluator) -> bool:
    """Whether an evaluator has no weight because its golden patch is one solution of many."""
    has_golden = isinstance(evaluator, PlanDiffEvaluator) and evaluator.golden is not None
    return has_golden and not evaluator.weight and not evaluator.required
