"""HTTP/1.1 on asyncio's loop, for plain addresses without a proxy; the door to httptools, Node's parser.

A shared httpx client does work proportional to its number of connections on every request, and even a client with a
single connection takes several times as long as the protocol itself. So each question has a connection of its own.

Nothing yields to the loop between an answer and the next question. Where something does, such as the locks of a
connection pool, all answers that arrived together are processed before any of the next questions is sent.
"""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import httptools

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.apis.wire import (
    ACCEPTED_PACKINGS,
    CONNECT_TIMEOUT_S,
    MAX_BODY_BYTES,
    USER_AGENT,
    Answer,
    network_error,
    require_bounds,
    unpacked,
    unsendable_header,
)

HAPPY_EYEBALLS_S = 0.25
"""Wait before another address of a host is tried too (RFC 8305, section 8)."""
KEEPALIVE_S = 5.0
"""Servers may close connections that are idle for longer."""

PLAIN = re.compile(
    r"https?://(?:[A-Za-z0-9.-]+|\[[0-9a-f:]+\])(?::[1-9][0-9]{0,4})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*)?"
)
SENDABLE = re.compile(r"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[!-~](?:[\t -~]*[!-~])?)?\r\n)+")
"""Header lines of RFC 9110, section 5, in ASCII."""
UNQUOTED = "/?:@!$&'()*+,;=%~"

MOST_QUIET_BYTES = 100 * 1024
"""The most bytes of headers, trailers and framing without any of the body."""
PIECE_BYTES = 64 * 1024


def is_plain(url: str) -> bool:
    """Whether an address can be sent as written, without normalisation."""
    try:
        return PLAIN.fullmatch(url) is not None and urlsplit(url).port != 0
    except ValueError:
        return False


class Direct:
    """See Wire: each question borrows a connection, which later questions reuse."""

    def __init__(self, base_url: str, context: ssl.SSLContext | None) -> None:
        self._base_url = base_url
        self._context = context
        self._path = urlsplit(base_url).path
        self._own_headers = {
            "host": urlsplit(base_url).netloc,
            "accept": "*/*",
            "accept-encoding": ACCEPTED_PACKINGS,
            "user-agent": USER_AGENT,
        }
        self._idle: list[Connection] = []

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes) -> Answer:
        """See Wire."""
        all_headers = {**self._own_headers, **headers, "content-length": str(len(content))}
        target = self._path + quote(path, safe=UNQUOTED)
        connection = self._idle_connection() or await connect(self._base_url, self._context)
        try:
            reply = await connection.post(target, all_headers, content)
        finally:
            if connection.is_idle():
                self._idle.append(connection)
            else:
                connection.close()
        return Answer(reply.status, reply.headers, unpacked(reply.take_body(), reply.headers, self._base_url))

    def _idle_connection(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_ready():
                return connection
            connection.close()
        return None

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
        # The loop closes them in its next iteration, which may be its last.
        await asyncio.sleep(0)


async def connect(url: str, context: ssl.SSLContext | None) -> Connection:
    """Return an open connection to the server of an address; raises ProviderError."""
    parts = urlsplit(url)
    assert parts.hostname is not None, "a plain address has a host"
    is_encrypted = parts.scheme == "https"
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(url),
                parts.hostname,
                parts.port or (443 if is_encrypted else 80),
                ssl=context if is_encrypted else None,
                server_hostname=parts.hostname if is_encrypted else None,
                happy_eyeballs_delay=HAPPY_EYEBALLS_S,
            )
    except TimeoutError as error:
        raise network_error("ConnectTimeout", url) from error
    except (OSError, UnicodeError) as error:
        # UnicodeError: an invalid host name.
        raise network_error("ConnectError", url, error) from error
    return connection


