"""Connections: when they are kept, when a question needs a new one, and replies that are not HTTP."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.apis import http_client
from agentv_ci.execute.apis.http_client import HttpAnswer, HttpClient

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"content-length: 2\r\n\r\nhi"
LONG = 200 * 1024
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class RawServer:
    """Answers the n-th request with the n-th reply, the last one again and again; `b""` closes the connection."""

    def __init__(self, replies: Sequence[bytes], *, closes_from: int, later: bytes) -> None:
        self._replies = replies
        self._closes_from = closes_from
        self._later = later
        self.url = ""
        self.connections: list[int] = []
        """The port of the client for each request."""
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if length := LENGTH.search(head):
                    await reader.readexactly(int(length[1]))
                reply = self._replies[min(len(self.heads), len(self._replies) - 1)]
                self.heads.append(head)
                self.connections.append(writer.get_extra_info("peername")[1])
                writer.write(reply)
                if self._later:
                    await asyncio.sleep(0.02)
                    writer.write(self._later)
                if len(self.heads) >= self._closes_from or not reply:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def raw_server(*replies: bytes, closes_from: int = 1_000, later: bytes = b"") -> AsyncIterator[RawServer]:
    """Serve replies; from one on, the server closes after each, and `later` follows each in a packet of its own."""
    server = RawServer(replies, closes_from=closes_from, later=later)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server


async def asked(server: RawServer, times: int = 1, *, every_s: float = 0) -> list[HttpAnswer]:
    """Ask so often, one question after the other."""
    client = HttpClient(server.url, None)
    try:
        answers: list[HttpAnswer] = []
        for _ in range(times):
            answers.append(await client.post("/ask", headers={}, content=b"question"))
            await asyncio.sleep(every_s)
        return answers
    finally:
        await client.close()


def bodies(answers: list[HttpAnswer]) -> list[bytes]:
    return [answer.body for answer in answers]


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (HI, b"hi"),
        (b"HTTP/1.1 200 OK\nA: b\ncontent-length: 2\n\nhi", b"hi"),
        (OK + b"transfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", b"hi"),
        (OK + b"transfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: a\r\n\r\n" + HI, b"hi"),
        (b"HTTP/1.1 204 No\r\n\r\n", b""),
    ],
    ids=["length", "line feeds", "chunks", "chunks and a length", "interim", "none"],
)
async def test_a_reply_is_read_and_its_connection_kept(reply: bytes, body: bytes) -> None:
    async with raw_server(reply) as server:
        assert bodies(await asked(server, 3)) == [body] * 3
    assert len(set(server.connections)) == 1


@pytest.mark.parametrize(
    "reply",
    [
        OK + b"content-length: 2\r\nconnection: close\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        OK + b"\r\nhi",
    ],
    ids=["close", "HTTP/1.0", "neither length nor chunks"],
)
async def test_a_connection_that_the_server_does_not_keep_is_not_used_again(reply: bytes) -> None:
    async with raw_server(reply, closes_from=1) as server:
        assert bodies(await asked(server, 3)) == [b"hi"] * 3
    assert len(set(server.connections)) == 3


@pytest.mark.parametrize("every_s", [0, 0.001, 0.05])
async def test_a_connection_that_the_server_closed_costs_no_question_a_try(every_s: float) -> None:
    async with raw_server(HI, closes_from=1) as server:
        assert bodies(await asked(server, 20, every_s=every_s)) == [b"hi"] * 20


@pytest.mark.parametrize("reply", [b"", OK, OK + b"content-length: 9\r\n\r\nhi"], ids=["nothing", "head", "half"])
async def test_a_question_that_was_sent_is_not_sent_again_before_it_is_counted(reply: bytes) -> None:
    async with raw_server(HI, reply, HI, closes_from=2) as server:
        with pytest.raises(ProviderError, match="RemoteProtocolError at http") as caught:
            await asked(server, 2)
    assert (caught.value.kind, caught.value.retryable) == ("network", True)
    assert len(server.heads) == 2
    assert len(set(server.connections)) == 1


async def test_a_connection_with_half_an_answer_is_not_used_again() -> None:
    async with raw_server(OK + b"content-length: 9\r\n\r\nhi", HI) as server:
        client = HttpClient(server.url, None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.post("/ask", headers={}, content=b""), 0.3)
        assert (await client.post("/ask", headers={}, content=b"")).body == b"hi"
        await client.close()
    assert len(set(server.connections)) == 2


def living_responses() -> int:
    return sum(isinstance(living, httpx.Response) for living in gc.get_objects())


async def test_a_reply_is_freed_without_the_garbage_collector() -> None:
    async with raw_server(HI) as server:
        gc.collect()
        gc.disable()
        try:
            before = living_responses()
            await asked(server, 3)
            assert living_responses() == before
        finally:
            gc.enable()


MORE = [b"\r\n", b"\n", b"\0", OK + b"content-length: 5\r\n\r\nfalse", OK + b"content-length: 0\r\n\r\n"]


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("later", [True, False])
async def test_bytes_after_a_reply_are_not_part_of_the_next(more: bytes, later: bool) -> None:
    async with raw_server(HI if later else HI + more, later=more if later else b"") as server:
        assert bodies(await asked(server, 3, every_s=0.05 if later else 0)) == [b"hi"] * 3
    assert len(set(server.connections)) == 3


async def test_a_server_that_goes_on_sending_has_to_wait_until_it_is_read() -> None:
    flood = b"x" * 8 * 1024 * 1024
    async with raw_server(HI, later=flood) as server:
        assert bodies(await asked(server, 2, every_s=0.1)) == [b"hi"] * 2
    async with raw_server(OK + b"content-length: %d\r\n\r\n" % len(flood) + flood) as server:
        assert bodies(await asked(server)) == [flood]


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0\0\0",
        b"HTTP/1.1 099 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"content-length: -1\r\n\r\n",
        OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        OK + b"a: " + b"b" * LONG,
        OK + b"a: b\r\n" * LONG,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000,
        OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * LONG,
        OK + b"transfer-encoding: chunked\r\n\r\n1;" + b"x" * LONG,
        OK,
        OK + b"a: b\r\n",
        OK + b"content-length: 3\r\n\r\nhi",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
    ],
    ids=lambda reply: repr(reply[:60]),
)
async def test_a_reply_that_is_invalid_or_incomplete_is_an_error(reply: bytes) -> None:
    async with raw_server(reply, closes_from=1) as server:
        with pytest.raises(ProviderError, match="RemoteProtocolError at http") as caught:
            await asked(server)
    assert (caught.value.kind, caught.value.retryable) == ("network", True)


@pytest.mark.parametrize("frame", [b"content-length: 11\r\n\r\n", b"\r\n", b"transfer-encoding: chunked\r\n\r\nb\r\n"])
async def test_a_body_has_a_limit(frame: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 10)
    async with raw_server(OK + frame + b"x" * 11) as server:
        with pytest.raises(ProviderError, match="the answer is larger than"):
            await asked(server)


async def test_trailers_are_not_headers_and_cookies_not_sent() -> None:
    cookie = b"set-cookie: a=b\r\n"
    chunked = OK + cookie + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nretry-after: 5\r\n\r\n"
    async with raw_server(chunked) as server:
        answers = await asked(server, 2)
    assert [*answers[0].headers] == ["set-cookie", "transfer-encoding"]
    assert not any(b"cookie" in head.lower() for head in server.heads)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://a.example", "a.example", 80),
        ("https://a.example", "a.example", 443),
        ("https://A.example:8443/v1", "a.example", 8443),
        ("http://[2001:db8::1]:81", "2001:db8::1", 81),
        ("http://bücher.example", "xn--bcher-kva.example", 80),
        ("http://user:canary@a.example:82", "a.example", 82),
    ],
)
async def test_a_connection_goes_to_the_host_of_the_address(
    url: str, host: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []

    async def refuse(_: object, __: object, host: str, port: int, **___: object) -> None:
        seen.append((host, port))
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", refuse)
    with pytest.raises(ProviderError, match="ConnectError at http") as caught:
        await HttpClient(url, None).post("/ask", headers={}, content=b"")
    assert seen == [(host, port)]
    assert "canary" not in caught.value.detail


async def test_a_login_in_the_address_is_sent() -> None:
    async with raw_server(HI) as server:
        server.url = server.url.replace("//", "//user:key@")
        await asked(server)
    assert b"authorization: basic dxnlcjprzxk=" in server.heads[0].lower()


async def test_connecting_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object, **__: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", hang)
    monkeypatch.setattr(http_client, "CONNECT_TIMEOUT_S", 0.05)
    with pytest.raises(ProviderError, match="ConnectTimeout at http"):
        await HttpClient("http://a.example", None).post("/ask", headers={}, content=b"")
