"""Plan → wrong answers → evaluate → proof."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.app.documents.compile import CompiledPlan, places_of_targets
from agentv_ci.app.documents.evaluator_lines import EvaluatorLines
from agentv_ci.app.prove.case_grading import CaseGrading, no_judge
from agentv_ci.app.prove.proof_judges import ProofJudges
from agentv_ci.app.run.grading import scoring_services
from agentv_ci.app.run.prepare import load_needs, require_folders, require_recordings
from agentv_ci.base.checkout import credentials
from agentv_ci.base.redaction import Redactor, secrets_of
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.gate import NullAgentsGate, WrongAnswer
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.proof import CaseProof, Judges, Proof, ProofFinding
from agentv_ci.contracts.targets import Target
from agentv_ci.errors import MissingVariables
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.resolution import resolve_plan
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices, ignore
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.prove.answers import (
    ALONE,
    Neighbours,
    WrittenAnswer,
    reference_of,
    structure_of,
    texts_of,
)
from agentv_ci.prove.case_proof import case_proof
from agentv_ci.prove.findings import CaseFindings, by_template
from agentv_ci.prove.gate import gate_of, summary_of
from agentv_ci.results.resume import NO_EARLIER_RUN
from agentv_ci.workspaces.places import Workspaces


class ProofOptions(Struct, frozen=True):
    """How a plan is proven."""

    seed: int = 0
    workers: int = 1
    judges: Judges = "skip"
    min_kill_rate: float | None = None
    """Replaces the thresholds of the documents, for all cases together."""
    null_agents: NullAgentsGate | None = None
    """Replaces the settings of the documents."""
    max_cost_usd: float | None = None
    """What judges may cost."""
    record: Path | None = None
    replay: Path | None = None

    def of_judges(self, root: Path) -> RunOptions:
        """Return the options with which judges are asked."""
        cost = self.max_cost_usd
        return RunOptions(
            root, workers=self.workers, max_cost_usd=cost, record=self.record, replay=self.replay
        )


async def prove(
    compiled: CompiledPlan, neighbours: Plan, options: ProofOptions, services: RunServices
) -> Proof:
    """Grade wrong answers to every case with its own evaluators.

    No target is asked but judges, if they are wanted.

    `neighbours` is a plan with more cases of the same suites, whose reference answers are wrong
    elsewhere. Raises UsageError when an evaluator cannot run at all, OSError when a file of the
    plan cannot be written.
    """
    plan, root = compiled.plan, compiled.origin.root
    cases = [*_once(plan.cases)]
    tried = [case for case in cases if case.skip is None]
    needs = load_needs(plan, answering=False)
    require_folders(needs.suites, root)
    others = _references(neighbours)
    accepted: dict[str, dict[WrongAnswer, str]] = {}
    for suite in plan.suites:
        accepted[suite.path] = dict.fromkeys(suite.gate.accept or (), "accepted")
    lines = EvaluatorLines(root, root, math.inf)
    async with AsyncExitStack() as stack:
        materials = stack.enter_context(Materials(plan.files, root))
        clean, judges = await _judges(compiled, options, services, stack)
        clean = replace(
            clean, warn=ignore, log=ignore
        )  # the proof says what scripts do with wrong answers
        variables = services.environment.variables
        workspaces = stack.enter_context(Workspaces(plan.files, root, variables, services.log))
        await workspaces.require(needs.of_graders)

        async def graded(case: PlanCase) -> CaseProof:
            ask = judges.of(case) if judges is not None else no_judge
            scoring = scoring_services(ask, root, materials, clean)
            grading = CaseGrading(
                case, plan, root, scoring, workspaces, asks_judges=judges is not None
            )
            of_case = {name: f"accepted: {reason}" for name, reason in (case.accept or {}).items()}
            without = accepted[case.suite] | of_case
            grades = await grading.all_grades(others.get(case.suite, ALONE), options.seed, without)
            proof = case_proof(grades, lines.template(case.suite, case.id))
            if judges is not None:
                judges.forget(case)
            return proof

        progress = Progress(total=len(tried))
        services.watch(progress)
        proofs = await _in_order(tried, graded, options.workers, progress)
    return Proof(
        schema_=schema_id("proof-v1"),
        plan_digest=plan.digest,
        seed=options.seed,
        judges=options.judges,
        gate=gate_of(plan.suites, proofs, options.min_kill_rate, options.null_agents),
        summary=summary_of(proofs, skipped=len(cases) - len(tried), judges=options.judges),
        findings=tuple(by_template(_findings(tried, proofs, lines))),
        cases=tuple(proofs),
    )


def _findings(
    cases: Sequence[PlanCase], proofs: Sequence[CaseProof], lines: EvaluatorLines
) -> Iterator[tuple[int | None, ProofFinding]]:
    """Yield what is wrong with the cases, each with the line of the case's template."""
    for case, proof in zip(cases, proofs, strict=True):
        line_of = partial(lines.find, case.suite, case.id)
        for finding in CaseFindings(case, proof, line_of).all():
            yield proof.template, finding


