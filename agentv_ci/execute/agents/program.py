"""Agents on the command line: find the program, run it in a scratch workspace, read its output."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci.base.process import ProcessFailed, ProgramNotStarted, child_environment, run
from agentv_ci.base.source_files import names_of
from agentv_ci.base.tracebacks import last_words
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject
from agentv_ci.contracts.exchange import ProcessResult, ProviderError, Request, Response
from agentv_ci.contracts.results import PrintedOutput
from agentv_ci.contracts.target_settings import number
from agentv_ci.execute.agents.events import (
    AgentFailed,
    FinalEvent,
    NotEvents,
    Progress,
    Spent,
    Write,
    all_pieces,
)
from agentv_ci.execute.agents.workspace import Workspace, prompt_document, workspace
from agentv_ci.execute.provider_services import (
    ProviderServices,
    process_failure,
    require_folder,
    unwritable,
)

NOT_LOGGED_IN = re.compile(
    r"no authentication information|invalid auth method|set an auth method|missing "
    r"environment variable|not logged in"
    r"|please run /login|invalid api key",
    re.IGNORECASE,
)

OpenLog = Callable[[Request, Sequence[str]], AbstractContextManager[Write | None]]
"""Opens a log of an agent's output."""


class Agent(Struct, frozen=True):
    """How an agent is called, and how its output is read."""

    program: str
    """The default executable."""
    arguments: Callable[[Path, bool], Sequence[str]]
    """Returns the arguments, including the target's; the prompt goes to standard input.

    Given the folder with the question's files, and whether the agent works in another one.
    """
    read: Callable[[ProcessResult], Response | None]
    """Returns the answer, or None without one; raises AgentFailed, or NotEvents for output without
    events.
    """
    spent: Callable[[Sequence[JsonObject]], Spent]
    """Returns what it has used by its events so far."""
    known: AbstractSet[str]
    """The types of its events that are read."""
    progress: Callable[[], Progress]
    """Follows the events of one run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Default values of environment variables."""


def usual_arguments(
    target: AgentTarget, *first: str, model: str = "--model", folder: str = "--add-dir"
) -> Callable[[Path, bool], Sequence[str]]:
    """Return the arguments of most agents.

    `model` and `folder` are its options for the model and another folder.
    """

    def arguments(workspace: Path, is_elsewhere: bool) -> Sequence[str]:  # as called
        words = [*first]
        if target.model:
            words += [model, target.model]
        if is_elsewhere:
            words += [folder, str(workspace)]
        return [*words, *(target.args or ())]

    return arguments