class Connection(asyncio.Protocol):
    """A connection that carries one question at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reply: Reply | None = None
        """The reply to the last question."""
        self._end: asyncio.Future[ProviderError | None] | None = None
        """Done when that reply is complete; its result is the reason when it never will be."""
        self._last_data_at = 0.0
        self._is_over = False

    async def post(self, target: str, headers: Mapping[str, str], content: bytes) -> Reply:
        """Return the complete reply to a question; raises ProviderError."""
        head = _head(target, headers)
        reply = self._reply = Reply(self._url)
        end = self._end = self._loop.create_future()
        if self._is_over:
            self.connection_lost(None)
        self._transport.write(head + content)
        try:
            failure = await end
        finally:
            reply.close()
            self._end = None
        if failure is not None:
            raise failure
        return reply

    def is_idle(self) -> bool:
        """Whether the last question is answered and the connection open."""
        reply = self._reply
        is_answered = reply is not None and reply.is_complete and reply.keeps_connection
        is_open = not self._is_over and not self._transport.is_closing()
        return is_answered and is_open and self._transport.get_write_buffer_size() == 0

    def is_ready(self) -> bool:
        """Whether the next question can use this connection: it is idle, and nothing follows the last answer."""
        is_fresh = self._loop.time() - self._last_data_at < KEEPALIVE_S
        return is_fresh and self.is_idle() and not self._has_events()

    def _has_events(self) -> bool:
        """Whether the server has sent data or closed the connection, which the loop does not know yet."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Abort the connection; the loop closes it in its next iteration."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._last_data_at = self._loop.time()
        if self._reply is None or self._end is None or self._end.done():
            # No question is under way.
            self.close()
            return
        try:
            self._reply.feed(data)
        except ProviderError as error:
            self._finish(error)
        if self._reply.is_complete:
            self._finish(None)

    def eof_received(self) -> None:
        """See asyncio.Protocol."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._is_over = True
        if self._reply is None or self._reply.is_complete:
            return
        if exc is not None:
            self._finish(network_error("ReadError", self._url, exc))
            return
        try:
            self._reply.end()
        except ProviderError as error:
            self._finish(error)
        else:
            self._finish(None)

    def _finish(self, failure: ProviderError | None) -> None:
        if failure is not None:
            self.close()
        if self._end is not None and not self._end.done():
            self._end.set_result(failure)


def _head(target: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if SENDABLE.fullmatch(lines) is None:
        raise unsendable_header("LocalProtocolError")
    return f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode("ascii")


class Reply:
    """A reply that is being received."""

    def __init__(self, url: str, most_bytes: int = MAX_BODY_BYTES) -> None:
        self._url = url
        self.status = 0
        self.headers: dict[str, str] = {}
        """Names are lower case; of repeated headers the last one counts."""
        self.is_complete = False
        self.keeps_connection = False
        """Whether the server accepts another question on this connection."""
        self._most_bytes = most_bytes
        self._body: list[bytes] = []
        self._size = 0
        self._quiet_bytes = 0
        self._has_headers = False
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # Small servers send bare line feeds, and gateways send both a length and chunks.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True, lenient_chunked_length=True
        )

    def take_body(self) -> bytes:
        """Return the body, and release it."""
        body, self._body = b"".join(self._body), []
        return body

    def close(self) -> None:
        """Release the parser, which refers to the reply: otherwise only the garbage collector would free them."""
        self._parser = None

    def feed(self, data: bytes) -> None:
        """Parse bytes; raises ProviderError for an invalid reply or a body of more than `most_bytes`."""
        for start in range(0, len(data), PIECE_BYTES):
            self._feed(data[start : start + PIECE_BYTES])

    def _feed(self, piece: bytes) -> None:
        if self.is_complete or self._parser is None:
            self.keeps_connection = False
            return
        self._quiet_bytes += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as error:
            raise self._invalid_reply("the server switched to another protocol") from error
        except httptools.HttpParserError as error:
            self.keeps_connection = False
            # Bytes after a complete answer only end the connection.
            if not self.is_complete:
                raise self._invalid_reply(error) from error
        if self._quiet_bytes > MOST_QUIET_BYTES:
            raise self._invalid_reply(f"more than {MOST_QUIET_BYTES // 1024} KiB of headers")
        require_bounds(self._size, self._most_bytes)
        if self.is_complete:
            self.close()

    def end(self) -> None:
        """Handle the end of the connection; raises ProviderError unless that completes the answer."""
        self.keeps_connection = False
        if self.is_complete:
            return
        if not self._has_headers:
            raise self._invalid_reply("server disconnected without sending a response")
        if "content-length" in self.headers or "transfer-encoding" in self.headers:
            raise self._invalid_reply("server disconnected in the middle of its response")
        # RFC 9112, section 6.3: without either, an answer ends with its connection.
        self.is_complete = True

    def on_message_begin(self) -> None:
        """See httptools; another answer, or the final one after an interim one."""
        if self.is_complete:
            self.keeps_connection = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools; called for trailers too."""
        if not self._has_headers:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        """See httptools."""
        if self.is_complete or self._parser is None:
            return
        self.status = self._parser.get_status_code()
        if self.status < 100:
            raise self._invalid_reply(f"invalid status {self.status}")
        if self.status < 200:
            self.headers.clear()
            return
        self._has_headers = True
        self._quiet_bytes = 0
        self.keeps_connection = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        if not self.is_complete:
            self._body.append(body)
            self._size += len(body)
            self._quiet_bytes = 0

    def on_message_complete(self) -> None:
        """See httptools."""
        if self._has_headers:
            self.is_complete = True

    def _invalid_reply(self, reason: object) -> ProviderError:
        return network_error("RemoteProtocolError", self._url, reason)
