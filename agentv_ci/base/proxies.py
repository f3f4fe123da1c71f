"""The proxies of the environment, and the hosts that `NO_PROXY` exempts from them.

httpx reads these variables, too, but fails for networks such as `fd00::/8`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.request import getproxies

import httpx

DEFAULT_PORTS = {"http": 80, "https": 443}


def proxy_for(url: httpx.URL) -> str | None:
    """Return the address of the proxy for an address.

    None if it is asked directly, like all of this machine.

    The variables are those of the process: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`,
    also in lower case.
    """
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or is_this_machine(url.host) or is_exempt(url, proxies.get("no", "")):
        return None
    if "://" in proxy:
        return proxy
    return f"http://{proxy}"


def is_this_machine(host: str) -> bool:
    """Whether a host is the machine itself."""
    address = _address(host)
    if address is None:
        return host == "localhost"
    return address.is_loopback


def is_exempt(url: httpx.URL, no_proxy: str) -> bool:
    """Whether a list of hosts names the host of an address.

    An entry that cannot be read names none.

    `example.com` names this host and those below it, `.example.com` and `*.example.com` only those
    below it, `*` all, `10.0.0.0/8` and `fd00::/8` the addresses of a network. With a port, as in
    `[fd00::1]:8080`, only that port is meant, and with a scheme, as in `https://example.com`, only
    that scheme.
    """
    return any(_names(entry, url) for entry in re.split(r"[,\s]+", no_proxy))


def _names(entry: str, url: httpx.URL) -> bool:
    scheme, _, rest = entry.rpartition("://")
    if scheme not in ("", "all", url.scheme):
        return False
    if rest == "*":
        return True
    address, network = _address(url.host), _network(rest)
    if network is not None:
        return address is not None and address in network
    is_domain = rest.startswith((".", "*."))
    try:
        named = httpx.URL(f"all://{rest.lstrip('*.')}")
    except httpx.InvalidURL:
        return False
    if named.port not in (None, url.port or DEFAULT_PORTS.get(url.scheme)):
        return False
    if address is not None:
        return address == _address(named.host)
    host, name = url.host.rstrip("."), named.host.rstrip(".")
    return bool(name) and (host.endswith(f".{name}") or (host == name and not is_domain))


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address
    return address


def _network(text: str) -> IPv4Network | IPv6Network | None:
    bracketed = re.fullmatch(r"\[(.+)\](/[0-9]+)?", text)
    if bracketed:
        text = f"{bracketed[1]}{bracketed[2] or ''}"
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


class ThroughProxies(httpx.AsyncBaseTransport):
    """Sends each request through the proxy for its address, or directly."""

    def __init__(self) -> None:
        self._transports: dict[str | None, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx."""
        proxy = proxy_for(request.url)
        if proxy not in self._transports:
            self._transports[proxy] = httpx.AsyncHTTPTransport(proxy=proxy)
        return await self._transports[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()