class AgentProvider:
    """See Provider."""

    def __init__(
        self,
        target: AgentTarget,
        agent: Agent,
        services: ProviderServices,
        *,
        open_log: OpenLog | None = None,
    ) -> None:
        self._target = target
        self._kind = target.kind()
        self._agent = agent
        self._services = services
        self._open_log = open_log
        self._env = child_environment(
            {**agent.environment, **services.environment.variables}, target.env
        )
        self._executable: str | None = None

    async def check(self) -> None:
        """Check the working directory, and find the executable."""
        if self._target.cwd:
            require_folder(self._services.place(self._target.cwd))
        self._executable = find_program(
            self._target.executable or self._agent.program,
            "executable",
            services=self._services,
            env=self._env,
        )

    async def ask(self, request: Request) -> Response:
        """Run the agent once, with copies of the question's files in a scratch workspace."""
        if request.seed is not None:
            self._services.warn_of_seed(self._target.name, "agent")
        parent = request.place.scratch if request.place is not None else None
        async with workspace(self._kind, request.files, parent) as place:
            prompt = prompt_document(request, place.files)
            try:
                (place.folder / "prompt.md").write_text(prompt, encoding="utf-8", errors="replace")
            except OSError as error:
                raise unwritable(error) from error
            monotonic = self._services.environment.monotonic
            begun_s = monotonic()
            final = FinalEvent(self._agent.known, self._agent.progress(), monotonic)
            finished = await self._run(prompt, place, request, final)
            response = self._response(finished)
        self._services.warn_if_cut(response, self._target.name, request.case_id)
        # Until the answer was complete: the program may take longer to end.
        duration_ms = None if final.at_s is None else round((final.at_s - begun_s) * 1000)
        return replace(response, request={"prompt": prompt}, duration_ms=duration_ms)

    async def _run(
        self, prompt: str, place: Workspace, request: Request, final: FinalEvent
    ) -> ProcessResult:
        assert self._executable is not None, "a provider is checked before it is asked"
        is_elsewhere = request.place is not None or self._target.cwd is not None
        argv = (self._executable, *self._agent.arguments(place.folder, is_elsewhere))
        timeout_s = number(self._target.timeout_seconds, request.timeout_s)
        cwd = self._services.place(self._target.cwd) if self._target.cwd else place.folder
        self._services.log(f"{self._target.name}: {request.case_id}: running {shlex.join(argv)}")
        try:
            with self._open_log(request, argv) if self._open_log else nullcontext() as final.log:
                stdin = prompt.encode("utf-8", "replace")
                if request.place is None:
                    return await run(
                        argv,
                        cwd=cwd,
                        env=self._env,
                        timeout_s=timeout_s,
                        stdin=stdin,
                        listener=final,
                    )
                own = self._services.own_files(names_of(self._target.sources or ()))
                env = {**self._agent.environment, **(self._target.env or {})}
                return await request.place.run(
                    argv, env=env, timeout_s=timeout_s, stdin=stdin, listener=final, reads=own
                )
        except ProcessFailed as error:
            hint = ""
            if isinstance(error, ProgramNotStarted):
                hint = " (setting 'executable')"
            last = last_words(error.stderr)
            ending = f"; stderr: {last}" if last else ""
            failure = process_failure(error, f"{self._kind} {error}{hint}{ending}")
            raise self._with_expense(failure, error.stdout) from error

    def _response(self, finished: ProcessResult) -> Response:
        """Read the output.

        A failure that the agent reports takes precedence over exit code and standard error.
        """
        try:
            return self._read(finished)
        except AgentFailed as error:
            reason = error.sentence or last_words(finished.stderr) or "no reason given"
            status = ""
            if finished.status:
                status = f" (exit code {finished.status})"
            failure = _failure(error.kind, f"{self._kind}: {reason}{status}", reason, finished)
            raise self._with_expense(failure, finished.stdout) from error
        except NotEvents as error:
            raise self._without_events(finished) from error

    def _without_events(self, finished: ProcessResult) -> ProviderError:
        text = finished.stderr.strip() or finished.stdout.strip()
        what = "printed no JSON" if finished.stdout.strip() else "printed nothing"
        detail = f"{self._kind} {what} (exit code {finished.status})"
        if text:
            detail += f": {text}"
        return _failure("process" if finished.status else "malformed", detail, text, finished)

    def _read(self, finished: ProcessResult) -> Response:
        response = self._agent.read(finished)
        if finished.status != 0:
            raise AgentFailed(None)
        if response is None:
            raise AgentFailed("no assistant message", "malformed")
        return response

    def _with_expense(self, failure: ProviderError, stdout: str) -> ProviderError:
        """Return a failure with what the agent has used."""
        pieces = all_pieces(stdout, self._agent.known)
        spent = self._agent.spent([piece for piece in pieces if not isinstance(piece, str)])
        failure.model, failure.usage, failure.cost_usd = spent.model, spent.usage, spent.cost_usd
        return failure

    async def close(self) -> None:
        """Nothing outlives a question."""


def find_program(
    name: str, setting: str, *, services: ProviderServices, env: Mapping[str, str]
) -> str:
    """Return the path of a program: a name is looked up on PATH, a name with a `/` is a path.

    Raises ProviderError when it is missing or not executable.
    """
    if "/" in name:
        return _executable(services.place(name), setting)
    found = shutil.which(name, path=env.get("PATH", ""))
    if found is None:
        raise ProviderError(
            "process", f"executable '{name}' is not on PATH; install it or set '{setting}'"
        )
    # PATH may have relative folders, and programs start in another one.
    return str(Path(found).absolute())


def _executable(path: Path, setting: str) -> str:
    if path.is_file() and os.access(path, os.X_OK):
        return str(path)
    reason = "is not executable" if path.exists() else "does not exist"
    if path.is_dir():
        reason = "is a directory"
    raise ProviderError("process", f"executable '{path}' {reason} (setting '{setting}')")


def _failure(kind: ErrorKind, detail: str, text: str, finished: ProcessResult) -> ProviderError:
    """Return the failure of an agent that has ended.

    Of kind `auth`, which is not repeated, for a missing login.
    """
    is_login = kind == "process" and NOT_LOGGED_IN.search(text) is not None
    printed = PrintedOutput(stdout=finished.stdout, stderr=finished.stderr)
    return ProviderError("auth" if is_login else kind, detail, printed=printed)
