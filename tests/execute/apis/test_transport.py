"""HTTP for providers: what goes over the wire, connections, proxies, TLS, and replies that cannot be used."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.errors import CannotGoOn
from agentv_ci.execute.apis import http_client
from agentv_ci.execute.apis.http_client import probe_status, trusted_certificates
from agentv_ci.execute.apis.transport import Transport
from tests.servers.chat_api import chat_api, fails, says
from tests.servers.http import Asked, Reply, answers, serve
from tests.support import FakeClock
from tests.support.certificates import self_signed


@contextmanager
def serving(delay_s: float = 0, context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[Asked]]]:
    """Answer `{"ok": true}` to every request; yield the address and the requests."""
    requests: list[Asked] = []

    def reply(asked: Asked) -> Reply:
        requests.append(asked)
        time.sleep(delay_s)
        return answers(200, {"ok": True})

    with serve(reply, context) as url:
        yield url, requests


@asynccontextmanager
async def transport(base_url: str, ca_bundle: str | None = None) -> AsyncIterator[Transport]:
    opened = Transport(base_url, ca_bundle=ca_bundle, environment=FakeClock().environment())
    try:
        yield opened
    finally:
        await opened.close()


async def post(to: Transport, headers: Mapping[str, str] | None = None) -> JsonObject:
    return await to.post("/ask", headers=headers or {}, body={"q": "é"})


def reply_of(base_url: str, ca_bundle: str | None = None, headers: Mapping[str, str] | None = None) -> JsonObject:
    """Post once."""

    async def main() -> JsonObject:
        async with transport(base_url, ca_bundle) as opened:
            return await post(opened, headers)

    return asyncio.run(main())


def failure_of(base_url: str, headers: Mapping[str, str] | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        reply_of(base_url, headers=headers)
    return caught.value


@pytest.mark.parametrize(
    ("headers", "name", "value"),
    [
        ({}, "content-type", "application/json"),
        ({"CONTENT-TYPE": "application/vnd.api+json"}, "content-type", "application/vnd.api+json"),
        ({"authorization": "Bearer ours", "Authorization": "Basic theirs"}, "authorization", "Basic theirs"),
    ],
)
async def test_a_post_is_json_with_the_last_of_repeated_headers(headers: dict[str, str], name: str, value: str) -> None:
    with serving() as (url, requests):
        async with transport(f"{url}/v1/") as opened:
            assert await post(opened, headers) == {"ok": True}
    (asked,) = requests
    assert (asked.method, asked.path, asked.body, asked.headers[name]) == ("POST", "/v1/ask", {"q": "é"}, value)
    own = {"host", "accept", "accept-encoding", "user-agent", "content-length", "content-type"}
    assert asked.headers.keys() == {*own, name}


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


async def test_questions_at_once_have_a_connection_each_which_later_ones_reuse_until_it_is_closed() -> None:
    with serving(delay_s=0.02) as (url, requests):
        before = open_files()
        async with transport(url) as opened:
            for _ in range(2):
                await asyncio.gather(*(post(opened) for _ in range(8)))
            await post(opened)
        assert sorted(Counter(each.connection for each in requests).values()) == [2] * 7 + [3]
        while open_files() > before:  # noqa: ASYNC110  # the server closes its ends in threads
            await asyncio.sleep(0.01)


async def test_a_connection_that_is_owed_an_answer_is_not_reused() -> None:
    with serving(delay_s=5) as (url, requests):
        async with transport(url) as opened:
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(post(opened), 0.05)
    assert len({each.connection for each in requests}) == len(requests) == 2


PLAIN = says("42")
ANSWER = json.loads(PLAIN.body)


@pytest.mark.parametrize(
    ("body", "headers", "reply"),
    [
        (gzip.compress(PLAIN.body), {"content-encoding": "gzip"}, ANSWER),
        (gzip.compress(gzip.compress(PLAIN.body)), {"content-encoding": "gzip, GZIP"}, ANSWER),
        (PLAIN.body, {"content-encoding": "br"}, ANSWER),
        (b"\xef\xbb\xbf" + PLAIN.body, {}, ANSWER),
        ('{"a": "né"}'.encode(), {"content-type": "application/json; charset=iso-8859-1"}, {"a": "né"}),
        (b'{"a": 1, "a": 2, "n": NaN}', {}, {"a": 2, "n": None}),
        (b'{"a": "\\ud83d"}', {}, {"a": "\ufffd"}),
        (b'{"n": ' + b"9" * 4_300 + b"}", {}, None),
    ],
    ids=["gzip", "gzip twice", "unknown encoding", "BOM", "charset", "odd JSON", "half an emoji", "long number"],
)
def test_a_reply_is_read_as_json_in_utf_8(body: bytes, headers: dict[str, str], reply: JsonObject | None) -> None:
    with chat_api(Reply(200, body, headers)) as api:
        found = reply_of(api.base_url)
    assert reply is None or found == reply


@pytest.mark.parametrize("times", [1, 2])
def test_a_reply_is_decompressed_up_to_its_limit(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1024 * 1024
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", limit)
    for size, failure in ((limit, "is not a JSON object"), (limit + 1, "is larger than 1 MiB")):
        body = b'"' + b" " * (size - 2) + b'"'
        for _ in range(times):
            body = gzip.compress(body)
        with chat_api(Reply(200, body, {"content-encoding": ", ".join(["gzip"] * times)})) as api:
            assert failure in failure_of(api.base_url).detail


ELSEWHERE = {"location": "https://elsewhere.example/v1"}


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply(200, b"<html>\nhello</html>"), "malformed: the answer is not JSON: <html> hello</html>"),
        (Reply(200, b""), "malformed: the answer is not JSON"),
        (Reply(200, b"[1, 2]"), "malformed: the answer is not a JSON object: [1, 2]"),
        (Reply(200, b"NaN"), "malformed: the answer is not"),
        (Reply(200, b"[" * 100_000), "malformed: the answer is not JSON: [[["),
        (Reply(200, b"not gzip", {"content-encoding": "gzip"}), "network: DecodingError at http://127.0.0.1:"),
        (Reply(502, b"\xff\xfe", {"content-type": "text/html; charset=undefined"}), "server: HTTP 502: "),
        (Reply(302, b"", ELSEWHERE), f"request: HTTP 302: a redirect to {ELSEWHERE['location']}; check base_url"),
        (fails(404, "no such model"), "request: HTTP 404: no such model (asked http://127.0.0.1:"),
        (replace(says("x" * 1000), cut_at=500), "network: RemoteProtocolError at http://127.0.0.1:"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_reply_that_cannot_be_used_is_an_error(reply: Reply, failure: str) -> None:
    with chat_api(reply) as api:
        error = failure_of(api.base_url)
    assert (f"{error.kind}: {error.detail}"[: len(failure)], len(api.requests)) == (failure, 1)


def test_a_server_that_is_not_there_is_a_network_error_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = failure_of(f"http://127.0.0.1:{port}/v1")
    assert (error.kind, error.retryable) == ("network", True)
    assert error.detail.startswith(f"ConnectError at http://127.0.0.1:{port}/v1: ")
    for scheme in ("http", "ftp"):
        assert "canary" not in failure_of(f"{scheme}://user:canary@127.0.0.1:{port}").detail


@pytest.mark.parametrize("secret", ["canary\n", "canary\nx: y", "canaryü", "canary\0", "canary世"])
@pytest.mark.parametrize("url", ["http://127.0.0.1", "http://LOCALHOST"])
def test_an_invalid_header_is_an_error_that_does_not_show_it(secret: str, url: str) -> None:
    with chat_api() as api:
        error = failure_of(f"{url}:{api.url.rsplit(':')[-1]}", {"authorization": secret})
    assert (error.kind, error.retryable, api.requests) == ("request", False, [])
    assert "check api_key and headers" in error.detail
    assert "canary" not in error.detail


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_proxy_is_not_asked_for_addresses_of_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES[:3]:
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with chat_api(PLAIN) as api:
        assert reply_of(api.base_url.replace("127.0.0.1", host)) == ANSWER


async def test_a_proxy_is_asked_for_all_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (url, requests):
        monkeypatch.setenv("HTTP_PROXY", url)
        async with transport("http://models.example/v1") as opened:
            await post(opened)
    assert [each.path for each in requests] == ["http://models.example/v1/ask"]


@pytest.mark.parametrize("no_proxy", ["localhost,fd00::/8", "10.0.0.0/8,::1,[::1]:80,.example.com,*.local,[,:"])
async def test_networks_that_are_exempt_do_not_break_a_run(no_proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (url, requests):
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("NO_PROXY", no_proxy)
        async with transport("http://models.example/v1") as opened:
            await post(opened)
        assert await probe_status("http://models.example/health", timeout_s=60) == 200
    assert [each.path for each in requests] == ["http://models.example/v1/ask", "http://models.example/health"]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://[::1", "http://x:port"])
def test_a_proxy_that_cannot_be_used_is_an_error(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    error = failure_of("http://models.example/v1")
    assert (error.kind, "cannot use the proxy set in the environment" in error.detail) == ("request", True)


@pytest.mark.parametrize(
    "address",
    ["localhost:8000/v1", "ftp://127.0.0.1/v1", "http:///v1", "http://127.0.0.1:99999/v1", "http://[::1/v1", "/v1"],
)
def test_an_invalid_address_is_named_and_not_retried(address: str) -> None:
    error = failure_of(address)
    assert (error.kind, error.retryable, address in error.detail) == ("request", False, True)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = self_signed(folder)
    # In a folder of certificates, files are named by the hash of their subject.
    command = ["openssl", "x509", "-noout", "-hash", "-in", str(certificate)]
    hashed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (folder / f"{hashed}.0").symlink_to(certificate)
    return certificate, key


@pytest.mark.parametrize("trusted", ["ca_bundle", "SSL_CERT_FILE", "SSL_CERT_DIR", None])
async def test_a_server_is_trusted_if_its_authority_is(
    trusted: str | None, authority: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    if trusted == "SSL_CERT_FILE":
        monkeypatch.setenv(trusted, str(authority[0]))
    if trusted == "SSL_CERT_DIR":
        monkeypatch.setenv(trusted, str(authority[0].parent))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority)
    bundle = str(authority[0]) if trusted == "ca_bundle" else None
    with serving(context=context) as (url, _):
        async with transport(url, bundle) as opened:
            if trusted:
                assert await post(opened) == {"ok": True}
            else:
                with pytest.raises(ProviderError, match="CERTIFICATE_VERIFY_FAILED") as caught:
                    await post(opened)
                assert caught.value.kind == "network"


def test_the_usual_authorities_are_trusted_whatever_the_case_of_the_scheme() -> None:
    for url in ("https://example.com", "HTTPS://example.com"):
        assert trusted_certificates(url, None).get_ca_certs()


@pytest.mark.parametrize("content", [None, "not a certificate"])
@pytest.mark.parametrize("source", ["ca_bundle", "SSL_CERT_FILE"])
def test_certificates_that_cannot_be_read_are_named(
    content: str | None, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "authorities.pem"
    if content is not None:
        bundle.write_text(content, encoding="utf-8")
    named = str(bundle) if source == "ca_bundle" else source
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with pytest.raises(CannotGoOn, match="cannot read certificates from") as caught:
        reply_of("https://127.0.0.1:1/v1", named if source == "ca_bundle" else None)
    assert named in str(caught.value)


async def test_a_probe_has_a_time_limit() -> None:
    with serving(delay_s=5) as (url, _), pytest.raises(ProviderError, match=r"no answer from .* in time") as caught:
        await probe_status(url, timeout_s=0.1)
    assert caught.value.kind == "timeout"
