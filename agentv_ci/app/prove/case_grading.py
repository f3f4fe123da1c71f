"""Grades of answers that are not from a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import filterfalse
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.app.run.grading import work_of
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.exchange import JudgeQuestion, Response, Score
from agentv_ci.contracts.gate import WrongAnswer
from agentv_ci.contracts.plan import Plan, PlanCase, outcomes_of
from agentv_ci.contracts.plan_evaluators import PlanEvaluator, PlanLlmJudgeEvaluator, needs_judge
from agentv_ci.contracts.proof import LeftOut, Outcome
from agentv_ci.contracts.results import Change, EvaluatorResult
from agentv_ci.evaluate.evaluators import assess
from agentv_ci.evaluate.scoring import Assessment, assessment_of, combine
from agentv_ci.evaluate.submission import EvaluatorServices, Submission
from agentv_ci.execute.prompt import build_request
from agentv_ci.prove.answers import (
    UNUSUAL,
    Mutant,
    Neighbours,
    WrittenAnswer,
    golden_of,
    least_tokens_of,
    leaves_all,
    reads_answers,
    reference_of,
    response_of,
)
from agentv_ci.prove.case_proof import CaseGrades, Graded, states_of
from agentv_ci.prove.damaged_changes import change_mutants
from agentv_ci.prove.mutants import mutants_of, probes_of
from agentv_ci.prove.null_agents import null_answers
from agentv_ci.workspaces.bases import UnusableWorkspace, changes_by
from agentv_ci.workspaces.places import Workspaces


async def no_judge(target: str, question: JudgeQuestion) -> Response:
    """Stand in for judges that are left out, and are never asked."""
    raise AssertionError(f"{target} is left out: {question}")


class CaseGrading:
    """Grades answers to one case. What depends on an evaluator that did not score is undecided."""

    def __init__(
        self,
        case: PlanCase,
        plan: Plan,
        root: Path,
        services: EvaluatorServices,
        workspaces: Workspaces,
        *,
        asks_judges: bool,
    ) -> None:
        self._case = case
        self._judged = tuple(map(needs_judge, case.evaluators))
        self._tried = case.evaluators
        if not asks_judges:
            self._tried = tuple(filterfalse(needs_judge, case.evaluators))
        self._files = plan.files
        self._services = services
        self._workspaces = workspaces
        self._outcome_names = outcomes_of(case)
        self._reads_answers = reads_answers(case)
        cwd = (root / case.suite).parent
        self._request = build_request(case, plan.files, services.locate, cwd=cwd, seed=None)
        self._least_tokens = least_tokens_of(case)
        self._grades: dict[tuple[object, ...], Graded] = {}
        self._assessed_changes: dict[tuple[Change, ...] | None, list[Assessment]] = {}
        """What evaluators of outcomes say of changes, whatever the answer."""
        self._known: dict[tuple[object, ...], tuple[Outcome, tuple[Outcome, ...]]] = {}

    async def all_grades(
        self, others: Neighbours, seed: int, accepted: Mapping[WrongAnswer, str]
    ) -> CaseGrades:
        """Return the grades of null agents and of the reference answer.

        If the reference answer passes, its mutants are graded, too.

        `accepted` are null agents and operators that are not tried, each with the reason.
        """
        case, answer = self._case, await self._reference()
        # What it does not depend on may change, and the answers stay the same.
        key = f"{seed}:{case.suite}:{case.id}"
        tried, left_out = null_answers(case, self._request, others.answers, key, accepted)
        accepting = [LeftOut(name=name, reason=reason) for name, reason in accepted.items()]
        nulls = [(null, await self._graded(null.answer)) for null in tried]
        reference: Graded | None = None
        mutants: list[Mutant] = []
        if answer is not None:
            reference = await self._graded(answer, self._least_tokens)
            if reference.outcome != "caught":
                mutants = await self._mutants(answer, key, others, accepted)
        graded = await self._all_graded(mutant.answer for mutant in mutants)
        damaged = list(zip(mutants, graded, strict=True))
        if self._outcome_names and (answer is None or answer.changes is None):
            left_out.append(LeftOut(name="change-dropped", reason="there is no golden patch"))
        grades = CaseGrades(case, nulls, reference, damaged, left_out=[*accepting, *left_out])
        states = states_of(grades)
        if "redundant" in states and self._reads_answers:
            probes = self._like(probes_of(case), answer)
            grades = replace(grades, probes=await self._all_graded(probes))
        if "vacuous" in states:
            grades = replace(grades, unusual=await self._all_graded(UNUSUAL))
        return grades

    async def _all_graded(self, answers: Iterable[WrittenAnswer]) -> list[Graded]:
        return [await self._graded(answer, self._least_tokens) for answer in answers]

    async def _reference(self) -> WrittenAnswer | None:
        """Return the reference answer, and what it leaves behind; None if the case has neither."""
        answer = reference_of(self._case)
        if not self._outcome_names:
            return answer
        changes = await self._golden()
        if answer is None and not self._reads_answers:
            answer = WrittenAnswer("")
        is_known = changes is not None or self._reads_answers
        return replace(answer, changes=changes) if answer is not None and is_known else None

    async def _golden(self) -> tuple[Change, ...] | None:
        """Return what a right answer leaves behind; None if nothing says so."""
        case, evaluator = self._case, golden_of(self._case)
        if leaves_all(case):
            return ()
        if case.workspace is None or evaluator is None or evaluator.golden is None:
            return None
        try:
            base = await self._workspaces.base_of(case.workspace)
            return await changes_by(
                self._files[evaluator.golden.sha256].content, base, self._services.environ
            )
        except (OSError, UnusableWorkspace):
            return ()  # the evaluator says why it cannot score

    async def _mutants(
        self, answer: WrittenAnswer, key: str, others: Neighbours, accepted: Collection[WrongAnswer]
    ) -> list[Mutant]:
        found: list[Mutant] = []
        if self._reads_answers:
            texts = mutants_of(self._case, self._request.prompt, key, others, accepted)
            for mutant in texts:
                written = replace(mutant.answer, changes=answer.changes)
                found.append(replace(mutant, answer=written))
        if answer.changes and self._case.workspace is not None:
            work = await self._workspaces.work_of(self._case.workspace, ())
            found += change_mutants(answer, work.file, key, accepted)
        return found

    def _like(
        self, answers: Iterable[WrittenAnswer], reference: WrittenAnswer | None
    ) -> list[WrittenAnswer]:
        """Return answers that leave behind what the reference answer does."""
        if reference is None:
            return []
        return [replace(answer, changes=reference.changes) for answer in answers]

    async def _graded(self, answer: WrittenAnswer, least_tokens: int = 0) -> Graded:
        """Return the grade of an answer; the same answer is scored once."""
        key = answer.text, repr(answer.calls), least_tokens, answer.changes
        if key not in self._grades:
            assessments = self._in_place(await self._assessed(answer, least_tokens))
            outcome, without = self._outcomes([*map(_decided, assessments, self._judged)])
            results = tuple(map(self._result, assessments))
            self._grades[key] = Graded(outcome, without, results)
        return self._grades[key]

    async def _assessed(self, answer: WrittenAnswer, least_tokens: int) -> list[Assessment]:
        """Return what evaluators say of an answer.

        Evaluators of outcomes say nothing if it is not known what is left behind.
        """
        changes = answer.changes
        work = await work_of(self._case, changes, self._workspaces)
        response = response_of(answer, least_tokens=least_tokens)
        submission = Submission(self._case, self._request, response, self._files, work)
        alone: list[PlanEvaluator] = []
        others: list[PlanEvaluator] = []
        for evaluator in self._tried:
            if changes is None and evaluator.name in self._outcome_names:
                continue
            (alone if evaluator.needs_workspace else others).append(evaluator)
        if changes not in self._assessed_changes:
            self._assessed_changes[changes] = await assess(alone, submission, self._services)
        return [*self._assessed_changes[changes], *await assess(others, submission, self._services)]

    def _result(self, assessment: Assessment | None) -> EvaluatorResult | None:
        """Return the result of an evaluator, without the repository's folder in its error."""
        if assessment is None:
            return None
        result = assessment.result
        if result.status != "error":
            return result
        return result.model_copy(
            update={"reasoning": result.reasoning.replace(f"{self._services.root}/", "")}
        )

    def _in_place(self, assessments: Sequence[Assessment]) -> list[Assessment | None]:
        """Return an assessment for each evaluator of the case; None where a judge is left out."""
        by_name = {assessment.result.name: assessment for assessment in assessments}
        return [by_name.get(evaluator.name) for evaluator in self._case.evaluators]

    def _outcomes(
        self, assessments: Sequence[Assessment | None]
    ) -> tuple[Outcome, tuple[Outcome, ...]]:
        """Return the outcome, and those without each evaluator in turn.

        Most answers get the same few scores.
        """
        key = tuple(map(_score_of, assessments))
        if key not in self._known:
            pairs = list(zip(self._case.evaluators, assessments, strict=True))
            others = (pairs[:index] + pairs[index + 1 :] for index in range(len(pairs)))
            self._known[key] = self._outcome(pairs), tuple(map(self._outcome, others))
        return self._known[key]

    def _outcome(self, pairs: Sequence[tuple[PlanEvaluator, Assessment | None]]) -> Outcome:
        if not pairs:
            return "passes"
        if self._verdict(pairs, best=True) != "pass":
            return "caught"
        has_all = all(assessment for _, assessment in pairs)
        if has_all or self._verdict(pairs, best=False) == "pass":
            return "passes"
        return "undecided"

    def _verdict(
        self, pairs: Sequence[tuple[PlanEvaluator, Assessment | None]], *, best: bool
    ) -> Verdict:
        """Return the verdict of an answer.

        Evaluators that did not score count as the best or the worst that they may say.
        """
        threshold = self._case.threshold
        assessments = [
            assessment or _judged(evaluator, threshold, best=best)
            for evaluator, assessment in pairs
        ]
        return combine(assessments, threshold).verdict


def _score_of(assessment: Assessment | None) -> tuple[object, ...] | None:
    """Return what an outcome depends on."""
    if assessment is None:
        return None
    return assessment.result.verdict, assessment.result.score, assessment.fails_case


def _decided(assessment: Assessment | None, is_judged: bool) -> Assessment | None:
    """Return an assessment; None where a judge is needed and did not score."""
    if assessment is not None and is_judged and assessment.result.status == "error":
        return None
    return assessment


def _judged(evaluator: PlanEvaluator, threshold: float, *, best: bool) -> Assessment:
    """Return the best or the worst assessment that an evaluator that did not score may lead to."""
    only_scores = evaluator.needs_workspace or (
        isinstance(evaluator, PlanLlmJudgeEvaluator) and not evaluator.rubrics
    )
    score = Score(float(best != evaluator.negate), misses_required=not best and not only_scores)
    return assessment_of(evaluator, score, threshold)
