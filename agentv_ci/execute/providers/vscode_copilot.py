"""`provider: vscode-copilot`: Copilot in a window of VS Code, asked through files.

The request is in a file that `code chat` attaches; the agent writes its answer to another file and
renames it when complete. See docs/providers.md for the steps.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.left_files import read_left
from agentv_ci.base.process import (
    MAX_OUTPUT_BYTES,
    ProcessFailed,
    ProcessTimedOut,
    child_environment,
    run,
)
from agentv_ci.base.text import counted
from agentv_ci.contracts.agent_targets import VsCodeTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject
from agentv_ci.contracts.exchange import InputFile, ProcessResult, ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage
from agentv_ci.contracts.target_settings import number
from agentv_ci.execute.agents.program import find_program
from agentv_ci.execute.agents.subagents import Subagent, read_template, take_subagent
from agentv_ci.execute.agents.workspace import (
    guidelines_of,
    prompt_document,
    proof_request,
    take_proofs,
)
from agentv_ci.execute.provider_services import ProviderServices

POLL_S = 1.0
WAKE_S = 60.0
STATUS_S = 10.0
COMMAND_S = 60.0
"""How long a `code` command may take."""


class Exchange(Struct, frozen=True):
    """One question and the files it is asked with."""

    request: Request
    text: str
    """The question as the agent gets it."""
    guidelines: tuple[InputFile, ...]
    """The files that the agent must prove to have read."""
    asked: Path
    """The file with the question."""
    answered: Path
    """The final name of the agent's answer."""


