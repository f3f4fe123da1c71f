"""Replies of HTTP/1.1 are the same however their bytes are cut, and invalid ones are refused."""

from __future__ import annotations

import gc
import weakref

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.apis.connection import MOST_QUIET_BYTES, Reply

OK = b"HTTP/1.1 200 OK\r\n"
MANY = 10_000_000


def read(*pieces: bytes, most_bytes: int = MANY) -> Reply:
    reply = Reply("http://models.example", most_bytes)
    for piece in pieces:
        reply.feed(piece)
    return reply


def parts_of(reply: Reply) -> tuple[int, dict[str, str], bytes, bool]:
    return reply.status, reply.headers, reply.take_body(), reply.is_complete


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """Bytes of valid replies, with or without a length."""
    status = draw(st.sampled_from([200, 201, 204, 302, 304, 400, 404, 429, 500, 529]))
    names = draw(st.lists(st.sampled_from([b"Retry-After", b"x-a", b"Content-Type", b"DATE"]), unique=True, max_size=4))
    lines = [b"%s:%s%s" % (name, draw(st.sampled_from([b"", b" ", b"\t "])), b"v%d" % len(name)) for name in names]
    body = draw(st.binary(max_size=300)) if status not in (204, 304) else b""
    frame = draw(st.sampled_from(["length", "chunked", "chunked and a length", "end"]))
    if status in (204, 304):
        content = b""
    elif frame == "length":
        lines.append(b"Content-Length: %d" % len(body))
        content = body
    elif frame.startswith("chunked"):
        lines.append(b"Transfer-Encoding: chunked")
        if frame != "chunked":
            lines.append(b"Content-Length: %d" % len(body))
        cut = draw(st.integers(0, len(body)))
        parts = [part for part in (body[:cut], body[cut:]) if part]
        content = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    else:
        content = body
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\n"]))
    version = draw(st.sampled_from([b"1.1", b"1.0"])) if not frame.startswith("chunked") else b"1.1"
    head = b"HTTP/%s %d Some words\r\n" % (version, status)
    return interim + head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + content


def as_h11_reads(data: bytes) -> tuple[int, dict[str, str], bytes, bool]:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    connection.receive_data(b"")
    status, headers, body = 0, {}, b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
    return status, headers, body, True


@settings(max_examples=60)
@given(answers(), st.data())
def test_a_reply_is_read_as_h11_reads_it_however_it_is_cut(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    reply = read(*(data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)))
    reply.end()
    assert parts_of(reply) == as_h11_reads(data)


def test_lines_may_end_with_a_line_feed_alone() -> None:
    assert parts_of(read(b"HTTP/1.1 200 OK\nA: b\ncontent-length: 2\n\nhi"))[2:] == (b"hi", True)


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (OK + b"content-length: 0\r\n\r\n", True),
        (OK + b"content-length: 0\r\nconnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 204 No\r\n\r\n", True),
    ],
)
def test_a_connection_is_kept_if_the_server_keeps_it(head: bytes, keeps: bool) -> None:
    reply = read(head)
    assert (reply.is_complete, reply.keeps_connection) == (True, keeps)


@pytest.mark.parametrize("more", [b"x", OK, OK + b"content-length: 1\r\n\r\n!", b"\0" * 100_000])
@pytest.mark.parametrize("together", [True, False])
def test_bytes_after_a_reply_end_the_connection_and_are_not_part_of_it(more: bytes, together: bool) -> None:
    answer = OK + b"content-length: 2\r\n\r\nhi"
    reply = read(answer + more) if together else read(answer, more)
    assert parts_of(reply) == (200, {"content-length": "2"}, b"hi", True)
    assert not reply.keeps_connection


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0\0\0",
        b"HTTP/1.1 099 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"content-length: -1\r\n\r\n",
        OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        OK + b"a: " + b"b" * MOST_QUIET_BYTES,
        OK + b"a: b\r\n" * MOST_QUIET_BYTES,
        b"HTTP/1.1 100 Continue\r\n\r\n" * MOST_QUIET_BYTES,
        OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * MOST_QUIET_BYTES,
        OK + b"transfer-encoding: chunked\r\n\r\n1;" + b"x" * 2 * MOST_QUIET_BYTES,
    ],
)
def test_an_invalid_reply_is_refused(data: bytes) -> None:
    with pytest.raises(ProviderError, match="RemoteProtocolError"):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        OK,
        OK + b"a: b\r\n",
        OK + b"content-length: 3\r\n\r\nhi",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
    ],
)
def test_an_incomplete_reply_is_refused_at_its_end(data: bytes) -> None:
    reply = read(data)
    assert not reply.is_complete
    with pytest.raises(ProviderError, match="RemoteProtocolError"):
        reply.end()


@pytest.mark.parametrize("frame", [b"content-length: 11\r\n\r\n", b"\r\n", b"transfer-encoding: chunked\r\n\r\nb\r\n"])
def test_a_body_has_a_limit(frame: bytes) -> None:
    assert read(OK + frame + b"x" * 10, most_bytes=10).take_body() == b"x" * 10
    with pytest.raises(ProviderError, match="the answer is larger than"):
        read(OK + frame + b"x" * 11, most_bytes=10)


def test_a_reply_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        reply = read(OK + b"content-length: 2\r\n\r\nhi")
        gone = weakref.ref(reply)
        del reply
        assert gone() is None
    finally:
        gc.enable()


def test_trailers_are_not_headers() -> None:
    reply = read(OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nretry-after: 5\r\n\r\n")
    assert parts_of(reply) == (200, {"transfer-encoding": "chunked"}, b"hi", True)
