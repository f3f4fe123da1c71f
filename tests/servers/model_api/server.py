"""The server itself: which protocol a path speaks, bodies in and replies out."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.model_api.anthropic_messages import AnthropicMessages
from tests.servers.model_api.dialect import Dialect, Mistake, Trouble
from tests.servers.model_api.gemini import Gemini
from tests.servers.model_api.openai_chat import OpenAIChat
from tests.servers.model_api.openai_responses import OpenAIResponses
from tests.servers.model_api.steps import Step, says
from tests.servers.model_api.wire import Asked, Reply, answers

_OPENAI, _AZURE = OpenAIChat(), OpenAIChat(azure=True)
_ANTHROPIC, _GEMINI = AnthropicMessages(), Gemini()
_QUESTIONS: Mapping[str, Dialect] = {
    "/v1/chat/completions": _OPENAI,
    "/v1/responses": OpenAIResponses(),
    "/openai/v1/chat/completions": _AZURE,
    "/openai/v1/responses": OpenAIResponses(azure=True),
    "/openai/deployments/[^/]+/chat/completions": OpenAIChat(azure=True, by_deployment=True),
    "/v1/messages": _ANTHROPIC,
    "/(v1|v1beta)/models/[^/:]+:(generateContent|streamGenerateContent)": _GEMINI,
}
_COUNTS: Mapping[str, tuple[Dialect, Any]] = {
    "/v1/messages/count_tokens": (_ANTHROPIC, {"input_tokens": 42}),
    "/(v1|v1beta)/models/[^/:]+:countTokens": (_GEMINI, {"totalTokens": 42}),
}
_PIECE = 61
"""Bytes per chunk of a stream: a prime number, so that chunks end anywhere in an event."""


@dataclass(slots=True)
class ModelApi:
    """A running server and what it was asked."""

    url: str
    requests: list[Asked] = field(default_factory=list)
    """All of them, in order."""
    questions: list[Asked] = field(default_factory=list)
    """Those that a model has to answer, also when they were refused."""


@contextmanager
def model_api(*steps: Step, requires_key: str | None = None) -> Iterator[ModelApi]:
    """Serve until the block ends: one step per question that is in order, the last one for all that follow.

    Args:
        steps: what to do; without any, every question is answered with a text.
        requires_key: the key that every request has to carry, in the vendor's way.
    """
    server = _Server(steps or (says(),), requires_key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.api
    finally:
        server.stop()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, steps: Sequence[Step], key: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps = steps
        self.key = key
        self.api = ModelApi(f"http://127.0.0.1:{self.server_port}")
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self.taken = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up, as some tests do."""

    def stop(self) -> None:
        self.shutdown()
        with self.lock:
            for connection in self.connections:
                _drop(connection)

    def next_step(self) -> Step:
        with self.lock:
            step = self.steps[min(self.taken, len(self.steps) - 1)]
            self.taken += 1
        return step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # A reply in two packets would wait for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections.add(self.connection)

    def finish(self) -> None:
        with self.server.lock:
            self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name in the base class
        pass

    def do_HEAD(self) -> None:  # the name in the base class
        self._received(None)
        self._send(Reply(200, b""))

    def do_GET(self) -> None:  # the name in the base class
        asked = self._received(None)
        if not asked.route.endswith("/models"):
            self._send(_no_route(asked))
            return
        dialect = _dialect_of_list(asked)
        self._send(self._refusal(dialect, asked, body=False) or answers(200, _models(dialect)))

    def do_POST(self) -> None:  # the name in the base class
        asked = self._received(self._body())
        dialect = next((found for path, found in _QUESTIONS.items() if re.fullmatch(path, asked.route)), None)
        if dialect is None:
            self._send(self._count(asked))
            return
        with self.server.lock:
            self.server.api.questions.append(asked)
        self._send(self._refusal(dialect, asked) or self.server.next_step().reply(dialect, asked))

    def _received(self, body: Any) -> Asked:
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, body)
        with self.server.lock:
            self.server.api.requests.append(asked)
        return asked

    def _body(self) -> Any:
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        raw = b"".join(self._chunks()) if chunked else self.rfile.read(int(self.headers.get("content-length") or 0))
        with suppress(ValueError, OSError, EOFError):
            return json.loads(gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw)
        return None

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def _refusal(self, dialect: Dialect, asked: Asked, *, body: bool = True) -> Reply | None:
        try:
            if self.server.key is not None:
                dialect.check_key(asked, self.server.key)
            if body:
                dialect.check(asked)
        except Mistake as mistake:
            return dialect.error(mistake.trouble)
        return None

    def _count(self, asked: Asked) -> Reply:
        for path, (dialect, counted) in _COUNTS.items():
            if re.fullmatch(path, asked.route):
                return self._refusal(dialect, asked, body=False) or answers(200, counted)
        return _no_route(asked)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.streamed:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self._write(reply)
        if reply.cut_at is not None:
            self._hang_up()

    def _write(self, reply: Reply) -> None:
        body = reply.body[: reply.cut_at]
        if not reply.streamed:
            self.wfile.write(body)
            return
        for start in range(0, len(body), _PIECE):
            piece = body[start : start + _PIECE]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if reply.cut_at is None:
            self.wfile.write(b"0\r\n\r\n")

    def _hang_up(self) -> None:
        self.close_connection = True
        _drop(self.connection)


def _drop(connection: socket.socket) -> None:
    # The client may have been faster.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _no_route(asked: Asked) -> Reply:
    return _OPENAI.error(Trouble(404, f"Invalid URL ({asked.method} {asked.route})", code=""))


def _dialect_of_list(asked: Asked) -> Dialect:
    """Vendors share the path of the list of models; headers tell them apart."""
    if "anthropic-version" in asked.headers:
        return _ANTHROPIC
    if "x-goog-api-key" in asked.headers or "key" in asked.query or asked.route.startswith("/v1beta/"):
        return _GEMINI
    return _AZURE if asked.route.startswith("/openai/") else _OPENAI


def _models(dialect: Dialect) -> Any:
    if dialect is _GEMINI:
        return {"models": [{"name": "models/mock-model", "displayName": "Mock"}]}
    if dialect is _ANTHROPIC:
        listed = {"type": "model", "id": "mock-model", "display_name": "Mock", "created_at": "2030-01-02T03:04:05Z"}
        return {"data": [listed], "has_more": False, "first_id": "mock-model", "last_id": "mock-model"}
    return {"object": "list", "data": [{"id": "mock-model", "object": "model", "created": 1, "owned_by": "mock"}]}
