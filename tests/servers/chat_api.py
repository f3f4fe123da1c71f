"""A loopback server that speaks OpenAI's chat completions.

What it answers is a list of steps, one per request; the last one repeats. A step is made by the functions below.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer on the wire."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    """Whether the connection is dropped in the middle of the body."""


Step = Reply | Callable[[dict[str, Any]], Reply]
"""A reply, or what makes one from the request's body."""


def says(text: str | None, **choice: Any) -> Reply:
    """A completion with `text`; `choice` replaces keys of the choice, such as finish_reason or message."""
    message = {"role": "assistant", "content": text, "refusal": None}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_900_000_000,
        "model": "mock-model-2030",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", **choice}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 20},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }
    return answers(200, body)


def fails(status: int, message: str = "mock failure", **headers: str) -> Reply:
    """An error with OpenAI's body; header names are written with `_` for `-`."""
    body = {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
    return answers(status, body, **headers)


def answers(status: int, body: object, **headers: str) -> Reply:
    """Any JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), {"content-type": "application/json", **named})


@dataclass(slots=True)
class ChatApi:
    """A running server and what it was asked."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    """{"path", "headers", "body"} in order."""
    most_at_once: int = 0

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"


@contextmanager
def chat_api(*steps: Step) -> Iterator[ChatApi]:
    """Serve `steps` until the block ends."""
    server = _Server(steps or (says("MOCK-ANSWER 42"),))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps = steps
        self.api = ChatApi(f"http://127.0.0.1:{self.server_port}")
        self.lock = threading.Lock()
        self.at_once = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up, as some tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # A reply in two packets would wait for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name in the base class
        pass

    def do_GET(self) -> None:  # the name in the base class
        self._send(answers(200, {"object": "list", "data": []}))

    def do_POST(self) -> None:  # the name in the base class
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        server = self.server
        with server.lock:
            number = len(server.api.requests)
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.api.requests.append({"path": self.path, "headers": headers, "body": body})
            server.at_once += 1
            server.api.most_at_once = max(server.api.most_at_once, server.at_once)
        try:
            step = server.steps[min(number, len(server.steps) - 1)]
            self._send(step(body) if callable(step) else step)
        finally:
            with server.lock:
                server.at_once -= 1

    def _send(self, reply: Reply) -> None:
        time.sleep(reply.delay_s)
        self.send_response(reply.status)
        self.send_header("content-length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.cut:
            self.wfile.write(reply.body[: len(reply.body) // 2])
            self.close_connection = True
            return
        self.wfile.write(reply.body)
