"""What can be wrong with an API, and the rows that result."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat

from agentv_ci.contracts.base import ErrorKind
from tests.faults.server import SOUND, End, Play, completion

RETRIES = 3
"""`max_retries` of the target."""
ATTEMPTS = 2
"""Attempts of a case that times out."""
SHORT_S = 0.25
"""The time of a case whose answer never comes."""

MEBIBYTE = b" " * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does with a question, request by request, and the row that results."""

    plays: tuple[Play, ...]
    """The last one repeats."""
    error_kind: ErrorKind | None = None
    """None: the case passes."""
    requests: int = 1
    attempts: int = 1
    share: int = 10
    """How often it occurs among many cases."""
    timeout_s: float | None = None


def reply(
    body: bytes | Callable[[str], bytes] = completion, status: str = "200 OK", end: End = "waits", **headers: str
) -> Play:
    """A whole HTTP response; header names are written with `_` for `-`."""

    def says(question: str) -> Iterator[bytes]:
        content = body if isinstance(body, bytes) else body(question)
        yield _head(status, {"content_length": str(len(content)), **headers}) + content

    return Play(says, end)


def _head(status: str, headers: Mapping[str, str]) -> bytes:
    lines = (f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{''.join(lines)}\r\n".encode()


def raw(data: bytes = b"", end: End = "waits") -> Play:
    """Bytes as they are."""
    return Play(lambda _question: (data,), end)


def part(share: float, end: End) -> Play:
    """The first part of a sound response."""

    def says(question: str) -> Iterator[bytes]:
        (whole,) = reply().says(question)
        yield whole[: int(len(whole) * share)]

    return Play(says, end)


def fails(status: int, message: str = "mock failure", kind: str = "mock_error", **headers: str) -> Play:
    """An error with OpenAI's body."""
    body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}})
    return reply(body.encode(), f"{status} Mock", "waits", **headers)


def chunked(pieces: Callable[[str], Iterable[bytes]], end: End = "waits", pause_s: float = 0.0) -> Play:
    """A response in chunks; the pieces are those of the body, with their sizes."""

    def says(question: str) -> Iterator[bytes]:
        yield _head("200 OK", {"transfer_encoding": "chunked"})
        yield from pieces(question)

    return Play(says, end, pause_s)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _chunks(question: str) -> Iterator[bytes]:
    body = completion(question)
    for start in range(0, len(body), 20):
        yield _chunk(body[start : start + 20])
    yield _chunk(b"")


def _drips(question: str) -> Iterator[bytes]:
    (whole,) = reply().says(question)
    for start in range(0, len(whole), 12):
        yield whole[start : start + 12]


def _endless_drip(_question: str) -> Iterator[bytes]:
    yield _head("200 OK", {"content_length": "1000000"})
    yield from repeat(b" ")


def _long(question: str) -> bytes:
    """A sound answer that takes many reads."""
    return completion(question) + b" " * 300_000


def _twice(question: str) -> Iterator[bytes]:
    (whole,) = reply().says(question)
    yield whole * 2


def _too_long(_question: str) -> Iterator[bytes]:
    yield _head("200 OK", {"content_length": str(40 * len(MEBIBYTE))})
    yield from repeat(MEBIBYTE, 40)


def _bomb() -> bytes:
    return gzip.compress(MEBIBYTE * 40)


