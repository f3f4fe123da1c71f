"""The second step of the GitHub Action: publishes the files of the first one.

Agents that ran in the first step may have changed these files, so they are untrusted data: limited
in size, and never read through a symbolic link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from agentv_ci.analysis.cases.quarantine import in_quarantine
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.app.documents.evaluator_lines import EvaluatorLines
from agentv_ci.app.run.files import read_run_report, report_path, why
from agentv_ci.base.atomic import replacing
from agentv_ci.base.json_access import read_json, require_text
from agentv_ci.base.text import counted, without_commands
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.contracts import action
from agentv_ci.contracts.action import ActionRun, ActionVerdict, Annotation, Level, PastRun
from agentv_ci.contracts.command_output import DiagnosticsDocument, PlanDiff
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.proof import Proof
from agentv_ci.contracts.report import Counts, RunReport
from agentv_ci.errors import BUG, FAILED, INTERRUPTED, PASSED, UNDECIDED, UsageError
from agentv_ci.github.base import with_base
from agentv_ci.github.check import Conclusion
from agentv_ci.github.history import add_to_history, with_history
from agentv_ci.github.publishing import HistoryMode, Publication, PublishOptions, publish
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.report_links import links_of
from agentv_ci.github.run import action_run, refuse_links, this_use
from agentv_ci.github.workflow import Workflow
from agentv_ci.load.discover import find_root
from agentv_ci.report import diagnostics
from agentv_ci.report.job import Job, text
from agentv_ci.report.renderers.annotations import annotate
from agentv_ci.report.view import Links, RunView
from agentv_ci.results.files import read_rows, scan_rows

M = TypeVar("M", bound=BaseModel)

MAX_BYTES = 64 * 1024 * 1024
"""Limit for each file that is read at once."""
MAX_RESULTS_BYTES = 2 * 1024 * 1024 * 1024
NOT_CONTAINED = (
    "the step that ran the agents did not end properly, "
    "so they may have changed its results and this job: "
    "see its error above, or whether something ended the process"
)
NARROWED = "options left cases out, such as `only-changed` or a filter"
NO_COMMIT = "0" * 40
NO_CASES = Counts(cases=0, passed=0, failed=0, errored=0, not_run=0, flaky=0, rows=0)

FailOn = Literal["gate", "errors", "never"]
Say = Callable[[str], None]
"""Prints a command to the runner, or a line to the log."""


class Published(Struct, frozen=True):
    """What the step did."""

    run: ActionRun
    exit_code: int
    comment_url: str | None


async def publish_run(
    folder: Path,
    workflow: Workflow,
    options: PublishOptions,
    fail_on: FailOn,
    *,
    contained: bool,
    environment: Environment,
    say: Say,
) -> Published:
    """Publish the results in a folder.

    The comment is also written to the folder. Inside the action, the results must be of the same
    use of it. If the step before failed, so that agents may have changed anything, they are not
    `contained` and the verdict is an error. `say` prints commands to the runner. Raises UsageError
    for files that cannot be read, OSError for the runner's files.
    """
    job = _job(folder, workflow, this_use(environment.variables))
    if not contained:
        uncontained = {"exit_code": BUG, "verdict": "error", "reason": NOT_CONTAINED, "hint": None}
        job = replace(job, run=job.run.model_copy(update=uncontained), reported=None)
    token = environment.variables.get("GITHUB_TOKEN") or None
    try:
        job = await with_base(job, options.base_artifact, workflow, token, environment)
    except NotPublished as reason:
        say(without_commands(f"no comparison with the base branch: {reason}"))
    job = await _with_history(job, options.history, workflow, token, environment, say)
    report = job.reported.report if job.reported is not None else None
    past = _past(job.run, report, workflow, environment.now())
    publication = Publication(
        annotations=tuple(_annotations(job, workflow, environment)),
        text=lambda limit, last: text(job, limit, last),
        outputs=_outputs(past, report, folder),
        run=past,
        is_part=(report is not None and report.shard is not None)
        or job.run.exit_code == INTERRUPTED,
        conclusion=_conclusion(past.verdict, report, code := exit_code(job.run, fail_on)),
    )
    comment, url = await publish(
        publication, workflow, options, token=token, environment=environment, say=say
    )
    if options.history == "write" and workflow.is_of_default_branch and not publication.is_part:
        await _add_to_history(job, folder / action.RESULTS, workflow, token, environment, say)
    try:
        _write_comment(folder, comment)
    except OSError as error:
        problem = why(error, folder / action.COMMENT)
        say(annotation_command(Annotation("notice", f"cannot write {action.COMMENT}", problem)))
    return Published(job.run, code, url)


async def _with_history(
    job: Job,
    mode: HistoryMode,
    workflow: Workflow,
    token: str | None,
    environment: Environment,
    say: Say,
) -> Job:
    if mode == "off":
        return job
    try:
        return await with_history(job, workflow, token, environment)
    except NotPublished as reason:
        say(without_commands(f"the history says nothing of these cases: {reason}"))
        return job


async def _add_to_history(
    job: Job,
    results: Path,
    workflow: Workflow,
    token: str | None,
    environment: Environment,
    say: Say,
) -> None:
    """Add a run of all cases to the ledger, unless nothing was asked; a refusal is a notice."""
    if job.reported is None or job.reported.report.dry_run or not job.reported.outcomes:
        return
    if job.run.narrowed or job.reported.report.part_of is not None:
        say(annotation_command(Annotation("notice", "Not added to the history", NARROWED)))
        return
    try:
        added = await add_to_history(results, workflow, token, environment)
    except NotPublished as problem:
        say(annotation_command(Annotation("notice", "Not added to the history", str(problem))))
    else:
        say(without_commands(f"history: {counted(len(added.new), 'run')} added"))


def _conclusion(verdict: ActionVerdict, report: RunReport | None, code: int) -> Conclusion:
    """Return what a check run concludes.

    That is neither success nor failure if nothing was tested, or if the run may fail.
    """
    if code != PASSED:
        return "failure"
    is_dry = report is not None and report.dry_run
    if verdict == "pass" and not is_dry:
        return "success"
    return "neutral"


def _write_comment(folder: Path, comment: str) -> None:
    """Write the comment, for workflows that publish it themselves; replaces a link.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / action.COMMENT).unlink(missing_ok=True)
    with replacing(folder / action.COMMENT) as file:
        file.write(comment.encode("utf-8", "replace"))


