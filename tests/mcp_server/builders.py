"""A client of `agentv-ci mcp`: the protocol's own, over the standard streams of a real process."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import clean_environment
from tests.support.projects import Project


@asynccontextmanager
async def connected(project: Project, *options: str) -> AsyncIterator[Client]:
    """Start a server in a project, and yield a client of it."""
    command = ["-m", "agentv_ci", "mcp", *options]
    env = clean_environment(project.env)
    server = StdioServerParameters(command=sys.executable, args=command, cwd=project.folder, env=env)
    with project.path("stderr.txt").open("w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            yield client


async def answer_to(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the JSON that a tool answers with, which its text says too."""
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text  # type: ignore[union-attr]  # tools answer with texts
    assert not result.is_error, text
    assert json.loads(text) == result.structured_content
    return result.structured_content


async def refusal_of(client: Client, tool: str, **arguments: Any) -> str:
    """Return the error of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return str(result.content[0].text)  # type: ignore[union-attr]  # tools answer with texts
