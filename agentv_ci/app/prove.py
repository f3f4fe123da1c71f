"""Plan → wrong answers → evaluate → proof."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agentv_ci.app.compile import CompiledPlan
from agentv_ci.app.evaluator_lines import EvaluatorLines
from agentv_ci.app.run import require_folders, scoring_services
from agentv_ci.atomic import write_whole
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.exchange import JudgeQuestion, Response, Score
from agentv_ci.contracts.plan import Plan, PlanCase, PlanEvaluator, PlanLlmJudgeEvaluator, flat, needs_judge
from agentv_ci.contracts.proof import CaseProof, Judges, Outcome, Proof, ProofGate, ProofSummary, kill_rate
from agentv_ci.evaluate.evaluators import assess, load_evaluators, require_packages
from agentv_ci.evaluate.scoring import Assessment, assessment_of, combine
from agentv_ci.evaluate.submission import EvaluatorServices, Submission
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request
from agentv_ci.execute.run_services import RunServices, ignore
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.prove.answers import WrittenAnswer, least_tokens_of, reference_of, response_of
from agentv_ci.prove.case_proof import CaseGrades, Graded, case_proof
from agentv_ci.prove.findings import findings
from agentv_ci.prove.mutants import mutants_of, probes_of
from agentv_ci.prove.null_agents import null_answers
from agentv_ci.redaction import Redactor, secrets_of
from agentv_ci.text import counted


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """How a plan is proven."""

    seed: int = 0
    workers: int = 1
    judges: Judges = "skip"


async def prove(compiled: CompiledPlan, neighbours: Plan, options: ProofOptions, services: RunServices) -> Proof:
    """Grade wrong answers to every case with its own evaluators; no target is asked.

    `neighbours` is a plan with more cases of the same suites, whose reference answers are wrong elsewhere. Raises
    UsageError when an evaluator cannot run at all, OSError when a file of the plan cannot be written.
    """
    plan, root = compiled.plan, compiled.origin.root
    cases = [*_once(plan.cases)]
    tried = [case for case in cases if case.skip is None]
    require_packages(plan)
    require_folders(plan, root, answering=False)
    load_evaluators(each for case in tried for each in flat(case.evaluators))
    redactor = Redactor(secrets_of(plan.targets, {}, services.environment.variables))
    clean = replace(services.without_secrets(redactor), warn=ignore)  # scores of odd answers may be odd
    others = _references(neighbours)
    with Materials(plan.files, root) as materials:

        async def graded(case: PlanCase) -> CaseProof:
            grading = _CaseGrading(case, plan, root, scoring_services(_no_judge, root, materials, clean))
            return case_proof(await grading.all_grades(others[case.suite], options.seed))

        proofs = await _in_order(tried, graded, options.workers)
    lines = EvaluatorLines(root, root, math.inf)
    found = [
        finding
        for case, proof in zip(tried, proofs, strict=True)
        for finding in findings(case, proof, partial(lines.find, case.suite, case.id))
    ]
    summary = _summary(proofs, skipped=len(cases) - len(tried))
    return Proof(
        schema_=schema_id("proof-v1"),
        plan_digest=plan.digest,
        seed=options.seed,
        judges=options.judges,
        gate=_gate(summary),
        summary=summary,
        findings=tuple(found),
        cases=tuple(proofs),
    )


def _once(cases: Iterable[PlanCase]) -> Iterator[PlanCase]:
    """Yield each case once, even if several targets answer it: targets are not asked."""
    seen: set[tuple[str, str]] = set()
    for case in cases:
        if (case.suite, case.id) not in seen:
            seen.add((case.suite, case.id))
            yield case


def _references(plan: Plan) -> Mapping[str, Sequence[WrittenAnswer]]:
    """Return suite → the reference answers of its cases."""
    found: dict[str, list[WrittenAnswer]] = {}
    for case in _once(plan.cases):
        reference = reference_of(case)
        found.setdefault(case.suite, []).extend([reference] if reference is not None else [])
    return found


async def _in_order(
    cases: Sequence[PlanCase], grade: Callable[[PlanCase], Awaitable[CaseProof]], workers: int
) -> list[CaseProof]:
    """Return the proofs of cases in their order, of which `workers` are made at the same time."""
    done: dict[int, CaseProof] = {}
    queue = iter(enumerate(cases))

    async def work() -> None:
        for place, case in queue:
            done[place] = await grade(case)
            await asyncio.sleep(0)  # evaluators that do not wait must not block signals

    async with asyncio.TaskGroup() as group:
        for _ in range(min(workers, len(cases))):
            group.create_task(work())
    return [done[place] for place in range(len(cases))]


async def _no_judge(target: str, question: JudgeQuestion) -> Response:
    raise AssertionError(f"{target} is left out: {question}")


class _CaseGrading:
    """Grades answers to one case. Judges are left out: what depends on them is undecided."""

    def __init__(self, case: PlanCase, plan: Plan, root: Path, services: EvaluatorServices) -> None:
        self._case = case
        self._tried = tuple(each for each in case.evaluators if not needs_judge(each))
        self._files = plan.files
        self._services = services
        cwd = (root / case.suite).parent
        locate = services.locate
        self._request = build_request(case, plan.files, locate, cwd=cwd, seed=None)
        self._least_tokens = least_tokens_of(case)
        self._known: dict[tuple[object, ...], tuple[Outcome, tuple[Outcome, ...]]] = {}

    async def all_grades(self, others: Sequence[WrittenAnswer], seed: int) -> CaseGrades:
        """Return the grades of null agents, of the reference answer and, if it passes, of its mutants."""
        case, key = self._case, f"{seed}:{self._case.digest}"
        nulls = [(each, await self._graded(each.answer)) for each in null_answers(case, self._request, others, key)]
        answer = reference_of(case)
        reference = await self._graded(answer, self._least_tokens) if answer is not None else None
        mutants = mutants_of(case, key) if reference is not None and reference.outcome != "caught" else []
        damaged = [(each, await self._graded(each.answer, self._least_tokens)) for each in mutants]
        grades = CaseGrades(case, nulls, reference, damaged)
        if not (damaged and grades.seem_redundant):
            return grades
        return replace(grades, probes=[await self._graded(each, self._least_tokens) for each in probes_of(case)])

    async def _graded(self, answer: WrittenAnswer, least_tokens: int = 0) -> Graded:
        case = self._case
        response = response_of(answer, least_tokens=least_tokens)
        submission = Submission(case, self._request, response, self._files)
        scored = iter(
            await assess([each for each in case.evaluators if not needs_judge(each)], submission, self._services)
        )
        assessments = [None if needs_judge(each) else next(scored) for each in case.evaluators]
        outcome, without = self._outcomes(assessments)
        return Graded(outcome, without, tuple(None if each is None else each.result for each in assessments))

    def _outcomes(self, assessments: Sequence[Assessment | None]) -> tuple[Outcome, tuple[Outcome, ...]]:
        """Return the outcome, and those without each evaluator in turn; most answers get the same few scores."""
        key = tuple(
            None if each is None else (each.result.verdict, each.result.score, each.fails_case) for each in assessments
        )
        if key not in self._known:
            pairs = list(zip(self._case.evaluators, assessments, strict=True))
            without = tuple(self._outcome(pairs[:place] + pairs[place + 1 :]) for place in range(len(pairs)))
            self._known[key] = self._outcome(pairs), without
        return self._known[key]

    def _outcome(self, pairs: Sequence[tuple[PlanEvaluator, Assessment | None]]) -> Outcome:
        if not pairs:
            return "passes"
        threshold = self._case.threshold
        at_worst, at_best = (
            combine([each or _judged(evaluator, threshold, best=best) for evaluator, each in pairs], threshold).verdict
            for best in (False, True)
        )
        if at_best != "pass":
            return "caught"
        return "passes" if at_worst == "pass" else "undecided"


def _judged(evaluator: PlanEvaluator, threshold: float, *, best: bool) -> Assessment:
    """Return the best or the worst assessment that a judge may lead to."""
    only_scores = isinstance(evaluator, PlanLlmJudgeEvaluator) and not evaluator.rubrics
    score = Score(float(best != evaluator.negate), misses_required=not best and not only_scores)
    return assessment_of(evaluator, score, threshold)


def _summary(proofs: Sequence[CaseProof], *, skipped: int) -> ProofSummary:
    killed, survived = sum(each.killed for each in proofs), sum(each.survived for each in proofs)
    return ProofSummary(
        cases=len(proofs),
        skipped=skipped,
        unproven=sum(not each.proven for each in proofs),
        without_reference=sum(each.reference == "none" for each in proofs),
        passed_by_null_agents=sum(bool(each.passing) for each in proofs),
        references_failed=sum(each.reference == "fails" for each in proofs),
        mutants=sum(each.mutants for each in proofs),
        killed=killed,
        survived=survived,
        kill_rate=kill_rate(killed, survived),
        judged_evaluators=sum(one.state == "judged" for each in proofs for one in each.evaluators),
    )


def _gate(summary: ProofSummary) -> ProofGate:
    failed = summary.references_failed
    reasons = (
        [counted(failed, "reference answer fails its evaluators", "reference answers fail their evaluators")]
        if failed
        else []
    )
    return ProofGate(passed=not reasons, reasons=tuple(reasons))


def write_proof(proof: Proof, path: Path) -> None:
    """Write a proof; raises OSError."""
    write_whole(path, lambda file: file.write(proof_text(proof).encode()))


def proof_text(proof: Proof) -> str:
    """Return a proof as JSON."""
    return json.dumps(proof.model_dump(by_alias=True), indent=2, ensure_ascii=False) + "\n"


def diagnostics_of(proof: Proof, root: Path) -> Iterator[Diagnostic]:
    """Yield the findings as diagnostics of files in a repository."""
    for each in proof.findings:
        yield Diagnostic(
            rule=each.rule,
            severity=each.severity,
            message=each.message,
            path=str(root / each.path),
            line=each.line,
            column=each.column,
            end_line=each.line,
            end_column=each.column,
            case=each.case,
            hint=each.hint,
        )
