"""A client of language servers over standard input and output."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

Message = Mapping[str, Any]
WAIT_S = 30.0
CAPABILITIES = {
    "workspace": {"configuration": True},
    "textDocument": {
        "completion": {"completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]}},
        "hover": {"contentFormat": ["markdown"]},
        "publishDiagnostics": {},
    },
}


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


@contextmanager
def language_server(command: Sequence[str], *, root: Path, settings: Mapping[str, Any]) -> Iterator[LanguageServer]:
    """Run a server with its settings."""
    process = subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    received: SimpleQueue[Message | None] = SimpleQueue()
    reader = threading.Thread(target=_read, args=(process.stdout, received), daemon=True)
    reader.start()
    try:
        server = LanguageServer(process.stdin, received, root, settings)
        server.start()
        yield server
        server.stop()
        process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait(WAIT_S)
        reader.join(WAIT_S)
        process.stdout.close()
        process.stdin.close()


@dataclass(slots=True)
class LanguageServer:
    """A running server. Documents are never saved; each has a unique name."""

    _stdin: IO[bytes]
    _received: SimpleQueue[Message | None]
    _root: Path
    _settings: Mapping[str, Any]
    _is_configured: bool = False
    _problems: dict[str, list[Problem]] = field(default_factory=dict)
    _asked: int = 0

    def start(self) -> None:
        self._ask("initialize", {"processId": None, "rootUri": self._root.as_uri(), "capabilities": CAPABILITIES})
        self._send({"method": "initialized", "params": {}})
        self._send({"method": "workspace/didChangeConfiguration", "params": {"settings": self._settings}})
        deadline = time.monotonic() + WAIT_S
        while not self._is_configured:
            self._take(deadline)

    def stop(self) -> None:
        self._ask("shutdown", None)
        self._send({"method": "exit"})

    def open(self, name: str, text: str) -> None:
        """Open a document."""
        document = {"uri": self._uri(name), "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

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

    def _take(self, deadline: float) -> Message:
        """Take the next message; answer requests, and keep published diagnostics."""
        try:
            message = self._received.get(timeout=max(deadline - time.monotonic(), 0.001))
        except Empty:
            raise TimeoutError(f"no answer from the language server within {WAIT_S:g} s") from None
        assert message is not None, "the language server has ended"
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
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._stdin.flush()


def _read(stream: IO[bytes], received: SimpleQueue[Message | None]) -> None:
    while True:
        length = 0
        while header := stream.readline().strip():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = stream.read(length)
        received.put(json.loads(body) if body else None)
        if not body:
            return