def _bomb_in_a_bomb() -> bytes:
    """Compress 1 GiB of spaces twice: the inner stream repeats one block, which compresses well again."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    begun = packing.compress(MEBIBYTE) + packing.flush(zlib.Z_FULL_FLUSH)
    block = packing.compress(MEBIBYTE) + packing.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(begun + block * 1023)


TWO_LENGTHS = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"
LONG_HEADER = b"HTTP/1.1 200 OK\r\nx-long: " + b"x" * 200_000 + b"\r\ncontent-length: 2\r\n\r\n{}"
GARBAGE = bytes(range(256)) * 4
LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"

BROKEN: Mapping[str, Play] = {
    "closed": raw(end="closes"),
    "closed-in-headers": part(0.1, "closes"),
    "closed-in-body": part(0.8, "closes"),
    "reset": raw(end="resets"),
    "reset-in-headers": part(0.1, "resets"),
    "reset-in-body": part(0.8, "resets"),
    "garbage": raw(GARBAGE, end="closes"),
    "two-lengths": raw(TWO_LENGTHS),
    "long-header": raw(LONG_HEADER),
    "chunk-without-size": chunked(lambda _: (_chunk(b'{"choices": '), b"no size\r\n")),
    "switches-protocols": raw(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n"),
    "wrong-encoding": reply(content_encoding="gzip"),
    "chunks-cut": chunked(lambda question: (*list(_chunks(question))[:3], b"fff\r\nx"), "closes"),
}
"""Broken connections, and answers that are not HTTP or cannot be decompressed: they are retried."""

MALFORMED: Mapping[str, Play] = {
    "empty-body": reply(b""),
    "no-content": reply(b"", "204 No Content"),
    "closed-without-length": raw(b'HTTP/1.1 200 OK\r\n\r\n{"choices": [', "closes"),
    "half-gzip": reply(lambda question: gzip.compress(completion(question))[:-30], content_encoding="gzip"),
}

TIMEOUTS: Mapping[str, Play] = {
    "silence": raw(),
    "silence-in-headers": part(0.1, "waits"),
    "silence-in-body": part(0.8, "waits"),
    "endless-drip": Play(_endless_drip, pause_s=0.01),
    "endless-hints": Play(lambda _: repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n"), pause_s=0.01),
}

FINE: Mapping[str, Play] = {
    SOUND: reply(),
    "drip": Play(_drips, pause_s=0.003),
    "chunks": chunked(_chunks),
    "drip-of-chunks": chunked(_chunks, pause_s=0.003),
    "hint": Play(lambda question: (b"HTTP/1.1 103 Early Hints\r\n\r\n", *reply().says(question))),
    "gzip": reply(lambda question: gzip.compress(completion(question)), content_encoding="gzip"),
    "connection-close": reply(end="closes", connection="close"),
    "closed-after-the-answer": reply(end="closes-with-the-last-byte"),
    "stale": reply(end="closes-at-the-next-question"),
    "without-length": Play(lambda question: (b"HTTP/1.1 200 OK\r\n\r\n", completion(question)), "closes"),
    "long": reply(_long),
}

RECOVERING: Mapping[str, tuple[Play, ...]] = {
    "retry-after-0": (fails(429, retry_after="0"), reply()),
    "retry-after-2-ms": (fails(429, retry_after="9", retry_after_ms="2"), reply()),
    "retry-after-long-ago": (fails(503, retry_after=LONG_AGO), reply()),
    "one-of-each": (fails(503), raw(end="resets"), fails(429), reply()),
}
"""Failures before the answer."""


def _catalogue() -> Iterator[tuple[str, Fault]]:
    for name, play in FINE.items():
        yield name, Fault((play,))
    for name, plays in RECOVERING.items():
        yield name, Fault(plays, requests=len(plays))
    for name, play in BROKEN.items():
        yield name, Fault((play,), "network", RETRIES + 1)
        yield f"{name}-once", Fault((play, reply()), requests=2)
    yield "503", Fault((fails(503),), "server", RETRIES + 1)
    yield "302", Fault((fails(302, location="http://127.0.0.1:1/"),), "request")
    for name, play in MALFORMED.items():
        yield name, Fault((play,), "malformed")
    for name, play in TIMEOUTS.items():
        yield name, Fault((play,), "timeout", ATTEMPTS, ATTEMPTS, share=2, timeout_s=SHORT_S)
    yield "too-long", Fault((Play(_too_long),), "malformed", share=1)
    yield "bomb", Fault((reply(lambda _: _bomb(), content_encoding="gzip"),), "malformed", share=1)
    yield "asks-to-wait-an-hour", Fault((fails(429, retry_after="3600"),), "rate_limit")
    yield "quota", Fault((fails(429, kind="insufficient_quota"),), "rate_limit")
    yield "answered-twice", Fault((Play(_twice),))
    inner = reply(b'{"error": {"message": "no", "code": 429}}')
    yield "error-with-status-200", Fault((inner,), "rate_limit", RETRIES + 1)


CATALOGUE: Mapping[str, Fault] = dict(_catalogue())
"""Fault → what it does, and the row that results."""

PLAYS: Mapping[str, tuple[Play, ...]] = {
    **{name: fault.plays for name, fault in CATALOGUE.items()},
    "the-server-ends": (raw(end="ends-all"),),
    "bomb-in-a-bomb": (reply(lambda _: _bomb_in_a_bomb(), content_encoding="gzip, gzip"),),
}
"""What the server does: the catalogue, and faults that affect other questions too."""
