"""Hold a run of a pull request against the results of the base branch.

This is for information: the gate has decided.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from agentv_ci.analysis.cases.on_base import BaseBranch, in_results
from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side, compare
from agentv_ci.app.run.baseline import side_of
from agentv_ci.app.run.files import report_path
from agentv_ci.contracts.action import RESULTS
from agentv_ci.contracts.comparison import Comparison
from agentv_ci.contracts.exchange import Environment
from agentv_ci.github.base_results import BaseResults, fetch_base_results
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow
from agentv_ci.report.job import Job
from agentv_ci.report.view import RunView

MAX_FILE_BYTES = 256 * 1024 * 1024


async def with_base(
    job: Job, artifact: str, workflow: Workflow, token: str | None, environment: Environment
) -> Job:
    """Return the job of a pull request with what its base branch does.

    That is a comparison, unless there is one, and what the cases that did not pass do there. Raises
    NotPublished if there are no results to compare with.
    """
    reported = job.reported
    if reported is None or token is None or not artifact or not workflow.is_of_pull_request:
        return job
    report = reported.report
    red = [*reported.errors, *reported.failures]
    if (report.comparison is not None and not red) or report.dry_run or report.shard is not None:
        return job
    base = await fetch_base_results(artifact, workflow, token, environment)
    comparison = report.comparison
    with TemporaryDirectory() as folder:
        try:
            older = _side(base, Path(folder))
            if comparison is None:
                comparison = _compared(older, reported, environment)
        except Exception as error:
            # What damaged archives raise is not documented, and the comparison is for information.
            raise NotPublished(
                f"the results of {base.name} cannot be read: {type(error).__name__}"
            ) from error
    reported = replace(reported, base=BaseBranch(base.name, in_results(red, older.cases)))
    if report.comparison is None:
        if not comparison.shares_cases:
            raise NotPublished(f"{base.name} has none of these cases")
        reported = replace(reported, report=report.model_copy(update={"comparison": comparison}))
    return replace(job, reported=reported)


def _compared(older: Side, reported: RunView, environment: Environment) -> Comparison:
    against = BaselineComparison(
        older,
        "this run",
        environment.now(),
        reported.rows,
        is_part=reported.report.filtered,
    )
    return compare(against, reported.outcomes, reported.report.gate.settings)


def _side(base: BaseResults, folder: Path) -> Side:
    """Return the results of an archive; they are unpacked into the folder."""
    results = folder / RESULTS
    with zipfile.ZipFile(io.BytesIO(base.archive)) as packed:
        for path in (results, report_path(results)):
            path.write_bytes(_content(packed, path.name))
    return side_of(results, base.name)


def _content(packed: zipfile.ZipFile, name: str) -> bytes:
    """Return a file at the top of the archive; raises ValueError if it is missing or too large."""
    try:
        if packed.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that GitHub does not use")
        with packed.open(name) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except KeyError as error:
        raise ValueError(f"no {name}") from error
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"{name} is too large")
    return content
