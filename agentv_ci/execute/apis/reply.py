"""One HTTP/1.1 answer, read as its bytes come; the door to httptools, which is the parser of Node.js."""

from __future__ import annotations

import httptools

from agentv_ci.execute.apis.wire import MAX_BODY_BYTES, require_bounds

MOST_QUIET_BYTES = 100 * 1024
"""Headers, trailers and frames in a row; more than any server has to say before its answer."""
PIECE_BYTES = 64 * 1024


class RemoteProtocolError(Exception):
    """What came is no HTTP, or not all of it."""


class Reply:
    """An answer on its way."""

    def __init__(self, most_bytes: int = MAX_BODY_BYTES) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        """Names are lower case; of those given twice, the last one."""
        self.is_complete = False
        self.keeps_connection = False
        """Whether the server answers another question on this connection."""
        self._most_bytes = most_bytes
        self._body: list[bytes] = []
        self._size = 0
        self._quiet_bytes = 0
        self._has_headers = False
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # Servers of ten lines end theirs as their system does, and gateways name the length of what they cut in chunks.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True, lenient_chunked_length=True
        )

    def take_body(self) -> bytes:
        """Return what has come of the body, and let go of it."""
        body, self._body = b"".join(self._body), []
        return body

    def close(self) -> None:
        """Read no more. Reply and parser refer to each other: without this only the garbage collector frees them."""
        self._parser = None

    def feed(self, data: bytes) -> None:
        """Take in bytes; raises RemoteProtocolError, and ProviderError for a body of more than `most_bytes`."""
        for start in range(0, len(data), PIECE_BYTES):
            self._feed(data[start : start + PIECE_BYTES])

    def _feed(self, piece: bytes) -> None:
        if self.is_complete or self._parser is None:
            self.keeps_connection = False
            return
        self._quiet_bytes += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as error:
            raise RemoteProtocolError("The server wants to speak another protocol.") from error
        except httptools.HttpParserError as error:
            self.keeps_connection = False
            # What follows an answer is wrong only for those who would read on.
            if not self.is_complete:
                raise RemoteProtocolError(str(error)) from error
        if self._quiet_bytes > MOST_QUIET_BYTES:
            raise RemoteProtocolError(f"more than {MOST_QUIET_BYTES // 1024} KiB of headers")
        require_bounds(self._size, self._most_bytes)
        if self.is_complete:
            self.close()

    def end(self) -> None:
        """There is no more; raises RemoteProtocolError unless that is how the answer ends."""
        self.keeps_connection = False
        if self.is_complete:
            return
        if not self._has_headers:
            raise RemoteProtocolError("Server disconnected without sending a response.")
        if "content-length" in self.headers or "transfer-encoding" in self.headers:
            raise RemoteProtocolError("Server disconnected in the middle of its response.")
        # RFC 9112, section 6.3: without either, an answer ends with its connection.
        self.is_complete = True

    def on_message_begin(self) -> None:
        """See httptools: another answer, or the one that follows an interim one."""
        if self.is_complete:
            self.keeps_connection = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools; trailers come this way too."""
        if not self._has_headers:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        """See httptools."""
        if self.is_complete or self._parser is None:
            return
        self.status = self._parser.get_status_code()
        if self.status < 100:
            raise RemoteProtocolError(f"{self.status} is no status")
        if self.status < 200:
            self.headers.clear()
            return
        self._has_headers = True
        self._quiet_bytes = 0
        self.keeps_connection = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        if not self.is_complete:
            self._body.append(body)
            self._size += len(body)
            self._quiet_bytes = 0

    def on_message_complete(self) -> None:
        """See httptools."""
        if self._has_headers:
            self.is_complete = True