class VsCodeProvider:
    """See BatchProvider."""

    def __init__(self, target: VsCodeTarget, services: ProviderServices) -> None:
        self._target = target
        self._services = services
        self._env = child_environment(services.environment.variables)
        self._command = target.command or str(target.implied["command"])
        self._program: str | None = None

    async def check(self) -> None:
        """Find the editor's program, and read the workspace template."""
        try:
            read_template(self._template)
        except (OSError, ValueError) as error:
            raise ProviderError("process", f"cannot read workspace_template: {error}") from error
        if self._target.dry_run is not True:
            self._program = find_program(
                self._command, "command", services=self._services, env=self._env
            )

    async def ask(self, request: Request) -> Response:
        """Ask one question in a window of its own."""
        (response,) = await self.ask_together([request])
        return response

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Ask all questions in one window, each with its own subagent."""
        if any(request.seed is not None for request in requests):
            self._services.warn_of_seed(self._target.name, "agent")
        timeout_s = sum(
            number(self._target.timeout_seconds, request.timeout_s) for request in requests
        )
        deadline = self._services.environment.monotonic() + timeout_s
        with ExitStack() as taken:
            try:
                place = taken.enter_context(
                    take_subagent(self._root, self._services.environment.now())
                )
                chat_id = uuid.uuid4().hex[:8]
                place.prepare(self._template, chat_id, keeps_messages=self._target.dry_run is True)
                exchanges = self._exchanges(place, requests)
                attached, message = self._write(place, exchanges)
            except OSError as error:
                raise ProviderError(
                    "process", f"cannot prepare a directory in '{self._root}': {error}"
                ) from error
            if self._target.dry_run is True:
                return list(map(self._unanswered, exchanges))
            await self._wake(place, deadline)
            await self._code(
                deadline, "-r", "chat", "-m", chat_id, *_attachments(exchanges, attached), message
            )
            if self._target.wait is False:
                place.is_kept = True
                return list(map(self._unanswered, exchanges))
            return await self._answers(exchanges, deadline, timeout_s)

    @property
    def _root(self) -> Path:
        insiders = "insiders" in Path(self._command).name
        default = f"~/.subagent/vscode-{'insiders-' if insiders else ''}agents"
        return self._services.place(self._target.subagent_root or default)

    @property
    def _template(self) -> Path | None:
        template = self._target.workspace_template
        if template:
            return self._services.place(template)
        return None

    def _exchanges(self, place: Subagent, requests: Sequence[Request]) -> list[Exchange]:
        stamp = self._services.environment.now().strftime("%Y%m%d%H%M%S")
        if len(requests) == 1:
            # Requests of dry runs are kept, so the name may be taken.
            stems = chain([stamp], (f"{stamp}-{number}" for number in count(2)))
            stem = next(stem for stem in stems if not (place.messages / f"{stem}_req.md").exists())
            return [_exchange(place, stem, requests[0], unlocks=True)]
        return [
            _exchange(place, f"{stamp}_{number}", request, unlocks=False)
            for number, request in enumerate(requests, 1)
        ]

    def _write(self, place: Subagent, exchanges: Sequence[Exchange]) -> tuple[Path, str]:
        """Write the requests; return the file to attach last, and the chat message."""
        for exchange in exchanges:
            exchange.asked.write_text(exchange.text, encoding="utf-8")
        if len(exchanges) == 1:
            return exchanges[0].asked, f"Follow the instructions in {exchanges[0].asked.name}."
        stamp = exchanges[0].asked.name.split("_")[0]
        orchestrator = place.messages / f"{stamp}_orchestrator.md"
        orchestrator.write_text(_orchestrator_text(exchanges, place.lock), encoding="utf-8")
        return (
            orchestrator,
            f"Follow the instructions in {orchestrator.name}. Use the tool #runSubagent.",
        )

    async def _wake(self, place: Subagent, deadline: float) -> None:
        """Focus the folder's window, or open one and wait until its agent responds."""
        try:
            status = await self._run("--status", timeout_s=min(STATUS_S, self._left_s(deadline)))
        except ProcessFailed:
            status = None
        window = rf"(?<![\w-]){re.escape(place.name)}(?![\w-])"
        is_open = status is not None and re.search(window, status.stdout) is not None
        place.alive.unlink(missing_ok=True)
        await self._code(deadline, str(place.workspace))
        if is_open:
            return
        await self._code(
            deadline, "-r", "chat", "-m", "wakeup", f"Create an empty file {place.alive}"
        )
        wake_s = min(WAKE_S, self._left_s(deadline))
        if not await self._appears([place.alive], wake_s):
            detail = f"VS Code did not respond within {wake_s:g} s: '{place.alive}' is missing"
            raise ProviderError("process", detail)

    async def _code(self, deadline: float, *arguments: str) -> None:
        try:
            finished = await self._run(*arguments, timeout_s=min(COMMAND_S, self._left_s(deadline)))
        except ProcessFailed as error:
            kind: ErrorKind = "timeout" if isinstance(error, ProcessTimedOut) else "process"
            raise ProviderError(kind, f"{self._command} {error}") from error
        if finished.status != 0:
            reason = finished.stderr.strip() or finished.stdout.strip()
            raise ProviderError(
                "process", f"{self._command}: {reason} (exit code {finished.status})"
            )

    async def _run(self, *arguments: str, timeout_s: float) -> ProcessResult:
        assert self._program is not None, "a provider is checked before it is asked"
        self._services.log(
            f"{self._target.name}: running {shlex.join([self._program, *arguments])}"
        )
        # It may start the editor, which must stay open.
        return await run(
            (self._program, *arguments),
            cwd=self._root,
            env=self._env,
            timeout_s=timeout_s,
            spares_children=True,
        )

    async def _answers(
        self, exchanges: Sequence[Exchange], deadline: float, timeout_s: float
    ) -> Sequence[Response]:
        """Wait for all answers; a batch may take as long as its questions one by one."""
        answers = [exchange.answered for exchange in exchanges]
        if not await self._appears(answers, self._left_s(deadline)):
            raise _incomplete(answers, timeout_s)
        try:
            return await asyncio.to_thread(lambda: list(map(self._response, exchanges)))
        except OSError as error:
            raise ProviderError(
                "process", f"cannot read the response of VS Code: {error}"
            ) from error

    def _left_s(self, deadline: float) -> float:
        return max(0.0, deadline - self._services.environment.monotonic())

    async def _appears(self, files: Sequence[Path], timeout_s: float) -> bool:
        """Wait until all files exist; returns False on a timeout."""
        deadline = self._services.environment.monotonic() + timeout_s
        while not all(map(Path.exists, files)):
            if (left_s := self._left_s(deadline)) <= 0:
                return False
            await self._services.environment.sleep(min(POLL_S, left_s))
        return True

    def _response(self, exchange: Exchange) -> Response:
        content = read_left(exchange.answered.parent, exchange.answered.name, MAX_OUTPUT_BYTES)
        text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        answer, proofs = take_proofs(text, exchange.guidelines)
        for proof in proofs:
            if not proof["ok"]:
                self._warn_of(proof, exchange.request.case_id)
        asked: JsonObject = {"prompt": exchange.text}
        if proofs:
            asked["preread"] = [*proofs]
        return Response(
            answer,
            (OutputMessage(role="assistant", content=answer),),
            has_trace=False,
            request=asked,
        )

    def _warn_of(self, proof: JsonObject, case_id: str) -> None:
        reported = "no hash" if proof["sha256_reported"] is None else "a different hash"
        self._services.warn(
            f"{self._target.name}: {case_id}: the agent reported {reported} for "
            f"{proof['file']}: it may not have read it"
        )

    def _unanswered(self, exchange: Exchange) -> Response:
        asked: JsonObject = {
            "prompt": exchange.text,
            "request_file": str(exchange.asked),
            "response_file": str(exchange.answered),
        }
        return Response("", (), has_trace=False, request=asked)

    async def close(self) -> None:
        """The window stays open: it is the user's."""


