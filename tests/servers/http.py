"""A loopback HTTP server: a function makes the reply to each request."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, field

PIECE = 61
"""Bytes per chunk of a stream: a prime number, so that chunks end anywhere in an event."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The JSON of the body; None without a body, or with one that is not JSON."""
    connection: int = 0
    """The port that the client's end of the connection has."""

    @property
    def route(self) -> str:
        return urlsplit(self.path).path

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(urlsplit(self.path).query))


class Reply(Struct, frozen=True):
    """An answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: bool = False
    """Whether the body goes out in chunks of the transfer encoding."""
    cut_at: int | None = None
    """After how many bytes of the body the connection is dropped."""
    delay_s: float = 0.0
    """How long the chat API waits before it answers."""


def answers(status: int, body: object, headers: Mapping[str, str] | None = None) -> Reply:
    """Any JSON."""
    return Reply(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})


@contextmanager
def serve(reply: Callable[[Asked], Reply], context: ssl.SSLContext | None = None, port: int = 0) -> Iterator[str]:
    """Yield the address of a server that runs until the block ends; questions at once come in threads."""

    class Handler(_Handler):
        def answer(self) -> None:
            headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
            self.send(reply(Asked(self.command, self.path, headers, self.json(), self.client_address[1])))

        do_GET = do_HEAD = do_POST = answer  # noqa: N815  # the names in the base class

    server = _Server(("127.0.0.1", port), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up, as some tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A reply in two packets would wait for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name in the base class
        pass

    def json(self) -> Any:
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

    def send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        framing = ("transfer-encoding", "chunked") if reply.streamed else ("content-length", str(len(reply.body)))
        for name, value in (*reply.headers.items(), framing):
            self.send_header(name, value)
        self.end_headers()
        body = reply.body[: reply.cut_at]
        if reply.streamed:
            pieces = [body[start : start + PIECE] for start in range(0, len(body), PIECE)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
            body += b"0\r\n\r\n" if reply.cut_at is None else b""
        if self.command != "HEAD":
            self.wfile.write(body)
        if reply.cut_at is not None:
            self.close_connection = True
            # The client may have been faster.
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