def exit_code(run: ActionRun, fail_on: FailOn) -> int:
    """Return the exit code of the step, as set by the workflow."""
    if fail_on == "errors" and run.exit_code in (FAILED, UNDECIDED):
        return PASSED
    if fail_on == "never" and run.exit_code not in (2, BUG, INTERRUPTED):
        return PASSED
    return run.exit_code


def _job(folder: Path, workflow: Workflow, use: str | None) -> Job:
    refuse_links(folder)
    links = links_of(workflow)
    left = _document(folder / action.RUN, ActionRun)
    if use is not None and (left is None or left.use != use):
        # The files are from before this use of the action.
        return Job(_run_of_results(None, folder), None, None, None, links, str)
    proof = _document(folder / action.PROOF, Proof)
    reported = _reported(folder / action.RESULTS, links, proof)
    if (
        left is not None
        and workflow.event != "workflow_run"
        and left.run_id not in (0, workflow.run_id)
    ):
        raise UsageError(
            f"'{folder}' has results of run {left.run_id}; this is run {workflow.run_id}"
        )
    run = _concluded(left or _run_of_results(reported, folder), reported)
    diagnostics = _document(folder / action.DIAGNOSTICS, DiagnosticsDocument)
    changes = _document(folder / action.PLAN_DIFF, PlanDiff)
    prefix = f"{run.root.rstrip('/')}/"
    return Job(run, reported, diagnostics, changes, links, lambda path: path.removeprefix(prefix))


def _run_of_results(reported: RunView | None, folder: Path) -> ActionRun:
    """Return the record of a run that left only results, such as one of `report`."""
    root = find_root(folder / action.RUN, folder)
    if reported is None:
        return action_run(
            BUG, root=root, reason=f"no results in '{folder}': the run ended too early"
        )
    return action_run(reported.report.gate.exit_code, root=root)


def _concluded(run: ActionRun, reported: RunView | None) -> ActionRun:
    """Return the record of a run with the decision of the gate, unless the run failed after it."""
    if reported is None:
        return run
    gate = reported.report.gate
    if run.exit_code not in (PASSED, gate.exit_code):
        return run
    # A shard's exit code is not that of its gate. For other runs, a difference means that one of
    # the files was changed.
    return run.model_copy(
        update={"exit_code": gate.exit_code, "verdict": _verdict(run, reported.report)}
    )


def _reported(results: Path, links: Links, proof: Proof | None) -> RunView | None:
    if not _has_file(report_path(results)):
        return None
    report = read_run_report(results)
    if report is None:
        return None
    if not _has_file(results, MAX_RESULTS_BYTES):
        return RunView(report, (), tuple, links, proof)
    tally = Tally(compares=True)
    for row in scan_rows(results):
        tally.add(row)
    ran = tally.outcomes(leaves_cases=report.leaves_cases, is_decided=report.stopped == "decided")
    outcomes = in_quarantine(ran, report.quarantine)
    return RunView(report, outcomes, lambda: read_rows(results), links, proof)


