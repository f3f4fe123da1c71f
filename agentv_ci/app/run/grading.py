"""How the answers of a run are graded: evaluators with the services of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.base.prices import load_prices
from agentv_ci.contracts.exchange import Ask, Grade, Request, Response
from agentv_ci.contracts.plan import Plan, PlanCase, outcomes_of
from agentv_ci.contracts.results import Change, OutputMessage, ToolCall, Usage
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.submission import EvaluatorServices, OtherArms, Submission
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run_services import GradeAnswer, RunOptions, RunServices
from agentv_ci.execute.workspace_records import NOT_KEPT
from agentv_ci.results.rows import Trial
from agentv_ci.workspaces.bases import UnusableWorkspace
from agentv_ci.workspaces.places import Work, Workspaces


def grader(
    plan: Plan,
    options: RunOptions,
    materials: Materials,
    services: RunServices,
    workspaces: Workspaces,
    other_arms: Callable[[Trial, str], OtherArms | str | None] = lambda *_: None,
) -> GradeAnswer:
    """Return what grades the answers to a plan's cases, whose evaluators are loaded.

    `other_arms` returns the answers of other arms to compare one with, or why it cannot be
    compared.
    """
    # Now: in the middle of a run, no file descriptor may be free.
    load_prices()
    for contract in (ToolCall, OutputMessage, Usage):
        # Building them later would count towards the duration of the first answer.
        contract.model_rebuild()

    async def grade(trial: Trial, request: Request, response: Response, ask: Ask) -> Grade:
        case = trial.case
        scoring = scoring_services(ask, options.root, materials, services)
        work = None if options.dry_run else await work_of(case, response.changes, workspaces)
        compared = other_arms(trial, response.answer)
        return await evaluate(
            Submission(case, request, response, plan.files, work, compared), scoring
        )

    return grade


async def work_of(
    case: PlanCase, changes: tuple[Change, ...] | None, workspaces: Workspaces
) -> Work | str | None:
    """Return what the agent has left behind, or why it cannot be graded.

    None for a case that does not grade it.
    """
    if not outcomes_of(case):
        return None
    if case.workspace is None:
        return "the case has no workspace"
    if changes is None:
        return f"the row does not hold what the agent left behind: {NOT_KEPT}"
    try:
        return await workspaces.work_of(case.workspace, changes)
    except (OSError, UnusableWorkspace) as error:
        return f"the workspace cannot be made: {error}"


def scoring_services(
    ask: Ask, root: Path, materials: Materials, services: RunServices
) -> EvaluatorServices:
    """Return the services of the evaluators of one answer."""
    return EvaluatorServices(
        ask=ask,
        locate=materials.locate,
        locate_together=materials.locate_together,
        read_yaml=read_yaml,
        environ=services.environment.variables,
        root=root,
        log=services.log,
        warn=services.warn,
        clean=services.redactor.result,
        hides=services.redactor.hides,
        hides_match=services.redactor.hides_match,
    )
