"""A real Git server over HTTP, `git http-backend`, that wants a token as GitHub does."""

from __future__ import annotations

import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(slots=True)
class GitServer:
    """Bare repositories in a folder, by their paths such as `acme/demo.git`."""

    folder: Path
    token: str
    may_write: bool = True
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve on a free port of the loopback interface; yields the address."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def status(self, target: str, authorization: str | None) -> int:
        """Return the status of a request."""
        scheme, _, given = (authorization or "").partition(" ")
        if (scheme.lower(), given) != ("basic", b64encode(f"x-access-token:{self.token}".encode()).decode()):
            return 401
        return 403 if "receive-pack" in target and not self.may_write else 200


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def respond(self) -> None:
            server.asked.append(f"{self.command} {self.path}")
            status = server.status(self.path, self.headers["Authorization"])
            if status != 200:
                self.send_response(status)
                self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
                self.end_headers()
                return
            url = urlsplit(self.path)
            env = {
                "GIT_PROJECT_ROOT": str(server.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": "ada",
                "PATH_INFO": url.path,
                "QUERY_STRING": url.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers["Content-Type"] or "",
                "HTTP_CONTENT_ENCODING": self.headers["Content-Encoding"] or "",
                "GIT_PROTOCOL": self.headers["Git-Protocol"] or "",
            }
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            done = subprocess.run(
                ["git", "http-backend"],
                input=body,
                env={"PATH": "/usr/bin:/bin", **env},
                capture_output=True,
                check=True,
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = respond  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
