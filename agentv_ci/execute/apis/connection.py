"""One HTTP/1.1 connection on asyncio's loop.

Between an answer and the next question nothing yields to the loop. Where something does, such as the locks of a pool of
connections, all answers that came together are worked through before any of the next questions leaves.
"""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from agentv_ci.execute.apis.reply import RemoteProtocolError, Reply, TooLong

HAPPY_EYEBALLS_S = 0.25
"""Wait before another address of a host is tried as well (RFC 8305, section 8)."""

SENDABLE = re.compile(r"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[!-~](?:[\t -~]*[!-~])?)?\r\n)+")
"""Header lines of RFC 9110, section 5, in ASCII."""


class ConnectError(Exception):
    """There is no connection."""


class ConnectTimeout(Exception):
    """There is no connection in time."""


class ReadError(Exception):
    """A connection broke."""


class ReadTimeout(Exception):
    """Nothing came in time."""


class LocalProtocolError(Exception):
    """What is to be sent is no HTTP."""


BROKEN = (ConnectError, ConnectTimeout, ReadError, ReadTimeout, LocalProtocolError, RemoteProtocolError)
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
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reply: Reply | None = None
        """To the last question."""
        self._end: asyncio.Future[None] | None = None
        """Done when that reply is complete, or will never be."""
        self._error: Exception | None = None
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._is_over = False

    async def post(
        self, target: str, headers: Mapping[str, str], content: bytes, *, timeout_s: float, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers (names in lower case) and body of the answer.

        `timeout_s` bounds each wait for bytes, `most_bytes` the body. Raises TooLong, and what BROKEN lists.
        """
        head = _head(target, headers)
        reply = self._reply = Reply(most_bytes)
        end = self._end = self._loop.create_future()
        self._heard_at = self._loop.time()
        self._expect_news(timeout_s)
        if self._is_over:
            self._stop(None)
        self._transport.write(head + content)
        try:
            await end
        finally:
            reply.close()
            self._end = None
            if self._watch is not None:
                self._watch.cancel()
        if self._error is not None:
            raise self._error
        return reply.status, reply.headers, reply.take_body()

    def _expect_news(self, timeout_s: float) -> None:
        left_s = self._heard_at + timeout_s - self._loop.time()
        if left_s > 0:
            self._watch = self._loop.call_later(left_s, self._expect_news, timeout_s)
        else:
            self._fail(ReadTimeout())

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._tell()

    def _tell(self) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def _stop(self, error: Exception | None) -> None:
        """Nothing more will come."""
        self._is_over = True
        if self._reply is None or self._reply.is_complete:
            return
        if error is not None:
            broken = ReadError(str(error))
            broken.__cause__ = error
            self._fail(broken)
            return
        try:
            self._reply.end()
        except RemoteProtocolError as incomplete:
            self._fail(incomplete)
        else:
            self._tell()

    def may_be_used_again(self) -> bool:
        """Whether the last answer is over, and nothing follows it: that would be taken for the next one."""
        return self._is_still() and self._transport.get_write_buffer_size() == 0

    def is_fresh(self, longest_s: float) -> bool:
        """Whether a connection that waits for a question is likely still good for one."""
        is_young = self._loop.time() - self._heard_at < longest_s
        return is_young and self._is_still() and not self._has_news()

    def _has_news(self) -> bool:
        """Whether the server has closed the connection, or said something, of which the loop has not heard yet."""
        news = select.poll()
        news.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(news.poll(0))

    def _is_still(self) -> bool:
        reply = self._reply
        is_done = reply is not None and reply.is_complete and reply.keeps_connection and self._error is None
        return is_done and not (self._is_over or self._transport.is_closing())

    def close(self) -> None:
        """Let go of the connection at once; the loop does so in its next round."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._heard_at = self._loop.time()
        if self._reply is None or self._end is None or self._error is not None:
            # Nobody asked, or nobody listens any more.
            self._transport.abort()
            return
        try:
            self._reply.feed(data)
        except (RemoteProtocolError, TooLong) as error:
            self._fail(error)
        if self._reply.is_complete:
            self._tell()

    def eof_received(self) -> None:
        """See asyncio.Protocol."""
        self._stop(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._stop(exc)


def _head(target: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if SENDABLE.fullmatch(lines) is None:
        raise LocalProtocolError
    return f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode("ascii")
