"""`provider: codex`: OpenAI's Codex, `codex exec --json`.

Its events, one JSON object per line: https://developers.openai.com/codex/noninteractive. Profiles
and configuration are Codex's own.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TextIO

from agentv_ci.base.json_access import count_at, json_or_none, text_at, value_at
from agentv_ci.base.text import printable
from agentv_ci.contracts.agent_targets import CodexTarget
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProcessResult, Request, Response
from agentv_ci.execute.agents.events import (
    AgentFailed,
    Progress,
    Spent,
    Turns,
    Write,
    kind_of_reported,
    last_event,
    read_events,
)
from agentv_ci.execute.agents.program import Agent, AgentProvider
from agentv_ci.execute.answers import error_message, of_type, summed
from agentv_ci.execute.provider_services import ProviderServices

OUTPUTS = {1: "stdout", 2: "stderr"}
LOGS_SWITCH = "AGENTV_CODEX_STREAM_LOGS"
OFF = frozenset({"false", "0", "off"})

KNOWN = frozenset(
    {"thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed", "error"}
)
PROGRESS = partial(
    Progress, final={"turn.completed", "turn.failed"}, working={"turn.started", "item.completed"}
)
PASSING = "Reconnecting"
"""Codex continues after an error that begins like this."""
STATUS = re.compile(r"\b(?:unexpected status|last status:) (\d{3})\b")
DISCONNECTED = re.compile(
    r"stream disconnected|error sending request|connection (?:refused|reset|failed)", re.IGNORECASE
)
OVERLOADED = re.compile(r"high demand|at capacity|overloaded", re.IGNORECASE)


Summarize = Callable[[JsonObject], Iterator[str]]
"""Yields log lines about an event."""


def open_provider(target: CodexTarget, services: ProviderServices) -> AgentProvider:
    """Return the provider of a resolved target; it writes a log of every run."""
    summarize = None if target.log_format == "json" else summary

    def open_log(request: Request, argv: Sequence[str]) -> AbstractContextManager[Write | None]:
        if services.environment.variables.get(LOGS_SWITCH, "").strip().lower() in OFF:
            return nullcontext()
        folder = services.place(target.log_dir) if target.log_dir else services.logs / "codex"
        return run_log(folder, target.name, request, argv, services=services, summarize=summarize)

    return AgentProvider(
        target,
        Agent("codex", partial(_arguments, target), read_output, spent, KNOWN, PROGRESS),
        services,
        open_log=open_log,
    )


def _arguments(
    target: CodexTarget, workspace: Path, is_elsewhere: bool
) -> Sequence[str]:  # as called
    """Return Codex's arguments: `--ask-for-approval` is global and first, `-` reads the prompt."""
    chosen = {"--profile": target.profile, "--model": target.model, "--sandbox": target.sandbox}
    options = list[str]()
    for option, value in chosen.items():
        if value is not None:
            options += [option, value]
    if is_elsewhere and target.sandbox == "workspace-write":
        options += ["--add-dir", str(workspace)]
    return [
        "--ask-for-approval",
        target.approval or str(target.implied["approval"]),
        *("exec", "--json", "--color", "never", "--skip-git-repo-check"),
        *options,
        *(target.args or ()),
        "-",
    ]


def read_output(finished: ProcessResult) -> Response | None:
    """Read the events; the answer is the last message of a completed turn."""
    events = read_events(finished.stdout, KNOWN)
    turns = Turns()
    for event in events:
        if text_at(event, "type") == "item.completed":
            _read_item(turns, value_at(event, "item"))
    completed = last_event(events, "turn.completed")
    if error := _error(events, is_completed=completed is not None):
        # It may be an API's error body.
        raise AgentFailed(error_message(json_or_none(error)) or error, _kind(error))
    return turns.response(turns.last, spent(events))


def spent(events: Sequence[JsonObject]) -> Spent:
    """Return what the turn has used; Codex reports that of completed ones."""
    completed = last_event(events, "turn.completed")
    if completed is None:
        return Spent()
    usage = value_at(completed, "usage")
    cached = count_at(usage, "cached_input_tokens")
    return Spent(
        usage=summed(count_at(usage, "input_tokens"), count_at(usage, "output_tokens"), cached)
    )


def _error(events: Sequence[JsonObject], *, is_completed: bool) -> str | None:
    """Return why there is no answer.

    That is the turn's failure, or the last error before the events ended.
    """
    if failed := last_event(events, "turn.failed"):
        return text_at(failed, "error", "message") or "the turn failed"
    if is_completed:
        return None
    messages = [text_at(event, "message") or "" for event in of_type(events, "error")]
    lasting = [message for message in messages if not message.startswith(PASSING)]
    return (lasting[-1] if lasting else "") or "the events end before the turn is completed"


