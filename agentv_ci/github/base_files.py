"""Read files of the base branch: a change may have edited its own.

GitHub Docs, "REST API endpoints for repository contents".
"""

from __future__ import annotations

from urllib.parse import quote

from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.github.api import NOT_FOUND, RAW, Api, with_api
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow

PERMISSION = "contents: read"
MAX_BYTES = 64 * 1024 * 1024


async def fetch_base_file(
    path: str, workflow: Workflow, token: str, environment: Environment
) -> bytes | None:
    """Return a file of the base branch, None if it has none; `path` is relative to the repository.

    Raises NotPublished.
    """
    if workflow.base_branch is None:
        raise NotPublished("the base branch is unknown")
    address = f"/repos/{workflow.repository}/contents/{quote(path, safe='')}"
    query = {"ref": f"refs/heads/{workflow.base_branch}"}

    async def work(api: Api) -> bytes | None:
        try:
            content = await api.download(address, MAX_BYTES, query, accept=RAW)
        except ProviderError as error:
            if error.status == NOT_FOUND:
                return None
            raise
        if not content:
            raise NotPublished(f"'{path}' is empty, or larger than {MAX_BYTES // 1024 // 1024} MiB")
        return content

    return await with_api(work, workflow, token, PERMISSION, environment)
