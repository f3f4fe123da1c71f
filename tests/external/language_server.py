"""A client of language servers over standard input and output."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO, Any, Self

Message = Mapping[str, Any]

WAIT_S = 30.0


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a document; lines and characters count from 0."""

    line: int
    character: int


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem that a server reports, and where it begins."""

    place: Place
    message: str


class LanguageServer:
    """One server process with its settings. Documents are never saved; each has a unique name."""

    def __init__(self, command: Sequence[str], *, root: Path, settings: Mapping[str, Any]) -> None:
        self._root = root
        self._settings = settings
        self._process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._received: SimpleQueue[Message | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._is_configured = False
        self._problems: dict[str, list[Problem]] = {}
        self._asked = 0

    def __enter__(self) -> Self:
        self._reader.start()
        try:
            self._initialize()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._ask("shutdown", None)
                self._tell("exit", None)
                self._process.wait(WAIT_S)
        finally:
            self._end()

    def open(self, name: str, text: str) -> None:
        """Open a document."""
        document = {"uri": self._uri(name), "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})

    def completions(self, name: str, place: Place) -> Mapping[str, Message]:
        """Return the completions at a place: label → item."""
        answer = self._ask("textDocument/completion", self._at(name, place))
        items = answer["items"] if isinstance(answer, dict) else answer or []
        return {item["label"]: item for item in items}

    def hover(self, name: str, place: Place) -> str:
        """Return the hover text at a place, without the escapes of Markdown."""
        answer = self._ask("textDocument/hover", self._at(name, place))
        return re.sub(r"\\(\W|_)", r"\1", answer["contents"]["value"]) if answer else ""

    def problems(self, name: str) -> list[Problem]:
        """Return the problems of a document, from top to bottom."""
        deadline = time.monotonic() + WAIT_S
        while self._uri(name) not in self._problems:
            self._take(deadline)
        return sorted(self._problems[self._uri(name)])

    def _uri(self, name: str) -> str:
        return (self._root / name).as_uri()

    def _at(self, name: str, place: Place) -> Message:
        return {"textDocument": {"uri": self._uri(name)}, "position": asdict(place)}

    def _initialize(self) -> None:
        root = self._root.as_uri()
        capabilities = {
            "workspace": {"configuration": True},
            "textDocument": {
                "completion": {"completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]}},
                "hover": {"contentFormat": ["markdown"]},
                "publishDiagnostics": {},
            },
        }
        self._ask("initialize", {"processId": None, "rootUri": root, "capabilities": capabilities})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": self._settings})
        deadline = time.monotonic() + WAIT_S
        while not self._is_configured:
            self._take(deadline)

    def _ask(self, method: str, params: Any) -> Any:
        self._asked += 1
        number = self._asked
        self._send({"id": number, "method": method, "params": params})
        deadline = time.monotonic() + WAIT_S
        while True:
            message = self._take(deadline)
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    def _tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _take(self, deadline: float) -> Message:
        """Take the next message; answer requests, and keep published diagnostics."""
        try:
            left = deadline - time.monotonic()
            message = self._received.get(block=left > 0, timeout=max(left, 0))
        except Empty:
            raise TimeoutError(f"the language server gave no answer within {WAIT_S:g} s") from None
        if message is None:
            raise EOFError(f"the language server ended with status {self._process.wait(WAIT_S)}")
        match message:
            case {"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": found}}:
                self._problems[uri] = [Problem(Place(**each["range"]["start"]), each["message"]) for each in found]
            case {"method": "workspace/configuration", "id": number, "params": {"items": items}}:
                self._send({"id": number, "result": [self._settings.get(item["section"]) for item in items]})
                self._is_configured = True
            case {"method": _, "id": number}:
                self._send({"id": number, "result": None})
            case _:
                pass
        return message

    def _send(self, message: Message) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while (message := _next_message(self._process.stdout)) is not None:
            self._received.put(message)
        self._received.put(None)

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        self._process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()


def _next_message(stream: IO[bytes]) -> Message | None:
    length = 0
    while header := stream.readline().strip():
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = stream.read(length)
    message: Message | None = json.loads(body) if body else None
    return message
