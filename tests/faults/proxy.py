"""A TCP proxy on loopback whose connections can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

PIECE_BYTES = 64 * 1024


@dataclass(slots=True)
class Proxy:
    """Passes connections on to a port, unless it is cut off."""

    to: int
    """The port that connections are passed on to."""
    is_cut: bool = False
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _open: set[socket.socket] = field(default_factory=set)

    @property
    def port(self) -> int:
        """The port that listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def cut(self) -> None:
        """Close all connections, and each new one."""
        self.is_cut = True
        for each in tuple(self._open):
            _close(each)

    def mend(self) -> None:
        """Pass on new connections again."""
        self.is_cut = False

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.to))
                except OSError:
                    near.close()
                    continue
                self._open |= {near, far}
                if self.is_cut:
                    self.cut()
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(PIECE_BYTES):
                other.sendall(data)
        for each in (one, other):
            _close(each)
            self._open.discard(each)

    def close(self) -> None:
        """Stop."""
        _close(self._listener)
        self.cut()


def _close(each: socket.socket) -> None:
    # Closing alone does not wake a thread that reads.
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def proxy(to: int) -> Iterator[Proxy]:
    """Start a proxy to a port of loopback."""
    running = Proxy(to)
    threading.Thread(target=running.serve, daemon=True).start()
    try:
        yield running
    finally:
        running.close()
