"""`provider: cli`: any command that prints an answer.

The template is shell text. Placeholders are replaced by quoted values in one pass, so that no
prompt, id or path can become part of the command.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agentv_ci.base.json_access import json_or_none, text_at
from agentv_ci.base.left_files import read_left
from agentv_ci.base.process import (
    MAX_OUTPUT_BYTES,
    ProcessFailed,
    ProcessTimedOut,
    child_environment,
    run,
)
from agentv_ci.base.source_files import names_of
from agentv_ci.base.tracebacks import exception_in
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.cli_target import (
    CLI_PLACEHOLDER,
    CliTarget,
    CommandHealthcheck,
    HttpHealthcheck,
    placeholders,
)
from agentv_ci.contracts.exchange import (
    InputFile,
    Place,
    ProcessResult,
    ProviderError,
    Request,
    Response,
)
from agentv_ci.contracts.results import OutputMessage, PrintedOutput, ToolCall
from agentv_ci.contracts.target_settings import number
from agentv_ci.execute.input_files import mirrored
from agentv_ci.execute.prompt import GUIDELINES_HEADING
from agentv_ci.execute.provider_services import (
    ProviderServices,
    process_failure,
    require_folder,
    unwritable,
)

HEALTHCHECK_TIMEOUT_S = 10.0

PROTOCOL = frozenset({"text", "output_messages"})
"""Keys of what a command prints instead of plain text; an object with any other key is an answer in
JSON.
"""


class CliProvider:
    """See Provider."""

    def __init__(self, target: CliTarget, services: ProviderServices) -> None:
        self._target = target
        self._services = services

    async def check(self) -> None:
        """Check the working directory, and run the health check, if there is one."""
        if self._target.cwd:
            require_folder(self._services.place(self._target.cwd))
        match self._target.healthcheck:
            case HttpHealthcheck() as probe:
                await self._probe_url(probe)
            case CommandHealthcheck() as probe:
                await self._probe_command(probe)
            case None:
                pass

    async def ask(self, request: Request) -> Response:
        """Run the command; the answer is its output, or a file if the template names one."""
        parent = request.place.scratch if request.place is not None else None
        try:
            scratch = Path(tempfile.mkdtemp(prefix="agentv-ci-", dir=parent))
        except OSError as error:
            raise unwritable(error) from error
        try:
            return await self._answer(request, scratch)
        except OSError as error:
            raise unwritable(error) from error
        finally:
            if self._target.keep_temp_files is True:
                self._services.log(
                    f"{self._target.name}: {request.case_id}: files kept in {scratch}"
                )
            else:
                shutil.rmtree(scratch, ignore_errors=True)

    async def _answer(self, request: Request, scratch: Path) -> Response:
        prompt = self._prompt(request)
        prompt_file, output_file = scratch / "prompt.md", scratch / "output"
        # Its workspace does not show the repository.
        if request.place is None:
            files = request.files
        else:
            files = mirrored(request.files, scratch / "files")
        prompt_file.write_text(prompt, encoding="utf-8")
        command = self._render(
            self._target.command_template,
            {
                "PROMPT": shlex.quote(prompt),
                "PROMPT_FILE": shlex.quote(str(prompt_file)),
                "GUIDELINES": shlex.quote(request.guidelines),
                "EVAL_ID": shlex.quote(request.case_id),
                "ATTEMPT": shlex.quote(str(request.attempt)),
                "FILES": _files(files, self._target.files_format),
                "ATTACHMENTS": _files(
                    [file for file in files if not file.is_guideline],
                    self._target.attachments_format,
                ),
                "OUTPUT_FILE": shlex.quote(str(output_file)),
            },
        )
        finished = await self._run(
            command,
            request.place or self._cwd(request.cwd),
            number(self._target.timeout_seconds, request.timeout_s),
            stdin=prompt if self._target.stdin == "prompt" else "",
        )
        if finished.stderr.strip():
            self._services.log(
                f"{self._target.name}: {request.case_id}: stderr: {finished.stderr.strip()}"
            )
        text = finished.stdout
        if "OUTPUT_FILE" in placeholders(self._target.command_template):
            text = await _read_output(output_file)
        return _response(text, prompt)

    def _prompt(self, request: Request) -> str:
        """Return the prompt, with the guidelines in front unless the template has them.

        A template has them if it has `{GUIDELINES}`.
        """
        if not request.guidelines or "GUIDELINES" in placeholders(self._target.command_template):
            return request.prompt
        return (
            f"{GUIDELINES_HEADING}\n\n{request.guidelines}\n\n[[ ## Task ## ]]\n\n{request.prompt}"
        )

    def _render(self, template: str, values: Mapping[str, str]) -> str:
        def put(match: re.Match[str]) -> str:
            if match["literal"]:
                return f"{{{match['literal']}}}"
            return values[match["name"]]

        return CLI_PLACEHOLDER.sub(put, template)

    async def _run(
        self, command: str, where: Path | Place, timeout_s: float, *, stdin: str = ""
    ) -> ProcessResult:
        if self._target.verbose is True:
            self._services.log(f"{self._target.name}: running {command}")
        try:
            finished = await self._ended(command, where, timeout_s, stdin.encode())
        except ProcessFailed as error:
            raise process_failure(error, f"the command {error}{_hint(error)}") from error
        if finished.status != 0:
            raise ProviderError(
                "process",
                _crash(finished),
                printed=PrintedOutput(stdout=finished.stdout, stderr=finished.stderr),
            )
        return finished

    async def _ended(
        self, command: str, where: Path | Place, timeout_s: float, stdin: bytes
    ) -> ProcessResult:
        if isinstance(where, Path):
            env = child_environment(self._services.environment.variables, self._target.env)
            return await run(command, cwd=where, env=env, timeout_s=timeout_s, stdin=stdin)
        own = self._services.own_files(names_of(self._target.sources or ()))
        in_place = where.run
        return await in_place(
            command, env=self._target.env or {}, timeout_s=timeout_s, stdin=stdin, reads=own
        )

    def _cwd(self, default: Path) -> Path:
        if self._target.cwd:
            return self._services.place(self._target.cwd)
        return default

    async def _probe_url(self, probe: HttpHealthcheck) -> None:
        timeout_s = number(probe.timeout_seconds, HEALTHCHECK_TIMEOUT_S)
        from agentv_ci.execute.apis.http_client import (
            probe_status,
        )  # httpx only where a URL is probed

        try:
            status = await probe_status(probe.url, timeout_s=timeout_s)
        except ProviderError as error:
            raise ProviderError(
                error.kind, f"health check of {probe.url} failed: {error.detail}"
            ) from error
        if not 200 <= status < 300:
            raise ProviderError("server", f"health check of {probe.url} failed: HTTP {status}")

    async def _probe_command(self, probe: CommandHealthcheck) -> None:
        empty = dict.fromkeys(("PROMPT", "PROMPT_FILE", "GUIDELINES", "OUTPUT_FILE"), "''")
        values = {**empty, "FILES": "", "ATTACHMENTS": "", "EVAL_ID": "healthcheck", "ATTEMPT": "0"}
        cwd = self._services.place(probe.cwd) if probe.cwd else self._cwd(self._services.root)
        try:
            await self._run(
                self._render(probe.command_template, values),
                cwd,
                number(probe.timeout_seconds, HEALTHCHECK_TIMEOUT_S),
            )
        except ProviderError as error:
            raise ProviderError(error.kind, f"health check failed: {error.detail}") from error

    async def close(self) -> None:
        """Nothing outlives a question."""


def _hint(error: ProcessFailed) -> str:
    if isinstance(error, ProcessTimedOut):
        stderr = error.stderr.strip()
        return f"; stderr: {stderr}" if stderr else ""
    if "too long" in str(error):
        return "; use {PROMPT_FILE} or stdin: prompt for long prompts"
    return ""


def _files(files: Sequence[InputFile], form: str | None) -> str:
    def one(file: InputFile) -> str:
        values = {"path": shlex.quote(str(file.path)), "basename": shlex.quote(file.path.name)}
        return re.sub(r"\{(path|basename)\}", lambda match: values[match[1]], form or "{path}")

    return " ".join(map(one, files))


async def _read_output(path: Path) -> str:
    """Return what the command has written.

    It is read outside of the command's isolation, so no link may lead elsewhere.
    """
    folder = path.parent
    try:
        content = await asyncio.to_thread(
            read_left, folder.parent, f"{folder.name}/{path.name}", MAX_OUTPUT_BYTES
        )
    except FileNotFoundError as error:
        raise ProviderError(
            "process", f"the command did not write its output file: {error.strerror}"
        ) from error
    except OSError as error:
        raise ProviderError(
            "process", f"the output file cannot be read: {error.strerror}"
        ) from error
    return content.decode("utf-8", "replace")


def _crash(finished: ProcessResult) -> str:
    """Return why a command ended with an error: its exception, else all that it said."""
    said = finished.stderr.strip() or finished.stdout.strip()
    has_answered = bool(finished.stderr.strip() and finished.stdout.strip())
    answered = ", after it had printed an answer" if has_answered else ""
    return f"{exception_in(said) or said} (exit code {finished.status}{answered})".lstrip()


def _response(text: str, prompt: str) -> Response:
    """Read `{"output_messages": […]}` or `{"text": "…"}`; everything else is the answer itself."""
    request: JsonObject = {"prompt": prompt}
    match _protocol(text):
        case {"output_messages": list()} as loaded:
            return _conversation(loaded, request)
        case {"text": str(said)}:
            text = said
        case _:
            pass
    answer = text.strip()
    return Response(
        answer=answer,
        messages=(OutputMessage(role="assistant", content=answer),),
        has_trace=False,
        request=request,
    )


def _conversation(loaded: JsonObject, request: JsonObject) -> Response:
    messages = tuple(map(_message, _entries(loaded, "output_messages", "role")))
    answer, said = last_answer(messages), text_at(loaded, "text") or ""
    if answer and said and answer.strip() != said.strip():
        raise ProviderError("malformed", "'text' and 'output_messages' have different answers")
    return Response(answer=answer or said, messages=messages, has_trace=True, request=request)


def _protocol(text: str) -> JsonObject:
    """Return an object of the protocol.

    Empty if the text is anything else, such as an object with other keys.
    """
    loaded = json_or_none(text)
    if not isinstance(loaded, dict) or not loaded.keys() <= PROTOCOL:
        return {}
    # A key that occurs twice is nothing that a program means.
    pairs = json.loads(text, object_pairs_hook=list)
    return loaded if len(pairs) == len(loaded) else {}


def _message(written: JsonObject) -> OutputMessage:
    calls = tuple(
        ToolCall(tool=str(entry["tool"]), input=entry.get("input"), output=entry.get("output"))
        for entry in _entries(written, "tool_calls", "tool")
    )
    return OutputMessage(
        role=str(written["role"]), content=written.get("content"), tool_calls=calls
    )


def _entries(written: JsonObject, name: str, key: str) -> Iterator[JsonObject]:
    """Yield the entries of a list; raises ProviderError for one without a string at `key`."""
    listed = written.get(name)
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
            raise ProviderError("malformed", f"an entry of {name} must have a string '{key}'")
        yield entry


def last_answer(messages: Sequence[OutputMessage]) -> str:
    """Return the content of the last assistant message that has content.

    Content that is not a string becomes JSON.
    """
    for message in reversed(messages):
        if message.role == "assistant" and message.content not in (None, "", []):
            content = message.content
            if isinstance(content, str):
                return content
            return json.dumps(content, ensure_ascii=False)
    return ""
