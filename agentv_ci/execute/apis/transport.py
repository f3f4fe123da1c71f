"""JSON over HTTP for providers."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentv_ci.base.json_access import json_or_none
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.execute.answers import one_line
from agentv_ci.execute.apis.http_client import HttpAnswer, HttpClient, without_login
from agentv_ci.execute.apis.refusals import refused


class Transport:
    """Posts JSON to one API."""

    def __init__(self, base_url: str, *, ca_bundle: str | None, environment: Environment) -> None:
        self._base_url = base_url.rstrip("/")
        self._environment = environment
        self._client = HttpClient(self._base_url, ca_bundle)

    async def post(self, path: str, *, headers: Mapping[str, str], body: JsonObject) -> JsonObject:
        """Return the JSON object of an answer; raises ProviderError.

        The caller sets a time limit.
        """
        named = {"content-type": "application/json"} | {
            name.lower(): value for name, value in headers.items()
        }
        content = json.dumps(body).encode("utf-8")
        answer = await self._client.post(path, headers=named, content=content)
        # JSON is always UTF-8 (RFC 8259, section 8.1).
        text = answer.body.decode("utf-8-sig", "replace")
        if answer.status >= 300:
            raise self._refused(answer, text, path)
        return _object(text)

    def _refused(self, answer: HttpAnswer, text: str, path: str) -> ProviderError:
        if 300 <= answer.status < 400:
            target = answer.headers.get("location", "nowhere")
            return ProviderError(
                "request",
                f"HTTP {answer.status}: a redirect to {target}; check base_url",
                status=answer.status,
            )
        body = json_or_none(text)
        error = refused(
            answer.status,
            answer.headers,
            text if body is None else body,
            now=self._environment.now(),
        )
        if answer.status == 404:
            # Often the address is wrong, not the model.
            error.detail += f" (asked {without_login(self._base_url + path)})"
        return error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def _object(text: str) -> JsonObject:
    body = json_or_none(text)
    if isinstance(body, dict):
        return body
    what = "not JSON" if body is None else "not a JSON object"
    raise ProviderError("malformed", f"the answer is {what}: {one_line(text)}")
