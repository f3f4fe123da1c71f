"""The ledger of the repository that a workflow runs in, reached with the token of the job.

It is read and written through a clone of its own: agents may have changed the checkout, its remote and its refs. They
may also have changed the user's settings of git, and programs, so that those of the system alone are used.
"""

from __future__ import annotations

import os
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.analysis.on_base import BaseBranch, in_history
from agentv_ci.app.history import Added, add_results
from agentv_ci.contracts.exchange import Environment
from agentv_ci.errors import CannotGoOn, LedgerUnavailable
from agentv_ci.ledger.branch import REMOTE
from agentv_ci.ledger.git import Git
from agentv_ci.ledger.place import LedgerPlace, read_ledger
from agentv_ci.publish.refusals import NotPublished
from agentv_ci.publish.workflow import Workflow
from agentv_ci.redaction import Redactor
from agentv_ci.report.job import Job


async def with_history(job: Job, workflow: Workflow, token: str | None, environment: Environment) -> Job:
    """Return the job of a change with what its cases did in the ledger; raises NotPublished if that is unknown."""
    reported = job.reported
    if reported is None or reported.report.dry_run or not workflow.is_of_pull_request:
        return job
    if not (red := [*reported.errors, *reported.failures]):
        return job
    base, branches = reported.base, workflow.base_branches
    if base is not None and branches[0] != branches[-1]:
        # The ledger is of the default branch.
        return job
    async with _clone(workflow, token, environment, "contents: read") as (place, variables):
        ledger = await read_ledger(place, variables)
    if not ledger.runs:
        raise NotPublished(f"no run is in {ledger.source}")
    name = branches[-1] if branches else ledger.source
    cases = {**(base.cases if base is not None else {}), **in_history(red, ledger)}
    return replace(job, reported=replace(reported, base=BaseBranch(name, cases)))


async def add_to_history(results: Path, workflow: Workflow, token: str | None, environment: Environment) -> Added:
    """Add the results of a run of the default branch to the ledger; raises NotPublished."""
    async with _clone(workflow, token, environment, "contents: write") as (place, variables):
        return await add_results([results], place, variables, run_url=workflow.run_url)


@asynccontextmanager
async def _clone(
    workflow: Workflow, token: str | None, environment: Environment, permission: str
) -> AsyncIterator[tuple[LedgerPlace, Environment]]:
    """Make an empty repository whose remote is the one on GitHub; raises NotPublished for what goes wrong in it.

    `permission` is what the token needs.
    """
    if token is None:
        raise NotPublished("GITHUB_TOKEN is not set; pass it to this step in `env:`")
    with tempfile.TemporaryDirectory(prefix="agentv-history-") as folder:
        known = replace(environment, variables=_own(environment.variables) | _credentials(workflow, token))
        git = Git(Path(folder), known.variables)
        try:
            await git.run("init", "--quiet", "--template=")
            await git.run("remote", "add", REMOTE, f"{workflow.server_url}/{workflow.repository}.git")
            yield LedgerPlace(Path(folder)), known
        except LedgerUnavailable as error:
            reason = Redactor([token]).text(error.message)
            raise NotPublished(f"{reason} (the job needs `{permission}`)") from error
        except CannotGoOn as error:
            raise NotPublished(error.message) from error


def _own(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the git of the system, with its settings alone: a setting could lead to another server."""
    kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    return kept | {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull}


def _credentials(workflow: Workflow, token: str) -> dict[str, str]:
    """Return variables that give git the token for this server alone, on no command line and in no file."""
    encoded = b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{workflow.server_url}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {encoded}",
    }
