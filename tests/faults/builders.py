"""What tests of faults are built from: documents, runs in this process, and runs in one of their own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.app.report_files import RunFiles
from agentv_ci.app.run import run_plan
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.run_services import RunOptions, RunServices
from agentv_ci.results.files import read_rows
from tests.support import CommandResult, clean_environment, write

DEADLINE_S = 120
"""Far more than any run here takes."""
FINDS = {"name": "finds", "type": "contains", "value": "42"}
KEY = "sk-canary-0123456789abcdef"


def suite(cases: Sequence[Mapping[str, Any]], **execution: Any) -> str:
    """An eval file; cases without a question get one."""
    common = {"expected_outcome": "The answer is 42.", "expected_messages": [], "input_messages": question("6 × 7?")}
    return json.dumps(
        {
            "$schema": "agentv-eval-v2",
            "execution": {"evaluators": [FINDS], **execution},
            "evalcases": [{**common, **case} for case in cases],
        }
    )


def question(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def targets(*listed: Mapping[str, Any]) -> str:
    return json.dumps({"$schema": "agentv-targets-v2.2", "targets": listed})


def gpt(base_url: str, **settings: Any) -> dict[str, Any]:
    """A target whose retries take next to no time."""
    quick = {"retry_initial_delay_ms": 1, "retry_max_delay_ms": 2, "retry_backoff_factor": 1}
    target = {"name": "default", "provider": "openai", "model": "gpt-mock", "base_url": base_url}
    return {**target, "api_key": "${{ MOCK_KEY }}", **quick, **settings}


def tool(command: str, **settings: Any) -> dict[str, Any]:
    return {"name": "default", "provider": "cli", "command_template": command, **settings}


def documents(repository: Path, cases: Sequence[Mapping[str, Any]], target: Mapping[str, Any], **given: Any) -> None:
    """Write one eval file and its target; `given` are fields of its `execution`."""
    write(repository, {"evals/a.yaml": suite(cases, **given), "targets.yaml": targets(target)})


def ignore(_said: object) -> None:
    """Take something and do nothing with it."""


def run(repository: Path, world: Environment, **settings: Any) -> list[ResultRow]:
    """Run everything in this process and return the rows; fails instead of hanging."""
    results = repository / "r.jsonl"

    async def main() -> None:
        outside = RunServices(world, log=ignore, warn=ignore, note=ignore, watch=ignore)
        compiled = compile_paths(Selection(["evals"]), cwd=repository)
        async with asyncio.timeout(DEADLINE_S):
            await run_plan(
                compiled,
                Overrides(),
                RunOptions(root=repository, **settings),
                RunFiles(results, "jsonl"),
                outside,
            )

    asyncio.run(main())
    return list(read_rows(results, "jsonl"))


def evaluate(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> CommandResult:
    """Run `agentv-ci eval` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "agentv_ci", "eval", *arguments],
        cwd=cwd,
        env=clean_environment() if env is None else env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def shell(
    command: str, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, pipe: int | None = None
) -> CommandResult:
    """Run a text in Bash; `$0` is the first argument, `pipe` a file that it may use."""
    done = subprocess.run(
        ["/bin/bash", "-c", command, *arguments],
        cwd=cwd,
        env=clean_environment(env),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        pass_fds=() if pipe is None else (pipe,),
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)