def _incomplete(answers: Sequence[Path], timeout_s: float) -> ProviderError:
    if len(answers) == 1:
        return ProviderError("timeout", f"VS Code produced no response within {timeout_s:g} s")
    complete = counted(sum(map(Path.exists, answers)), "response")
    return ProviderError("timeout", f"VS Code produced {complete} for {len(answers)} requests")


def _attachments(exchanges: Sequence[Exchange], last: Path) -> list[str]:
    files = dict.fromkeys(
        file.path for file in chain.from_iterable(exchange.request.files for exchange in exchanges)
    )
    arguments: list[str] = []
    for file in (*files, last):
        arguments += ("-a", str(file))
    return arguments


def _exchange(place: Subagent, stem: str, request: Request, *, unlocks: bool) -> Exchange:
    asked, unfinished, answered = (
        place.messages / f"{stem}_{end}.md" for end in ("req", "res.tmp", "res")
    )
    guidelines = guidelines_of(request.files)
    unlock = f" && rm -f {shlex.quote(str(place.lock))}" if unlocks else ""
    rename = f"mv {shlex.quote(str(unfinished))} {shlex.quote(str(answered))}{unlock}"
    text = _request_text(request, guidelines, unfinished, rename)
    return Exchange(request, text, guidelines, asked, answered)


def _request_text(
    request: Request, guidelines: Sequence[InputFile], unfinished: Path, rename: str
) -> str:
    proof = proof_request(guidelines)
    steps = (
        f"1. Create the file {unfinished} and write your complete response to it. "
        "Make no other files in the "
        "workspace: put changes of files that you intend into the response, "
        "with the name of the repository, the "
        "relative path and a unified `diff --git`.\n"
        f"2. When step 1 is complete, and not before, run this command: `{rename}`"
    )
    parts = [
        *([proof] if proof else []),
        "[[ ## task ## ]]",
        prompt_document(request, request.files),
        "[[ ## system_instructions ## ]]",
        steps,
    ]
    return "\n\n".join(parts) + "\n"


def _orchestrator_text(exchanges: Sequence[Exchange], lock: Path) -> str:
    requests = "\n".join(
        f"{number}. messages/{exchange.asked.name}" for number, exchange in enumerate(exchanges, 1)
    )
    answers = ", ".join(f"'messages/{exchange.answered.name}'" for exchange in exchanges)
    return (
        "Run the tool #runSubagent once for each of these request files, "
        "each in a context of its own, and tell it to "
        "follow the instructions in the file. Do not read the files yourself.\n\n"
        f"{requests}\n\n"
        f"When all of {answers} exist, run this command: `rm -f {shlex.quote(str(lock))}`\n"
    )
