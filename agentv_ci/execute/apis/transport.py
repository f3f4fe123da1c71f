"""JSON over HTTP for providers."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.errors import UsageError
from agentv_ci.execute.answers import one_line
from agentv_ci.execute.apis.connection import Direct, is_plain
from agentv_ci.execute.apis.refusals import refused
from agentv_ci.execute.apis.wire import Answer, Wire, is_loopback, without_login
from agentv_ci.json_access import json_or_none

PROXIES = {"http", "https", "all"}
"""Kinds of proxies that are read from the process's environment, as httpx does."""


class Transport:
    """Posts JSON to one API."""

    def __init__(self, base_url: str, *, ca_bundle: str | None, environment: Environment) -> None:
        self._base_url = base_url.rstrip("/")
        self._environment = environment
        self._wire = self._open(self._ssl_context(ca_bundle))

    def _open(self, context: ssl.SSLContext | None) -> Wire:
        if is_plain(self._base_url) and (is_loopback(self._base_url) or not _has_proxies()):
            return Direct(self._base_url, context)
        from agentv_ci.execute.apis.through_httpx import ThroughHttpx

        return ThroughHttpx(self._base_url, context)

    def _ssl_context(self, ca_bundle: str | None) -> ssl.SSLContext | None:
        """Return the trusted certificates; None for plain HTTP, because loading them is slow."""
        try:
            if ca_bundle is not None:
                return ssl.create_default_context(cafile=ca_bundle)
            if self._base_url.lower().startswith("https:"):
                return _usual_trust()
        except OSError as error:
            where = f"ca_bundle '{ca_bundle}'" if ca_bundle else "SSL_CERT_FILE or SSL_CERT_DIR"
            raise UsageError(f"cannot read certificates from {where}: {error}") from error
        return None

    async def post(self, path: str, *, headers: Mapping[str, str], body: JsonObject) -> JsonObject:
        """Return the JSON object of an answer; raises ProviderError. The caller sets a time limit."""
        named = {"content-type": "application/json"} | {name.lower(): value for name, value in headers.items()}
        content = json.dumps(body).encode("utf-8")
        answer = await self._wire.post(path, headers=named, content=content)
        # JSON is always UTF-8 (RFC 8259, section 8.1).
        text = answer.body.decode("utf-8-sig", "replace")
        if answer.status >= 300:
            raise self._refused(answer, text, path)
        return _object(text)

    def _refused(self, answer: Answer, text: str, path: str) -> ProviderError:
        if 300 <= answer.status < 400:
            target = answer.headers.get("location", "nowhere")
            return ProviderError(
                "request", f"HTTP {answer.status}: a redirect to {target}; check base_url", status=answer.status
            )
        body = json_or_none(text)
        error = refused(answer.status, answer.headers, text if body is None else body, now=self._environment.now())
        if answer.status == 404:
            # Often the address is wrong, not the model.
            error.detail += f" (asked {without_login(self._base_url + path)})"
        return error

    async def close(self) -> None:
        """Close all connections."""
        await self._wire.close()


def _usual_trust() -> ssl.SSLContext:
    """Return the certificates that httpx trusts by default; raises OSError."""
    variables = os.environ  # noqa: TID251  # the process's own, as for proxies
    if file := variables.get("SSL_CERT_FILE"):
        return ssl.create_default_context(cafile=file)
    if folder := variables.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=folder)
    import certifi  # only HTTPS needs it

    return ssl.create_default_context(cafile=certifi.where())


def _has_proxies() -> bool:
    from urllib.request import getproxies  # slow to import

    return bool(PROXIES & getproxies().keys())


def _object(text: str) -> JsonObject:
    body = json_or_none(text)
    if isinstance(body, dict):
        return body
    what = "not JSON" if body is None else "not a JSON object"
    raise ProviderError("malformed", f"the answer is {what}: {one_line(text)}")
