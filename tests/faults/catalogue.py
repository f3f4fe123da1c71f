"""What can be wrong with a connection, and the rows that result; the tests of APIs have the errors of servers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from agentv_ci.contracts.base import ErrorKind
from tests.faults.server import SOUND, End, Play

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


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole response; header names are written with `_` for `-`."""
    named = {"content_type": "application/json", "content_length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def raw(data: bytes = b"", end: End = "waits", **drip: float) -> Play:
    """The same bytes to every question."""
    return Play(lambda _: data, end, int(drip.get("piece", 0)), drip.get("pause_s", 0))


def part(share: float, end: End) -> Play:
    """The first part of a sound response."""
    return Play(lambda body: http(body)[: int(len(http(body)) * share)], end)


def fails(status: int) -> Play:
    return raw(http(b'{"error": {"message": "mock failure"}}', f"{status} Mock"))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunks(body: bytes) -> bytes:
    """A response in chunks."""
    pieces = [body[start : start + 20] for start in range(0, len(body), 20)]
    return CHUNKED + b"".join(map(chunk, [*pieces, b""]))


def gzipped(body: bytes, packings: str = "gzip") -> bytes:
    return http(gzip.compress(body), content_encoding=packings)


def bomb_in_a_bomb() -> bytes:
    """Compress 1 GiB of spaces twice: the inner stream repeats one block, which compresses well again."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    begun = packing.compress(MEBIBYTE) + packing.flush(zlib.Z_FULL_FLUSH)
    block = packing.compress(MEBIBYTE) + packing.flush(zlib.Z_FULL_FLUSH)
    return gzipped(begun + block * 1023, "gzip, gzip")


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
WITHOUT_LENGTH = b"HTTP/1.1 200 OK\r\n\r\n"
HINT = b"HTTP/1.1 103 Early Hints\r\n\r\n"
GARBAGE = bytes(range(256)) * 4

BROKEN: Mapping[str, Play] = {
    "closed": raw(end="closes"),
    "closed-in-headers": part(0.1, "closes"),
    "closed-in-body": part(0.8, "closes"),
    "reset": raw(end="resets"),
    "reset-in-headers": part(0.1, "resets"),
    "reset-in-body": part(0.8, "resets"),
    "garbage": raw(GARBAGE, end="closes"),
    "wrong-encoding": Play(partial(http, content_encoding="gzip")),
    "chunks-cut": Play(lambda body: CHUNKED + chunk(body[:20]) + b"fff\r\nx", "closes"),
}
"""Broken connections, and answers that are not HTTP or cannot be decompressed: they are retried."""

MALFORMED: Mapping[str, Play] = {
    "closed-without-length": raw(WITHOUT_LENGTH + b'{"choices": [', "closes"),
    "half-gzip": Play(lambda body: http(gzip.compress(body)[:-30], content_encoding="gzip")),
}

TIMEOUTS: Mapping[str, Play] = {
    "silence": raw(),
    "silence-in-headers": part(0.1, "waits"),
    "silence-in-body": part(0.8, "waits"),
    "endless-drip": raw(http(b"", content_length="1000000") + b" " * 5_000, piece=1, pause_s=0.01),
    "endless-hints": raw(HINT * 1_000, piece=len(HINT), pause_s=0.01),
}

FINE: Mapping[str, Play] = {
    SOUND: Play(http),
    "drip": Play(http, piece=12, pause_s=0.003),
    "chunks": Play(chunks),
    "drip-of-chunks": Play(chunks, piece=25, pause_s=0.003),
    "hint": Play(lambda body: HINT + http(body)),
    "gzip": Play(gzipped),
    "connection-close": Play(partial(http, connection="close"), "closes"),
    "closed-after-the-answer": Play(http, "closes-with-the-last-byte"),
    "stale": Play(http, "closes-at-the-next-question"),
    "without-length": Play(lambda body: WITHOUT_LENGTH + body, "closes"),
    "long": Play(lambda body: http(body + b" " * 300_000)),
    "answered-twice": Play(lambda body: http(body) * 2),
}

RECOVERING: Mapping[str, tuple[Play, ...]] = {
    "one-of-each": (fails(503), raw(end="resets"), fails(429), Play(http)),
    **{f"{name}-once": (play, Play(http)) for name, play in BROKEN.items()},
}
"""Failures before the answer."""

CATALOGUE: Mapping[str, Fault] = {
    **{name: Fault((play,)) for name, play in FINE.items()},
    **{name: Fault(plays, requests=len(plays)) for name, plays in RECOVERING.items()},
    **{name: Fault((play,), "network", RETRIES + 1) for name, play in BROKEN.items()},
    **{name: Fault((play,), "malformed") for name, play in MALFORMED.items()},
    **{
        name: Fault((play,), "timeout", ATTEMPTS, ATTEMPTS, share=2, timeout_s=SHORT_S)
        for name, play in TIMEOUTS.items()
    },
    "too-long": Fault((raw(http(MEBIBYTE * 40)),), "malformed", share=1),
    "bomb": Fault((raw(gzipped(MEBIBYTE * 40)),), "malformed", share=1),
}
"""Fault → what it does, and the row that results."""

PLAYS: Mapping[str, tuple[Play, ...]] = {
    **{name: fault.plays for name, fault in CATALOGUE.items()},
    "the-server-ends": (raw(end="ends-all"),),
    "bomb-in-a-bomb": (Play(lambda _: bomb_in_a_bomb()),),
}
"""What the server does: the catalogue, and faults that affect other questions too."""
