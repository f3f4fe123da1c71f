"""A loopback server of OpenAI's chat completions that fails in the way that a question names.

A question is `case: <name>; fault: <fault>` anywhere in a request's body; `catalogue.py` has the faults.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Literal

from tests.servers.chat_api import says

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

    says: Callable[[bytes], bytes]
    """What goes over the wire, from the completion that answers the question."""
    end: End = "waits"
    piece: int = 0
    """Bytes that go out at a time; 0: all at once."""
    pause_s: float = 0.0
    """Between two pieces."""


@dataclass(slots=True)
class FaultyApi:
    """A running server and what it was asked."""

    plays: Mapping[str, tuple[Play, ...]]
    base_url: str = ""
    heard: Counter[str] = field(default_factory=Counter)
    """Question → its requests."""
    closed_at_once: set[str] = field(default_factory=set)
    """Sound questions whose first request came through a connection that the server then closed."""
    connections: set[asyncio.StreamWriter] = field(default_factory=set)
    listening: asyncio.Server = field(init=False)

    async def begin(self) -> None:
        self.listening = await asyncio.start_server(self.converse, "127.0.0.1", 0, backlog=1024)
        self.base_url = f"http://127.0.0.1:{self.listening.sockets[0].getsockname()[1]}/v1"

    def end(self) -> None:
        """Listen no longer, and drop all connections."""
        self.listening.close()
        for connection in self.connections:
            connection.transport.abort()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request after the other, and play what its question's fault says."""
        self.connections.add(writer)
        end: End = "waits"
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                question, fault = await asked(reader)
                before = self.heard[question]
                self.heard[question] += 1
                if end == "closes-at-the-next-question" and fault == SOUND and not before:
                    self.closed_at_once.add(question)
                    break
                plays = self.plays[fault]
                play = plays[min(before, len(plays) - 1)]
                await self.play(play, play.says(completion(question)), writer)
                end = play.end
        self.connections.discard(writer)
        writer.close()

    async def play(self, play: Play, said: bytes, writer: asyncio.StreamWriter) -> None:
        connection: socket.socket = writer.get_extra_info("socket")
        if play.end == "closes-with-the-last-byte":
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        size = play.piece or len(said) or 1
        for start in range(0, len(said), size):
            writer.write(said[start : start + size])
            await asyncio.sleep(play.pause_s)
            if writer.is_closing():
                return
        match play.end:
            case "closes" | "closes-with-the-last-byte":
                writer.close()
            case "resets":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()
            case "ends-all":
                self.end()
            case _:
                pass


async def asked(reader: asyncio.StreamReader) -> list[str]:
    """Return the name and the fault of the next question."""
    length = LENGTH.search(await reader.readuntil(b"\r\n\r\n"))
    body = await reader.readexactly(int(length[1]) if length else 0)
    return [word.decode() for word in QUESTION.findall(body)[-1]]


def completion(question: str) -> bytes:
    """Return a completion whose answer names the question."""
    return says(f"42 for {question}").body


@contextmanager
def faulty_api(plays: Mapping[str, tuple[Play, ...]]) -> Iterator[FaultyApi]:
    """Serve until the block ends.

    `plays` are the names of faults and what they do, request by request of one question; the last play repeats.
    """
    api = FaultyApi(plays)
    begun = SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def main() -> None:
        over = asyncio.Event()
        await api.begin()
        begun.put((asyncio.get_running_loop(), over))
        await over.wait()
        api.end()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    loop, over = begun.get(timeout=DEADLINE_S)
    try:
        yield api
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(DEADLINE_S)
