"""One HTTP/1.1 connection on asyncio's loop; the door to h11, which knows the protocol.

Between an answer and the next question nothing yields to the loop. Where something does, such as the locks of a pool of
connections, all answers that came together are worked through before any of the next questions leaves.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import h11

MOST_UNREAD_BYTES = 1024 * 1024
MOST_HEADER_BYTES = 100 * 1024
PIECE_BYTES = 64 * 1024
HAPPY_EYEBALLS_S = 0.25
"""Wait before another address of a host is tried as well (RFC 8305, section 8)."""


class ConnectError(Exception):
    """There is no connection."""


class ConnectTimeout(Exception):
    """There is no connection in time."""


class ReadError(Exception):
    """A connection broke."""


class ReadTimeout(Exception):
    """Nothing came in time."""


BROKEN = (ConnectError, ConnectTimeout, ReadError, ReadTimeout, h11.ProtocolError)
"""What a connection raises."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int
    context: ssl.SSLContext | None
    """Whom the connection trusts; None: it is not encrypted."""


async def connect(address: Address, *, timeout_s: float) -> Connection:
    """Return an open connection; raises ConnectError or ConnectTimeout."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                Connection,
                address.host,
                address.port,
                ssl=address.context,
                server_hostname=address.host if address.context is not None else None,
                happy_eyeballs_delay=HAPPY_EYEBALLS_S,
            )
    except TimeoutError as error:
        raise ConnectTimeout from error
    except (OSError, UnicodeError) as error:
        # UnicodeError: a name that no host can have.
        raise ConnectError(str(error)) from error
    return connection


class Connection(asyncio.Protocol):
    """Carries one question after the other."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEADER_BYTES)
        self._transport: asyncio.Transport
        self._pieces: deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_over = False
        self._error: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._idle_since = 0.0

    async def post(
        self,
        target: str,
        headers: Mapping[str, str],
        content: bytes,
        *,
        timeout_s: float,
        on_bytes: Callable[[int], None],
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers (names in lower case) and body of the answer.

        `timeout_s` bounds each wait for bytes; `on_bytes` is told how many the body has by now, and may raise. Raises
        what BROKEN lists.
        """
        request = h11.Request(method="POST", target=target, headers=[*headers.items()])
        parts = (request, h11.Data(data=content), h11.EndOfMessage())
        self._transport.write(b"".join(self._http.send(part) or b"" for part in parts))
        status, found = 0, {}
        body: list[bytes] = []
        size = 0
        while True:
            match await self._event(timeout_s):
                case h11.Response() as response:
                    status = response.status_code
                    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
                case h11.Data(data=data):
                    size += len(data)
                    on_bytes(size)
                    body.append(bytes(data))
                case h11.EndOfMessage():
                    break
                case h11.ConnectionClosed():
                    raise h11.RemoteProtocolError("Server disconnected without sending a response.")
                case _:
                    pass
        self._idle_since = asyncio.get_running_loop().time()
        return status, found, b"".join(body)

    async def _event(self, timeout_s: float) -> h11.Event:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._read(timeout_s)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise h11.RemoteProtocolError("Server disconnected without sending a response.")
            self._http.receive_data(data)
        if not isinstance(event, h11.Event):
            raise h11.RemoteProtocolError("The server wants to speak another protocol.")
        return event

    async def _read(self, timeout_s: float) -> bytes:
        if not self._pieces and not self._is_over:
            self._news = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news
            except TimeoutError as error:
                raise ReadTimeout from error
        if self._pieces:
            data = self._pieces.popleft()
            if len(data) > PIECE_BYTES:
                # h11 looks at the length of headers between pieces only.
                self._pieces.appendleft(data[PIECE_BYTES:])
                data = data[:PIECE_BYTES]
            self._unread_bytes -= len(data)
            if self._unread_bytes <= MOST_UNREAD_BYTES and not self._transport.is_closing():
                self._transport.resume_reading()
            return data
        if self._error is not None:
            raise ReadError(str(self._error)) from self._error
        return b""

    def may_be_used_again(self) -> bool:
        """Whether the last answer is over, and nothing follows it: that would be taken for the next one."""
        is_done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not is_done or self._http.trailing_data[0] or not self._is_still():
            return False
        self._http.start_next_cycle()
        return True

    def is_fresh(self, longest_s: float) -> bool:
        """Whether a connection that waits for a question is likely still good for one."""
        is_young = asyncio.get_running_loop().time() - self._idle_since < longest_s
        return is_young and self._is_still() and not self._has_news()

    def _has_news(self) -> bool:
        """Whether the server has closed the connection, or said something, of which the loop has not heard yet."""
        news = select.poll()
        news.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(news.poll(0))

    def _is_still(self) -> bool:
        return not (self._pieces or self._is_over or self._transport.is_closing())

    def close(self) -> None:
        """Let go of the connection at once; the loop does so in its next round."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._pieces.append(data)
        self._unread_bytes += len(data)
        if self._unread_bytes > MOST_UNREAD_BYTES:
            self._transport.pause_reading()
        self._tell()

    def eof_received(self) -> None:
        """See asyncio.Protocol."""
        self._is_over = True
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._is_over, self._error = True, exc
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