async def _judges(
    compiled: CompiledPlan, options: ProofOptions, services: RunServices, stack: AsyncExitStack
) -> tuple[RunServices, ProofJudges | None]:
    """Return services that remove secrets, and the judges that are asked.

    None: they are left out.
    """
    plan, how = compiled.plan, options.of_judges(compiled.origin.root)
    variables, ignored = services.environment.variables, list[str]()
    targets: Mapping[str, Target] = {}
    if options.judges != "skip":
        require_recordings(how)
        try:
            targets = resolve_plan(
                plan, how, NO_EARLIER_RUN, variables, ignored.append, only_judges=True
            )
        except MissingVariables as error:
            raise error.at(places_of_targets(compiled.origin, error.missing.keys())) from None
    secrets = secrets_of(plan.targets, targets, variables) | await credentials(
        compiled.origin.root, variables
    )
    clean = services.without_secrets(Redactor(secrets))
    for sentence in ignored:
        clean.warn(sentence)
    if options.judges == "skip" or not any(any(case.judges) for case in heads_of(plan)):
        return clean, None
    judges = ProofJudges(plan, targets, how, clean)
    await judges.open(stack)
    return clean, judges


def _once(cases: Iterable[PlanCase]) -> Iterator[PlanCase]:
    """Yield each case once, even if several targets answer it: targets are not asked."""
    seen: set[tuple[str, str]] = set()
    for case in cases:
        if (case.suite, case.id) not in seen:
            seen.add((case.suite, case.id))
            yield case


def _references(plan: Plan) -> Mapping[str, Neighbours]:
    """Return suite → the reference answers of its cases, each once."""
    found: dict[str, dict[tuple[str, str], WrittenAnswer]] = {}
    for case in plan.cases:
        answers = found.setdefault(case.suite, {})
        if (reference := reference_of(case)) is not None:
            answers.setdefault((reference.text, repr(reference.calls)), reference)
    return {suite: _neighbours(list(answers.values())) for suite, answers in found.items()}


def _neighbours(answers: Sequence[WrittenAnswer]) -> Neighbours:
    texts: dict[str, dict[str, None]] = {}
    for answer in answers:
        for key, text in texts_of(structure_of(answer.text)):
            texts.setdefault(key, {})[text] = None
    return Neighbours(answers, {key: [*found] for key, found in texts.items()})


async def _in_order(
    cases: Sequence[PlanCase],
    grade: Callable[[PlanCase], Awaitable[CaseProof]],
    workers: int,
    progress: Progress,
) -> list[CaseProof]:
    """Return the proofs of cases in their order, of which `workers` are made at the same time."""
    done: dict[int, CaseProof] = {}
    queue = iter(enumerate(cases))

    async def work() -> None:
        for index, case in queue:
            key = (case.suite, case.id, case.target), 1
            progress.now[key] = case.id
            done[index] = proof = await grade(case)
            del progress.now[key]
            progress.done += 1
            is_sound = not (proof.passing or proof.survivors or proof.reference == "fails")
            progress.passed += is_sound
            progress.failed += not is_sound
            await asyncio.sleep(0)  # evaluators that do not wait must not block signals

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(cases))):
                group.create_task(work())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return list(map(done.__getitem__, range(len(cases))))


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
