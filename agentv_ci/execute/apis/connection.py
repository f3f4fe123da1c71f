"""A transport for httpx that has one connection; the door to httpcore.

httpx's own transport has a pool, which does work for all its connections on every request, and the
sockets of anyio, which take half as long again as those of asyncio. HTTP stays with httpcore and
h11; this module moves their bytes.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

HAPPY_EYEBALLS_S = 0.25
"""Wait before another address of a host is tried too (RFC 8305, section 8)."""
KEEPALIVE_S = 5.0
"""Servers may close connections that are idle for longer."""
LAST_PORT = 65_535
MOST_UNREAD_BYTES = 256 * 1024
"""Where the server has to wait until some are read."""


class OneConnection(httpx.AsyncBaseTransport):
    """Carries one request at a time, on one connection.

    Later requests to the same server reuse the connection.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._network = AsyncioNetwork()
        self._connection: httpcore.AsyncHTTPConnection | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx. A connection that the server has closed is replaced before it is used.

        Nothing is sent twice.
        """
        sent = _for_httpcore(request)
        with _errors_of_httpx():
            response = await self._answer_on_old_connection(sent)
            if response is None:
                response = await self._answer_on_new_connection(sent)
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    async def _answer_on_old_connection(self, sent: httpcore.Request) -> httpcore.Response | None:
        """Return the answer; None if there is no connection that can be used."""
        connection = self._connection
        if connection is None or not connection.is_idle() or connection.has_expired():
            return None
        stream = self._network.stream
        try:
            response = await connection.handle_async_request(sent)
        except httpcore.RemoteProtocolError:
            if stream.is_sent:
                raise
            return None
        # Otherwise these bytes followed the answer before: the request was not even sent.
        return response if stream.is_answered else None

    async def _answer_on_new_connection(self, sent: httpcore.Request) -> httpcore.Response:
        await self.aclose()
        self._connection = httpcore.AsyncHTTPConnection(
            sent.url.origin,
            ssl_context=self._context,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=self._network,
        )
        return await self._connection.handle_async_request(sent)

    async def aclose(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None


def _for_httpcore(request: httpx.Request) -> httpcore.Request:
    url = request.url
    if url.scheme not in ("http", "https") or not url.host:
        raise httpx.UnsupportedProtocol("only addresses with http:// or https:// can be asked")
    if url.port is not None and url.port > LAST_PORT:
        raise httpx.InvalidURL(f"there is no port {url.port}")
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Raise httpx's errors for httpcore's, which have the same names."""
    try:
        yield
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


class _Body(httpx.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for piece in self._response.aiter_stream():
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class AsyncioNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections on asyncio's loop."""

    stream: AsyncioStream
    """The connection that was opened last."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """See httpcore."""
        del local_address, socket_options
        loop = asyncio.get_running_loop()
        with _failed_connects():
            async with asyncio.timeout(timeout):
                # asyncio's race of addresses forgets a connected socket when it is cancelled: no
                # race for one address.
                delay = None if _is_address(host) else HAPPY_EYEBALLS_S
                _, self.stream = await loop.create_connection(
                    AsyncioStream, host, port, happy_eyeballs_delay=delay
                )
        return self.stream


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


@contextmanager
def _failed_connects() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(str(error)) from error
    except (OSError, UnicodeError) as error:
        # UnicodeError: an invalid host name.
        raise httpcore.ConnectError(str(error)) from error


class AsyncioStream(httpcore.AsyncNetworkStream, asyncio.Protocol):
    """A connection: what was received and not yet read, and what was written and not yet sent."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._unsent: list[bytes] = []
        self._unread = bytearray()
        self._arrival: asyncio.Future[None] | None = None
        """Done when there is something to read, or never will be."""
        self._is_over = False
        self._failure: Exception | None = None
        self.is_answered = False
        """Whether anything was received since the last request was sent."""

    @property
    def is_sent(self) -> bool:
        """Whether everything that was written was sent."""
        return not self._unsent

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # httpcore's
        """Keep bytes until an answer is read: so a request's head and body are sent at once."""
        del timeout
        self._unsent.append(buffer)
        self.is_answered = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore's
        """Send what was written; return what was received, empty at the end.

        The caller sets a time limit.
        """
        del timeout
        if self._unsent:
            self._transport.write(b"".join(self._unsent))
            self._unsent.clear()
        if not self._unread and not self._is_over:
            self._arrival = self._loop.create_future()
            await self._arrival
        if not self._unread and self._failure is not None:
            raise httpcore.ReadError(str(self._failure)) from self._failure
        data = bytes(self._unread[:max_bytes])
        del self._unread[:max_bytes]
        self._transport.resume_reading()
        self.is_answered = self.is_answered or bool(data)
        return data

    async def aclose(self) -> None:
        """Abort the connection; the loop closes it in its next iteration."""
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's
    ) -> httpcore.AsyncNetworkStream:
        """See httpcore."""
        try:
            with _failed_connects():
                async with asyncio.timeout(timeout):
                    encrypted = await self._loop.start_tls(
                        self._transport, self, ssl_context, server_hostname=server_hostname
                    )
        except BaseException:
            self._transport.abort()
            raise
        assert encrypted is not None, "the connection was open"
        self._transport = encrypted
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # httpcore's
        """See httpcore, which asks for `is_readable` before it reuses a connection."""
        if info == "is_readable":
            return self._has_events()
        return self._transport.get_extra_info(info)

    def _has_events(self) -> bool:
        """Whether the server has sent more or closed the connection.

        The loop may not know it yet.
        """
        if self._unread or self._is_over or self._transport.is_closing():
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._unread += data
        if len(self._unread) > MOST_UNREAD_BYTES:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """See asyncio.Protocol."""
        self._is_over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._is_over = True
        self._failure = exc
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
