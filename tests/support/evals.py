"""An eval file with its targets, and runs of it in this process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentv_ci.app.documents.compile import Selection, compile_paths
from agentv_ci.app.run.files import RunFiles, RunOutcome
from agentv_ci.app.run.run import run_plan
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.cli_target import gives_prompt
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.results.files import ResultsFormat, read_rows
from tests.support.clock import FakeClock
from tests.support.commands import clean_environment
from tests.support.files import write

KEY = "sk-canary-0123456789abcdef"
"""The value of MOCK_KEY, which `gpt` refers to."""
FINDS = {"name": "finds", "type": "contains", "value": "42"}
JUDGE = {"name": "judge", "type": "llm_judge"}
PRAISE = json.dumps({"score": 1.0, "hits": ["all of it"], "misses": [], "reasoning": "fine"})
"""What a judge replies for the score 1."""


def question(text: str) -> list[dict[str, str]]:
    """Return input messages with one question."""
    return [{"role": "user", "content": text}]


def gpt(base_url: str, **settings: Any) -> dict[str, Any]:
    """Return a target that asks a chat API."""
    target = {"name": "default", "provider": "openai", "model": "gpt-mock", "base_url": base_url}
    return {**target, "api_key": "${{ MOCK_KEY }}", **settings}


def tool(command: str, **settings: Any) -> dict[str, Any]:
    """Return a target that runs a command, which needs no prompt unless its template has it."""
    needs_none = {} if gives_prompt(command) else {"prompt": "none"}
    return {"name": "default", "provider": "cli", "command_template": command, **needs_none, **settings}


def mock(**settings: Any) -> dict[str, Any]:
    """Return a mock that answers `42`."""
    return {"name": "default", "provider": "mock", "response": "42", **settings}


def documents(
    repository: Path, cases: Sequence[str | Mapping[str, Any]], *targets: Mapping[str, Any], **execution: Any
) -> None:
    """Write `evals/a.yaml` and `targets.yaml`; a case is its id, or its fields; one with evaluators has these alone."""
    common = {"expected_outcome": "The answer is 42.", "expected_messages": [], "input_messages": question("6 × 7?")}
    fields = [{"id": case} if isinstance(case, str) else case for case in cases]
    alone = {"inherit_evaluators": False}
    given = [{**common, **(alone if "evaluators" in case else {}), **case} for case in fields]
    execution = {"evaluators": [FINDS], **execution}
    files = {
        "evals/a.yaml": {"$schema": "agentv-eval-v2", "execution": execution, "evalcases": given},
        "targets.yaml": {"$schema": "agentv-targets-v2.2", "targets": targets},
    }
    write(repository, {name: json.dumps(document) for name, document in files.items()})


def real_time(variables: Mapping[str, str]) -> Environment:
    """Return an environment in which waiting takes time."""
    return Environment(variables, lambda: datetime.now(UTC), time.monotonic, asyncio.sleep, lambda low, _: low)


@dataclass(slots=True)
class Run:
    """Runs the documents of a repository; waiting takes no time unless there is an `environment` of its own."""

    repository: Path
    form: ResultsFormat = "jsonl"
    variables: Mapping[str, str] = field(default_factory=lambda: clean_environment({"MOCK_KEY": KEY}))
    environment: Environment | None = None
    log: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=lambda: Progress(0))

    @property
    def results(self) -> Path:
        return self.repository / f"r.{self.form}"

    def documents(self, cases: Sequence[str | Mapping[str, Any]], *targets: Mapping[str, Any], **given: Any) -> None:
        """See `documents`."""
        documents(self.repository, cases, *targets, **given)

    async def start(
        self,
        *,
        between: Callable[[], None] = lambda: None,
        overrides: Overrides | None = None,
        out: Path | None = None,
        **settings: Any,
    ) -> RunOutcome:
        """Compile and run; `between` happens after the one and before the other."""
        compiled = compile_paths(Selection(["evals"]), cwd=self.repository)
        between()
        return await run_plan(
            compiled,
            overrides or Overrides(),
            RunOptions(root=self.repository, **settings),
            RunFiles(out or self.results, self.form),
            RunServices(
                environment=self.environment or FakeClock(self.variables).environment(),
                log=self.log.append,
                warn=self.warned.append,
                note=self.log.append,
                watch=self._watch,
            ),
        )

    def _watch(self, progress: Progress) -> None:
        self.progress = progress

    def __call__(self, **settings: Any) -> RunOutcome:
        """Run to the end; fails instead of hanging."""

        async def main() -> RunOutcome:
            async with asyncio.timeout(60):
                return await self.start(**settings)

        return asyncio.run(main())

    def written(self) -> list[ResultRow]:
        """Return the rows of the results file."""
        return list(read_rows(self.results, self.form))

    def rows(self, **settings: Any) -> list[ResultRow]:
        """Run to the end and return the rows."""
        self(**settings)
        return self.written()
