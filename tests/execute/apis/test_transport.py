"""HTTP for providers, against sockets that a test can look into."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.errors import CannotGoOn
from agentv_ci.execute.apis.through_httpx import probe_status
from agentv_ci.execute.apis.transport import Transport
from tests.servers.chat_api import chat_api, says
from tests.support import FakeClock

OK = b'{"ok": true}'


@dataclass(slots=True)
class Wire:
    """What a server got, byte for byte, connection by connection."""

    url: str = ""
    connections: list[list[bytes]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    """One per connection; it ends when the client closes."""

    @property
    def requests(self) -> list[bytes]:
        return [request for connection in self.connections for request in connection]


@asynccontextmanager
async def wire(
    *, context: ssl.SSLContext | None = None, delay_s: float = 0, keeps_alive: bool = True
) -> AsyncIterator[Wire]:
    """Serve `{"ok": true}` to every request."""
    seen = Wire()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests: list[bytes] = []
        seen.connections.append(requests)
        task = asyncio.current_task()
        assert task is not None
        seen.tasks.append(task)
        try:
            while (request := await read_request(reader)) is not None:
                requests.append(request)
                await asyncio.sleep(delay_s)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(OK) + OK)
                await writer.drain()
                if not keeps_alive:
                    break
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    scheme = "http" if context is None else "https"
    seen.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()
        for task in seen.tasks:
            task.cancel()
        await asyncio.gather(*seen.tasks, return_exceptions=True)
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> bytes | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + await reader.readexactly(int(lengths[0]) if lengths else 0)


@asynccontextmanager
async def transport(base_url: str, ca_bundle: str | None = None) -> AsyncIterator[Transport]:
    opened = Transport(base_url, ca_bundle=ca_bundle, environment=FakeClock().environment())
    try:
        yield opened
    finally:
        await opened.close()


async def post(to: Transport, headers: Mapping[str, str] | None = None) -> JsonObject:
    return await to.post("/ask", headers=headers or {}, body={"q": "é"})


def failure_at(base_url: str) -> ProviderError:
    """Post once to an address; return the error."""

    async def main() -> None:
        async with transport(base_url) as opened:
            await post(opened)

    with pytest.raises(ProviderError) as caught:
        asyncio.run(main())
    return caught.value


def refusal_at(base_url: str, ca_bundle: str | None = None) -> str:
    """Return why an address cannot be asked, be it said at once or at the first question."""

    async def main() -> None:
        async with transport(base_url, ca_bundle) as opened:
            await post(opened)

    with pytest.raises((ProviderError, CannotGoOn)) as caught:
        asyncio.run(main())
    return str(caught.value)


def header_lines(request: bytes, name: bytes) -> list[bytes]:
    return [line for line in request.split(b"\r\n\r\n")[0].split(b"\r\n") if line.lower().startswith(name + b":")]


def test_a_post_is_json() -> None:
    async def main() -> None:
        async with wire() as seen, transport(seen.url) as opened:
            reply = await post(opened)
        assert reply == {"ok": True}
        (request,) = seen.requests
        assert request.startswith(b"POST /ask HTTP/1.1\r\n")
        assert json.loads(request.split(b"\r\n\r\n", 1)[1]) == {"q": "é"}

    asyncio.run(main())


@pytest.mark.parametrize("name", ["content-type", "Content-Type", "CONTENT-TYPE"])
def test_a_header_of_the_target_replaces_the_usual_one_whatever_its_case(name: str) -> None:
    async def main() -> None:
        async with wire() as seen, transport(seen.url) as opened:
            await post(opened, {name: "application/vnd.api+json"})
        (line,) = header_lines(seen.requests[0], b"content-type")
        assert line.endswith(b"application/vnd.api+json")

    asyncio.run(main())


def test_a_header_given_in_two_spellings_is_sent_once_and_the_later_one_wins() -> None:
    async def main() -> None:
        async with wire() as seen, transport(seen.url) as opened:
            await post(opened, {"authorization": "Bearer ours", "Authorization": "Basic theirs"})
        assert header_lines(seen.requests[0], b"authorization")[0].endswith(b" Basic theirs")
        assert len(header_lines(seen.requests[0], b"authorization")) == 1

    asyncio.run(main())


def test_one_question_after_the_other_shares_a_connection() -> None:
    async def main() -> None:
        async with wire() as seen, transport(seen.url) as opened:
            for _ in range(5):
                await post(opened)
        assert [len(each) for each in seen.connections] == [5]

    asyncio.run(main())


def test_questions_at_once_have_a_connection_each_and_keep_it() -> None:
    async def main() -> None:
        async with wire(delay_s=0.05) as seen, transport(seen.url) as opened:
            for _ in range(2):
                await asyncio.gather(*(post(opened) for _ in range(8)))
        assert [len(each) for each in seen.connections] == [2] * 8

    asyncio.run(main())


def test_a_server_that_closes_after_every_answer_is_asked_anew() -> None:
    async def main() -> None:
        async with wire(keeps_alive=False) as seen, transport(seen.url) as opened:
            for _ in range(3):
                await post(opened)
                await asyncio.sleep(0.01)
        assert len(seen.requests) == 3

    asyncio.run(main())


def test_closing_leaves_no_connection_open() -> None:
    async def main() -> None:
        async with wire() as seen:
            async with transport(seen.url) as opened:
                await asyncio.gather(*(post(opened) for _ in range(4)))
            async with asyncio.timeout(10):
                await asyncio.gather(*seen.tasks)

    asyncio.run(main())


def test_a_connection_that_is_owed_an_answer_is_not_used_for_the_next_question() -> None:
    async def main() -> None:
        async with wire(delay_s=5) as seen, transport(seen.url) as opened:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(post(opened), 0.05)
            # What is still owed an answer must not be asked again: the next question would get the old one's answer.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(post(opened), 0.05)
            assert [len(each) for each in seen.connections] == [1, 1]

    asyncio.run(main())


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.usefixtures("no_proxies")
def test_a_proxy_is_not_asked_for_what_is_on_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def main() -> None:
        with chat_api(says("42")) as api:
            async with transport(api.base_url.replace("127.0.0.1", host)) as opened:
                await opened.post("/chat/completions", headers={}, body={})

    asyncio.run(main())


@pytest.mark.usefixtures("no_proxies")
def test_a_proxy_is_asked_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with wire() as seen:
            monkeypatch.setenv("HTTP_PROXY", seen.url)
            async with transport("http://models.example/v1") as opened:
                await post(opened)
        assert seen.requests[0].startswith(b"POST http://models.example/v1/ask HTTP/1.1\r\n")

    asyncio.run(main())


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1"])
@pytest.mark.usefixtures("no_proxies")
def test_a_proxy_that_cannot_be_used_is_an_error_and_not_a_crash(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    assert "proxy" in refusal_at("http://models.example/v1").lower()


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000/v1",
        "ftp://127.0.0.1/v1",
        "http:///v1",
        "http://127.0.0.1:99999/v1",
        "http://127.0.0.1:port/v1",
        "http://[::1/v1",
        "/v1",
    ],
)
def test_an_address_that_is_none_is_named_and_not_tried_again(address: str) -> None:
    error = failure_at(address)
    assert (error.kind, error.retryable, address in error.detail) == ("request", False, True)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "ca.pem", folder / "key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30"]
    command = [openssl, "req", "-x509", *curve, *names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def test_a_server_is_trusted_when_its_authority_is_in_the_ca_bundle(authority: tuple[Path, Path]) -> None:
    assert asyncio.run(over_tls(authority, ca_bundle=str(authority[0]))) == {"ok": True}


def test_a_server_is_trusted_when_its_authority_is_named_in_the_environment(
    authority: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority[0]))
    assert asyncio.run(over_tls(authority, ca_bundle=None)) == {"ok": True}


def test_a_server_that_nobody_vouches_for_is_not_trusted(
    authority: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with pytest.raises(ProviderError, match="CERTIFICATE_VERIFY_FAILED") as caught:
        asyncio.run(over_tls(authority, ca_bundle=None))
    assert caught.value.kind == "network"


async def over_tls(authority: tuple[Path, Path], ca_bundle: str | None) -> object:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the server's side of a refused handshake
    async with wire(context=context) as seen, transport(seen.url, ca_bundle) as opened:
        return await post(opened)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_bundle_that_cannot_be_used_is_named(content: str | None, tmp_path: Path) -> None:
    bundle = tmp_path / "authorities.pem"
    if content is not None:
        bundle.write_text(content, encoding="utf-8")
    assert str(bundle) in refusal_at("https://127.0.0.1:1/v1", str(bundle))


def test_authorities_that_the_environment_names_in_vain_are_an_error_and_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    assert "SSL_CERT_FILE" in refusal_at("https://127.0.0.1:1/v1")


def probe(url: str, timeout_s: float = 10) -> int:
    return asyncio.run(probe_status(url, timeout_s=timeout_s))


def test_a_probe_returns_the_status() -> None:
    with chat_api() as api:
        assert probe(f"{api.url}/health") == 200


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "no address", "http://[::1/"])
def test_a_probe_that_reaches_nothing_names_the_address(url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        probe(url)
    assert url in caught.value.detail


def test_a_probe_does_not_wait_for_ever() -> None:
    async def main() -> None:
        async with wire(delay_s=5) as seen:
            await asyncio.wait_for(failing(probe_status(seen.url, timeout_s=0.1)), 3)

    asyncio.run(main())


async def failing(work: Awaitable[object]) -> None:
    with pytest.raises(ProviderError):
        await work
