"""Plan → wrong answers → evaluate → proof."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agentv_ci.app.case_grading import CaseGrading, no_judge
from agentv_ci.app.compile import CompiledPlan
from agentv_ci.app.evaluator_lines import EvaluatorLines
from agentv_ci.app.run import require_folders, scoring_services
from agentv_ci.atomic import write_whole
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.plan import Plan, PlanCase, flat
from agentv_ci.contracts.proof import CaseProof, Judges, NullAgentsGate, Proof
from agentv_ci.evaluate.evaluators import load_evaluators, require_packages
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run_services import RunServices, ignore
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.prove.answers import WrittenAnswer, reference_of
from agentv_ci.prove.case_proof import case_proof
from agentv_ci.prove.findings import findings
from agentv_ci.prove.gate import gate_of, summary_of
from agentv_ci.redaction import Redactor, secrets_of


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """How a plan is proven."""

    seed: int = 0
    workers: int = 1
    judges: Judges = "skip"
    min_kill_rate: float | None = None
    """Replaces the thresholds of the documents, for all cases together."""
    null_agents: NullAgentsGate | None = None
    """Replaces the settings of the documents."""


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
            grading = CaseGrading(case, plan, root, scoring_services(no_judge, root, materials, clean))
            return case_proof(await grading.all_grades(others[case.suite], options.seed))

        proofs = await _in_order(tried, graded, options.workers)
    lines = EvaluatorLines(root, root, math.inf)
    found = [
        finding
        for case, proof in zip(tried, proofs, strict=True)
        for finding in findings(case, proof, partial(lines.find, case.suite, case.id))
    ]
    return Proof(
        schema_=schema_id("proof-v1"),
        plan_digest=plan.digest,
        seed=options.seed,
        judges=options.judges,
        gate=gate_of(plan.suites, proofs, options.min_kill_rate, options.null_agents),
        summary=summary_of(proofs, skipped=len(cases) - len(tried)),
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