def _document(path: Path, contract: type[M]) -> M | None:
    """Return the document in a file, None if there is none.

    Raises UsageError for an invalid one.
    """
    if not _has_file(path):
        return None
    try:
        # Read first: each error of pydantic would have a copy of all that it reads itself.
        return contract.model_validate(
            read_json(require_text(path.read_bytes()).decode(), strict=True)
        )
    except (OSError, ValueError, RecursionError) as error:
        # Without pydantic's message, which repeats the untrusted file.
        raise UsageError(f"'{path}' was not written by this version of agentv-ci") from error


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _has_file(path: Path, limit: int = MAX_BYTES) -> bool:
    """Whether a file exists; raises UsageError if it is not regular, or too large."""
    if not _is_file(path):
        if path.is_symlink() or path.exists():
            raise UsageError(f"'{path}' is not a regular file")
        return False
    if path.stat().st_size > limit:
        raise UsageError(f"'{path}' is larger than {limit // 1024 // 1024} MiB")
    return True


def _annotations(job: Job, workflow: Workflow, environment: Environment) -> Iterator[Annotation]:
    """Yield errors in documents, then failed cases, then warnings."""
    remarks: list[Annotation] = []
    if job.diagnostics is not None:
        remarks += diagnostics.annotate(job.diagnostics, job.relative)
    errors = [remark for remark in remarks if remark.level == "error"]
    yield from errors
    if job.reported is not None:
        lines = EvaluatorLines(Path(job.run.root), _checkout(workflow, environment))
        proof = job.reported.proof
        # The reports say that the run itself has passed.
        if proof is not None and not proof.gate.passed and job.run.exit_code == FAILED:
            yield Annotation("error", "Proof not passed", "\n".join(proof.gate.reasons))
        experiment = job.reported.report.experiment
        if experiment is None:
            yield from annotate(job.reported, lines.find)
        elif experiment.exit_code != PASSED:
            # Cases that an arm fails are not what an experiment is about.
            level: Level = "error" if job.run.exit_code != PASSED else "warning"
            yield Annotation(
                level,
                f"Experiment: {experiment.verdict}",
                "\n".join(experiment.reasons),
                experiment.name,
            )
    elif job.run.reason is not None and not errors:
        is_notice = job.run.exit_code == PASSED
        reason = job.run.reason
        if job.run.hint:
            reason += f"\n{job.run.hint}"
        yield Annotation(
            "notice" if is_notice else "error",
            "Nothing ran" if is_notice else "agentv-ci",
            reason,
            job.run.path,
            job.run.line,
        )
    yield from (remark for remark in remarks if remark.level != "error")


def _checkout(workflow: Workflow, environment: Environment) -> Path | None:
    """Return the checkout that rows were made from, None if it is not known.

    In a `workflow_run` the rows may be of a fork, and the checkout is another one.
    """
    if workflow.event == "workflow_run":
        return None
    workspace = environment.variables.get("GITHUB_WORKSPACE")
    return Path(workspace) if workspace else None


def _outputs(run: PastRun, report: RunReport | None, folder: Path) -> Mapping[str, str]:
    """Return the step's outputs: fixed texts, numbers and paths, never text of an agent."""
    files = {
        "results": action.RESULTS,
        "report": report_path(Path(action.RESULTS)).name,
        "junit": action.JUNIT,
        "html": action.HTML,
        "plan": action.PLAN,
    }
    # No links: uploading one would upload its target.
    paths = {
        name: str(path) if _is_file(path := folder / file) else "" for name, file in files.items()
    }
    counts = report.counts if report is not None else NO_CASES
    graded = sum(report.statistics.histogram) if report is not None else 0
    return {
        "verdict": run.verdict,
        "passed": str(counts.passed),
        "failed": str(counts.failed),
        "errored": str(counts.errored),
        "total": str(counts.cases),
        "pass-rate": _figure(min(counts.passed, graded) / graded if graded else None),
        "mean-score": _figure(run.mean),
        "cost-usd": _figure(run.cost_usd),
        **paths,
    }


def _verdict(run: ActionRun, report: RunReport) -> ActionVerdict:
    match report.gate.verdict:
        case "interrupted":
            return run.verdict if run.verdict != "pass" else "error"
        case "dry-run":
            return "pass"
        case verdict:
            return verdict


def _figure(value: float | None) -> str:
    return "" if value is None else f"{round(value, 6)}"


def _past(run: ActionRun, report: RunReport | None, workflow: Workflow, now: datetime) -> PastRun:
    past = PastRun(
        run_id=workflow.run_id,
        attempt=workflow.run_attempt,
        sha=workflow.shown_commit or NO_COMMIT,
        at=now.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
        verdict=run.verdict,
    )
    if report is None:
        return past
    figures = {
        "passed": report.counts.passed,
        "total": report.counts.cases,
        "mean": report.statistics.mean,
        "cost_usd": report.cost_usd,
    }
    return past.model_copy(update=figures)