def _read_item(turns: Turns, item: JsonValue) -> None:
    match text_at(item, "type"):
        case "agent_message" if (text := text_at(item, "text")) is not None:
            turns.say(text)
        case "command_execution":
            turns.call(
                "command_execution",
                {"command": value_at(item, "command")},
                value_at(item, "aggregated_output"),
            )
        case "file_change":
            turns.call("file_change", {"changes": value_at(item, "changes")})
        case "mcp_tool_call":
            name = f"{text_at(item, 'server')}.{text_at(item, 'tool')}"
            returned = value_at(item, "result") or value_at(item, "error")
            turns.call(name, value_at(item, "arguments"), returned)
        case "web_search":
            turns.call("web_search", {"query": value_at(item, "query")})
        case _:
            pass


def _kind(error: str) -> ErrorKind:
    if match := STATUS.search(error):
        return kind_of_reported(int(match[1]))
    if error.lstrip().startswith("{"):
        return "request"
    if OVERLOADED.search(error):
        return "server"
    if DISCONNECTED.search(error):
        return "network"
    return "process"


def summary(event: JsonObject) -> Iterator[str]:
    """Yield log lines about an event."""
    item = value_at(event, "item")
    match text_at(event, "type"), text_at(item, "type"):
        case "item.completed", "command_execution":
            yield f"command (exit {value_at(item, 'exit_code')}): {text_at(item, 'command')}"
        case "item.completed", "file_change":
            yield f"files changed: {json.dumps(value_at(item, 'changes'), ensure_ascii=False)}"
        case "item.completed", "mcp_tool_call":
            yield f"tool called: {text_at(item, 'server')}.{text_at(item, 'tool')}"
        case "item.completed", str(kind):
            yield f"{kind}: {text_at(item, 'text') or text_at(item, 'message') or ''}"
        case ("turn.completed" | "turn.failed" | "error") as kind, _:
            message = text_at(event, "message") or text_at(event, "error", "message")
            yield f"{kind}: {message or json.dumps(value_at(event, 'usage'))}"
        case str(kind), None:
            yield kind
        case _:
            pass


@contextmanager
def run_log(
    folder: Path,
    target: str,
    request: Request,
    argv: Sequence[str],
    *,
    services: ProviderServices,
    summarize: Summarize | None,
) -> Iterator[Write | None]:
    """Write a log while an agent runs: of its raw output if `summarize` is None.

    Warns, and yields None, when the log cannot be written.
    """
    try:
        file = _open(folder, target, request, services)
    except OSError as error:
        services.warn(f"{target}: cannot write agent logs: {error}")
        yield None
        return
    log = _Log(file, services, summarize)
    started = services.environment.now().isoformat(timespec="seconds")
    log.write(
        f"# {target}: {request.case_id}, attempt {request.attempt + 1}\n"
        f"# started {started}\n# {shlex.join(argv)}"
    )
    try:
        yield log
    finally:
        log.end()
        services.log(f"{target}: {request.case_id}: log in {file.name}")


def _open(folder: Path, target: str, request: Request, services: ProviderServices) -> TextIO:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = services.environment.now().strftime("%Y%m%dT%H%M%SZ")
    attempt = ""
    if request.attempt:
        attempt = f"_attempt-{request.attempt + 1}"
    name = f"{stamp}_{_safe(target)}_{_safe(request.case_id)}{attempt}_{uuid.uuid4().hex[:8]}.log"
    return (folder / name).open("x", encoding="utf-8")


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".")[:60] or "unnamed"


class _Log:
    """A log of whole lines."""

    def __init__(
        self, file: TextIO, services: ProviderServices, summarize: Summarize | None
    ) -> None:
        self._file = file
        self._services = services
        self._summarize = summarize
        self._begun = services.environment.monotonic()
        self._rests = {1: b"", 2: b""}
        self._is_full = False

    def __call__(self, output: int, data: bytes) -> None:
        *lines, rest = (self._rests[output] + data).split(b"\n")
        self._rests[output] = rest
        for line in lines:
            self._line(output, line)

    def end(self) -> None:
        """Write unfinished lines, and close the file."""
        for output, rest in self._rests.items():
            if rest:
                self._line(output, rest)
        with suppress(OSError):
            self._file.close()

    def _line(self, output: int, data: bytes) -> None:
        minutes, seconds = divmod(int(self._services.environment.monotonic() - self._begun), 60)
        line = data.decode("utf-8", "replace").rstrip()
        event = None
        if self._summarize is not None and line.startswith("{"):
            event = json_or_none(line)
        if self._summarize is not None and isinstance(event, dict):
            texts = self._summarize(event)
        else:
            texts = iter([line])
        for text in texts:
            self.write(f"[+{minutes:02}:{seconds:02}] [{OUTPUTS[output]}] {text}")

    def write(self, text: str) -> None:
        """Write lines without secrets, and flush: people follow the log.

        A write error is one warning, and ends the log.
        """
        if self._is_full:
            return
        try:
            # First remove escape sequences, which could split a secret.
            self._file.write(self._services.redact(printable(text)) + "\n")
            self._file.flush()
        except OSError as error:
            self._is_full = True
            self._services.warn(f"cannot write agent logs: {error}")
