"""A clone of the repository that a workflow runs in, reached with the token of the job.

Agents may have changed the checkout, its remote and its refs, so the clone is another one. They may
also have changed the user's settings of git, and programs, so that those of the system alone are
used.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.base.redaction import Redactor
from agentv_ci.contracts.exchange import Environment
from agentv_ci.errors import CannotGoOn, LedgerUnavailable
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow
from agentv_ci.ledger.branch import REMOTE
from agentv_ci.ledger.git import Git


@asynccontextmanager
async def empty_clone(
    folder: Path, workflow: Workflow, token: str | None, environment: Environment, permission: str
) -> AsyncIterator[Environment]:
    """Make an empty repository whose remote is the one on GitHub.

    Yields the environment that reaches it.

    Raises NotPublished for what goes wrong within. `permission` is what the token needs.
    """
    if token is None:
        raise NotPublished("GITHUB_TOKEN is not set; pass it to this step in `env:`")
    known = replace(
        environment, variables=_own(environment.variables) | _credentials(workflow, token)
    )
    git = Git(folder, known.variables)
    try:
        await git.run("init", "--quiet", "--template=")
        await git.run("remote", "add", REMOTE, f"{workflow.server_url}/{workflow.repository}.git")
        yield known
    except LedgerUnavailable as error:
        reason = Redactor([token]).text(error.message)
        raise NotPublished(f"{reason} (the job needs `{permission}`)") from error
    except CannotGoOn as error:
        raise NotPublished(error.message) from error


def _own(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the git of the system, with its settings alone.

    A setting of the user could lead to another server.
    """
    kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    return kept | {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull}


def _credentials(workflow: Workflow, token: str) -> dict[str, str]:
    """Return variables that give git the token, for this server alone.

    The token is on no command line and in no file.
    """
    encoded = b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{workflow.server_url}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {encoded}",
    }
