"""An agent on the command line: found, started in a scratch workspace, listened to, ended."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.exchange import ErrorKind, ProviderError, Request, Response
from agentv_ci.contracts.results import PrintedOutput
from agentv_ci.contracts.target_settings import number
from agentv_ci.execute.agents.events import Heard, NotEvents
from agentv_ci.execute.agents.preread import prompt_document
from agentv_ci.execute.agents.workspace import Workspace, workspace
from agentv_ci.execute.services import ProviderServices, require_folder, unwritable
from agentv_ci.process import (
    Finished,
    Listener,
    ProcessFailed,
    ProcessTimedOut,
    ProgramNotStarted,
    child_environment,
    run,
)


class Agent(Protocol):
    """One agent: how it is called, and what it says."""

    @property
    def kind(self) -> str:
        """The name of its provider."""
        ...

    @property
    def program(self) -> str:
        """Its executable, when the target names none."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that make it fit for a run, where nobody has set them."""
        ...

    def arguments(self, workspace: Path) -> Sequence[str]:
        """Return its arguments, the target's among them; the prompt comes on standard input."""
        ...

    def hear(self, finished: Finished) -> Heard:
        """Return what it said; raises NotEvents for what is not its language."""
        ...


NOT_LOGGED_IN = re.compile(
    r"no authentication information|invalid auth method|set an auth method|missing environment variable|not logged in"
    r"|please run /login|invalid api key",
    re.IGNORECASE,
)

Listen = Callable[[Request, Sequence[str]], AbstractContextManager[Listener | None]]
"""Returns what takes the output of a question's run as it comes."""


def nobody(_request: Request, _argv: Sequence[str]) -> AbstractContextManager[Listener | None]:
    """Nobody listens while an agent runs."""
    return nullcontext()


class AgentProvider:
    """See Provider."""

    def __init__(
        self, target: AgentTarget, agent: Agent, services: ProviderServices, *, listen: Listen = nobody
    ) -> None:
        self._target = target
        self._agent = agent
        self._services = services
        self._listen = listen
        self._env = child_environment({**agent.environment, **services.environment.variables}, target.env)
        self._executable: str | None = None

    async def check(self) -> None:
        """Find the executable, and look for the working directory."""
        if self._target.cwd:
            require_folder(self._services.place(self._target.cwd))
        self._executable = find_program(
            self._target.executable or self._agent.program, "executable", services=self._services, env=self._env
        )

    async def ask(self, request: Request) -> Response:
        """Run the agent once, with copies of the question's files in a workspace of its own."""
        if request.seed is not None:
            self._services.warn(f"{self._target.name}: seeds are not sent: the agent takes none")
        async with workspace(self._agent.kind, request.files) as place:
            prompt = prompt_document(request, place.links)
            try:
                (place.folder / "prompt.md").write_text(prompt, encoding="utf-8", errors="replace")
            except OSError as error:
                raise unwritable(error) from error
            finished = await self._run(prompt, place, request)
            printed = PrintedOutput(stdout=finished.stdout, stderr=finished.stderr)
            response = self._response(finished, printed)
        return replace(response, request={"prompt": prompt})

    async def _run(self, prompt: str, place: Workspace, request: Request) -> Finished:
        assert self._executable is not None, "a provider is checked before it is asked"
        argv = (self._executable, *self._agent.arguments(place.folder))
        timeout_s = number(self._target.timeout_seconds, request.timeout_s)
        cwd = self._services.place(self._target.cwd) if self._target.cwd else place.folder
        self._services.log(f"{self._target.name}: {request.case_id}: runs {shlex.join(argv)}")
        try:
            with self._listen(request, argv) as listener:
                return await run(
                    argv,
                    cwd=cwd,
                    env=self._env,
                    timeout_s=timeout_s,
                    stdin=prompt.encode("utf-8", "replace"),
                    listener=listener,
                )
        except ProcessFailed as error:
            kind: ErrorKind = "timeout" if isinstance(error, ProcessTimedOut) else "process"
            hint = " (setting 'executable')" if isinstance(error, ProgramNotStarted) else ""
            last = _last_line(error.stderr)
            said = f"; its last words: {last}" if last else ""
            printed = PrintedOutput(stdout=error.stdout, stderr=error.stderr)
            raise ProviderError(kind, f"{self._agent.kind} {error}{hint}{said}", printed=printed) from error

    def _response(self, finished: Finished, printed: PrintedOutput) -> Response:
        heard = self._heard(finished, printed)
        error, kind = heard.error, heard.kind
        if error is None and finished.status != 0:
            error = _last_line(finished.stderr) or "no reason given"
        if error is None and heard.answer is None:
            error, kind = "no message of the assistant", "malformed"
        if error is not None:
            status = f" (exit code {finished.status})" if finished.status else ""
            raise ProviderError(_kind(kind, error), f"{self._agent.kind}: {error}{status}", printed=printed)
        return Response(
            answer=(heard.answer or "").strip(),
            messages=heard.messages,
            has_trace=True,
            model=heard.model,
            usage=heard.usage,
            finish_reason=heard.finish_reason,
            cost_usd=heard.cost_usd,
        )

    def _heard(self, finished: Finished, printed: PrintedOutput) -> Heard:
        """What the agent said; what it says itself counts before its exit status and its standard error."""
        try:
            return self._agent.hear(finished)
        except NotEvents as error:
            said = finished.stderr.strip() or finished.stdout.strip()
            what = "printed no JSON" if finished.stdout.strip() else "printed nothing"
            detail = f"{self._agent.kind} {what} (exit code {finished.status})" + (f": {said}" if said else "")
            kind: ErrorKind = "process" if finished.status else "malformed"
            raise ProviderError(_kind(kind, said), detail, printed=printed) from error

    async def close(self) -> None:
        """Nothing outlives a question."""


def find_program(name: str, setting: str, *, services: ProviderServices, env: Mapping[str, str]) -> str:
    """Return the path of a program: looked up on PATH, or, with a `/` in its name, at its place.

    Raises ProviderError that says where it was looked for.
    """
    if "/" in name:
        path = services.place(name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
        reason = "is a folder" if path.is_dir() else "is not executable" if path.exists() else "does not exist"
        raise ProviderError("process", f"executable '{path}' {reason} (setting '{setting}')")
    found = shutil.which(name, path=env.get("PATH", ""))
    if found is None:
        raise ProviderError("process", f"executable '{name}' is not on PATH; install it, or name it in '{setting}'")
    # PATH may name folders relative to here, and programs start elsewhere.
    return str(Path(found).absolute())


def _kind(kind: ErrorKind, said: str) -> ErrorKind:
    """What kind of failure it is, where only the words of an agent tell: asking again mends no missing login."""
    return "auth" if kind == "process" and NOT_LOGGED_IN.search(said) else kind


def _last_line(text: str) -> str | None:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)
