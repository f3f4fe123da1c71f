"""Decompression of answers, up to a limit: a small answer can have gigabytes."""

from __future__ import annotations

import zlib

ACCEPTED_ENCODINGS = "gzip, deflate"
ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})


def decompressed(body: bytes, encodings: str, limit: int) -> bytes:
    """Return a body without the encodings of its header, at most `limit` bytes of it.

    Raises ValueError if damaged.

    Encodings that were not requested are ignored.
    """
    for name in reversed(encodings.lower().split(",")):
        if (encoding := name.strip()) not in ENCODINGS:
            continue
        try:
            body = _decompressed_once(body, encoding, limit)
        except zlib.error as error:
            raise ValueError(str(error)) from error
    return body


def _decompressed_once(data: bytes, encoding: str, limit: int) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, limit)
    except zlib.error:
        if encoding != "deflate":
            raise
        # Some servers omit the zlib header (RFC 1950).
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, limit)
