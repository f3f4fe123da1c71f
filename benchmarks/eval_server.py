"""A server of OpenAI's chat completions that costs little: it gives canned answers after a fixed time, and counts.

It runs in a process of its own, which ends when the process that started it does.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATH = b"POST /v1/chat/completions "
LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
MODEL = re.compile(rb'"model": *"([^"]*)"')
STREAMED = re.compile(rb'"stream": *true')
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
USAGE = {"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50}

Message = dict[str, Any]
"""What a model says, as the API writes it."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was asked since the server was last prepared."""

    asked: dict[str, int]
    """Model → questions; what was no question to a known model stands under what it began with."""
    most_at_once: int
    """Most questions that waited for their answer at one time."""


class Server:
    """The server, as whoever started it sees it; a context manager."""

    def __init__(self) -> None:
        command = (sys.executable, str(Path(__file__).resolve()))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = f"http://127.0.0.1:{self._read()}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def prepare(self, latency_s: float, messages: Mapping[str, Message]) -> None:
        """Answer every question to a model with its message after this time, and count from 0."""
        self._order({"latency_s": latency_s, "messages": messages})

    def counts(self) -> Counts:
        """Return what was asked since then."""
        return Counts(**self._order(None))

    def _order(self, order: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return dict(self._read())

    def _read(self) -> Any:  # noqa: ANN401  # JSON
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@dataclass(slots=True)
class State:
    """What is answered, and what was asked."""

    latency_s: float = 0.0
    replies: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    """Model → the whole HTTP answer, at once and as a stream."""
    asked: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    most_at_once: int = 0


class Connection(asyncio.Protocol):
    """A connection that is kept alive; its client asks one question after the other."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a question once it is there as a whole."""
        self._received += data
        end = self._received.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        length = LENGTH.search(self._received, 0, end)
        end += int(length[1]) if length else 0
        if len(self._received) >= end:
            question, self._received = self._received[:end], self._received[end:]
            self._take(question)

    def _take(self, question: bytes) -> None:
        state = self._state
        model = MODEL.search(question) if question.startswith(PATH) else None
        name = model[1].decode() if model else ""
        if name not in state.replies:
            name = question[:80].decode("ascii", "replace")
        state.asked[name] += 1
        state.waiting += 1
        state.most_at_once = max(state.most_at_once, state.waiting)
        reply = state.replies.get(name, (NOT_FOUND, NOT_FOUND))[
            STREAMED.search(question) is not None
        ]
        if state.latency_s:
            asyncio.get_running_loop().call_later(state.latency_s, self._answer, reply)
        else:
            self._answer(reply)

    def _answer(self, reply: bytes) -> None:
        assert self._transport is not None
        self._state.waiting -= 1
        self._transport.write(reply)


class Orders(asyncio.Protocol):
    """The pipe from whoever started the server; each line is an order, and answered with a line."""

    def __init__(self, state: State, ended: asyncio.Event) -> None:
        self._state = state
        self._ended = ended
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Follow orders that are there as a whole."""
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._follow(json.loads(line))

    def _follow(self, order: dict[str, Any] | None) -> None:
        state = self._state
        if order is not None:
            state.latency_s = order["latency_s"]
            state.replies = {
                model: _replies(model, message) for model, message in order["messages"].items()
            }
            state.asked, state.waiting, state.most_at_once = Counter(), 0, 0
        print(json.dumps({"asked": state.asked, "most_at_once": state.most_at_once}), flush=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: nobody is there any more who would ask."""
        del exc
        self._ended.set()


def _replies(model: str, message: Message) -> tuple[bytes, bytes]:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    about = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": model}
    whole = {
        **about,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": USAGE,
    }
    parts = (
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": USAGE},
    )
    chunks = [json.dumps({**about, "object": "chat.completion.chunk", **part}) for part in parts]
    stream = "".join(f"data: {chunk}\n\n" for chunk in (*chunks, "[DONE]"))
    return _http("application/json", json.dumps(whole)), _http("text/event-stream", stream)


def _http(kind: str, text: str) -> bytes:
    body = text.encode("utf-8")
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


async def serve() -> None:
    """Print the port, then answer until standard input ends."""
    state, ended, loop = State(), asyncio.Event(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=1_024)
    await loop.connect_read_pipe(lambda: Orders(state, ended), sys.stdin)
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve())
