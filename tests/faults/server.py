"""A loopback server of OpenAI's chat completions that fails in the way that a question names.

A question is `case: <name>; fault: <fault>` anywhere in a request's body; `catalogue.py` has the faults.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
from asyncio.trsock import TransportSocket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

End = Literal["waits", "closes", "closes-with-the-last-byte", "closes-at-the-next-question", "resets", "ends-all"]
"""What happens to a connection after the reply.

`closes-with-the-last-byte`: both arrive at once, so that their order is not left to chance.
`closes-at-the-next-question`: the connection looks alive until it is used.
`ends-all`: the server ends, with all its connections.
"""

QUESTION = re.compile(rb"case: ([\w.-]+); fault: ([\w-]+)")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SOUND = "none"
"""The fault of a question that has none."""
DEADLINE_S = 30
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST and drops what is not sent yet."""


@dataclass(frozen=True, slots=True)
class Play:
    """What the server does with one request."""

    says: Callable[[str], Iterable[bytes]]
    """The reply to a question's name, piece by piece."""
    end: End = "waits"
    pause_s: float = 0.0
    """Between two pieces; 0: all at once."""


@dataclass(slots=True)
class FaultyApi:
    """A running server and what it was asked."""

    port: int = 0
    heard: Counter[str] = field(default_factory=Counter)
    """Question → its requests."""
    closed_at_once: set[str] = field(default_factory=set)
    """Sound questions whose first request came through a connection that the server then closed."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@contextmanager
def faulty_api(plays: Mapping[str, tuple[Play, ...]]) -> Iterator[FaultyApi]:
    """Serve until the block ends.

    `plays` are the names of faults and what they do, request by request of one question; the last play repeats.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = _Server(plays)
    asyncio.run_coroutine_threadsafe(server.begin(), loop).result(DEADLINE_S)
    try:
        yield server.api
    finally:
        asyncio.run_coroutine_threadsafe(server.ended(), loop).result(DEADLINE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_S)
        loop.close()


class _Server:
    """What connections share."""

    def __init__(self, plays: Mapping[str, tuple[Play, ...]]) -> None:
        self.api = FaultyApi()
        self.plays = plays
        self.connections: set[_Connection] = set()
        self.drips: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server

    async def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        self.api.port = self._listening.sockets[0].getsockname()[1]

    def end(self) -> None:
        """Listen no longer, and drop all connections."""
        self._listening.close()
        for connection in self.connections:
            connection.abort()

    async def ended(self) -> None:
        """End, and wait until nothing is left."""
        self.end()
        await asyncio.gather(*(connection.lost for connection in self.connections))
        await asyncio.gather(*self.drips, return_exceptions=True)


class _Connection(asyncio.Protocol):
    """Reads one request after the other and plays what its question's fault says."""

    def __init__(self, server: _Server) -> None:
        self.lost = asyncio.get_running_loop().create_future()
        self._server = server
        self._received = b""
        self._only_looks_alive = False
        self._drips: list[asyncio.Task[None]] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        for drip in self._drips:
            drip.cancel()
        self.lost.set_result(None)

    def abort(self) -> None:
        """Drop the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._received.startswith(b"POST"[: len(self._received)]):
            # Not HTTP, such as the beginning of TLS.
            self._transport.close()
            return
        head, found, rest = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        size = int(length[1]) if length else 0
        if found and len(rest) >= size:
            self._received = rest[size:]
            self._answer(rest[:size])

    def _answer(self, body: bytes) -> None:
        api = self._server.api
        question, fault = (word.decode() for word in QUESTION.findall(body)[-1])
        before = api.heard[question]
        api.heard[question] += 1
        if self._only_looks_alive and fault == SOUND and not before:
            api.closed_at_once.add(question)
            self._transport.close()
            return
        plays = self._server.plays[fault]
        self._play(plays[min(before, len(plays) - 1)], question)

    def _play(self, play: Play, question: str) -> None:
        if play.pause_s:
            drip = asyncio.get_running_loop().create_task(self._drip(play, question))
            self._drips.append(drip)
            self._server.drips.add(drip)
            drip.add_done_callback(self._server.drips.discard)
            return
        if play.end == "closes-with-the-last-byte":
            self._socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self._transport.write(b"".join(play.says(question)))
        self._end(play.end)

    async def _drip(self, play: Play, question: str) -> None:
        for piece in play.says(question):
            self._transport.write(piece)
            await asyncio.sleep(play.pause_s)
        self._end(play.end)

    def _end(self, end: End) -> None:
        match end:
            case "waits":
                pass
            case "closes" | "closes-with-the-last-byte":
                self._transport.close()
            case "closes-at-the-next-question":
                self._only_looks_alive = True
            case "resets":
                self._socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self._transport.abort()
            case "ends-all":
                self._server.end()

    def _socket(self) -> TransportSocket:
        found: TransportSocket = self._transport.get_extra_info("socket")
        return found


def completion(question: str) -> bytes:
    """Return a completion whose answer names the question."""
    message = {"role": "assistant", "content": f"42 for {question}"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"model": "mock-model", "choices": [choice], "usage": usage}).encode()
