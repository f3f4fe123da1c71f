"""Which requests take the proxy of the environment, and which `NO_PROXY` exempts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.base.proxies import ThroughProxies, is_exempt, proxy_for
from tests.servers.http import Asked, Reply, answers, serve

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


NAME, V4, V6 = "http://models.corp.test/v1", "http://10.1.2.3/v1", "http://[fd00::7]:8080/v1"


@pytest.mark.parametrize(
    ("url", "named", "others"),
    [
        (NAME, "models.corp.test corp.test .corp.test *.corp.test MODELS.Corp.Test. * http://corp.test", "test.corp"),
        (NAME, "models.corp.test:80 .corp.test:80", "models.corp.test:443 https://corp.test orp.test models"),
        (NAME, "", ".models.corp.test *.models.corp.test 10.0.0.0/8 fd00::/8 ::1 [::1]:80 localhost"),
        ("https://models.corp.test", "corp.test:443 https://corp.test", "corp.test:80 http://corp.test"),
        ("http://corp.test.", "corp.test", ".corp.test"),
        (V4, "10.1.2.3 10.0.0.0/8 10.1.2.3/32 10.9.9.9/8 10.1.2.3:80 *", "10.1.2.4 10.0.0.0/16 192.168.0.0/16 .3"),
        (V4, "0.0.0.0/0", "fd00::/8 ::/0 10.1.2.3:81 1.2.3 http://corp.test"),
        ("http://[::ffff:10.1.2.3]", "10.0.0.0/8", "fd00::/8"),
        (V6, "fd00::7 FD00:0::0007 [fd00::7] fd00::/8 [fd00::]/8 [fd00::7]:8080 *", "fd00::8 fe80::/10 [fd00::7]:80"),
        (V6, "", "10.0.0.0/8 corp.test 7 ::7"),
        ("http://bücher.example", "bücher.example xn--bcher-kva.example .example", "bucher.example"),
        ("http://xn--bcher-kva.example", "bücher.example", "bucher.example"),
        (NAME, "", ": :80 . *. ** // / [ ] [::1 ]:80 fd00::/999 10.0.0.0/33x corp.test:port http:// ://x %zz ..corp"),
    ],
)
def test_a_list_exempts_the_hosts_that_it_names(url: str, named: str, others: str) -> None:
    for entry in named.split():
        assert is_exempt(httpx.URL(url), f"localhost, fe80::/64 ,{entry}"), entry
    for entry in others.split():
        assert not is_exempt(httpx.URL(url), entry), entry
    assert not is_exempt(httpx.URL(url), ",".join(others.split()))


@given(st.text(st.sampled_from(":/[].,*% 01fxA-é\0")) | st.text())
def test_no_list_breaks_a_run(no_proxy: str) -> None:
    for url in (NAME, V4, V6):
        assert is_exempt(httpx.URL(url), no_proxy) in (True, False)


PROXY = "http://proxy.test:3128"


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, NAME, None),
        ({"HTTP_PROXY": PROXY}, NAME, PROXY),
        ({"http_proxy": "proxy.test:3128"}, NAME, PROXY),
        ({"HTTPS_PROXY": PROXY}, NAME, None),
        ({"ALL_PROXY": PROXY}, NAME, PROXY),
        ({"ALL_PROXY": "http://other.test", "HTTP_PROXY": PROXY}, NAME, PROXY),
        ({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost,fd00::/8"}, NAME, PROXY),
        ({"HTTP_PROXY": PROXY, "no_proxy": "fd00::/8"}, V6, None),
        *(
            ({"ALL_PROXY": PROXY}, f"http://{host}", None)
            for host in ("127.0.0.1", "127.9.9.9", "[::1]:80", "LOCALHOST")
        ),
    ],
)
def test_the_proxy_of_an_address(
    environ: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(httpx.URL(url)) == proxy


async def test_each_request_of_a_client_takes_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: dict[str, list[str]] = {"proxy": [], "direct": []}

    def replying(name: str) -> Callable[[Asked], Reply]:
        def reply(asked: Asked) -> Reply:
            paths[name].append(asked.path)
            return answers(200, {})

        return reply

    with ExitStack() as servers:
        proxy, direct = (servers.enter_context(serve(replying(name))) for name in paths)
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "fd00::/8")
        async with httpx.AsyncClient(transport=ThroughProxies()) as client:
            for url in (NAME, f"{direct}/a", V4, f"{direct}/b"):
                await client.get(url)
    assert paths == {"proxy": [NAME, V4], "direct": ["/a", "/b"]}
