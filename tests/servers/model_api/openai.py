"""What OpenAI's two protocols share, and what Azure makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tests.servers.http import Asked, Reply, answers
from tests.servers.model_api.dialect import REQUEST_ID, Dialect, Json, Mistake, Trouble

_CODES: Mapping[int, str] = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_AZURE_CODES: Mapping[int, str] = {404: "DeploymentNotFound", 500: "InternalServerError", 503: "ServiceUnavailable"}
_SAFE: Json = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}
PROMPT_RESULTS: list[Json] = [{"prompt_index": 0, "content_filter_results": _SAFE}]
"""What Azure adds to an answer."""


class OpenAI(Dialect):
    """Errors, keys and headers of OpenAI, or of Azure when `azure` is set."""

    def __init__(self, *, azure: bool = False) -> None:
        self.azure = azure

    @property
    def headers(self) -> dict[str, str]:
        return {"apim-request-id" if self.azure else "x-request-id": REQUEST_ID}

    def check_key(self, asked: Asked, key: str) -> None:
        given = asked.headers.get("api-key") if self.azure else None
        given = given or asked.headers.get("authorization", "").removeprefix("Bearer ")
        if given == key:
            return
        if self.azure:
            raise Mistake("Access denied due to invalid subscription key or wrong API endpoint.", status=401)
        if not given:
            raise Mistake("You didn't provide an API key.", status=401, kind="invalid_request_error", code="")
        raise Mistake("Incorrect API key provided.", status=401)

    def error(self, trouble: Trouble) -> Reply:
        body = self._azure_error(trouble) if self.azure else _error(trouble)
        headers = {**self.headers, **_retry_headers(trouble.retry_after_s)}
        return answers(trouble.status, {"error": {**body, **trouble.extra}}, headers)

    def _azure_error(self, trouble: Trouble) -> Json:
        if trouble.kind or trouble.param or (trouble.code and trouble.status == 400):
            return _error(trouble)
        code = trouble.code or _AZURE_CODES.get(trouble.status, str(trouble.status))
        return {"code": code, "message": trouble.message}

    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        if parameter not in asked.body:
            return None
        message = f"Unsupported parameter: '{parameter}' is not supported with this model."
        return Trouble(400, message, param=parameter, code="unsupported_parameter")

    def filtered_prompt(self, asked: Asked) -> Reply:
        if not self.azure:
            message = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
            return self.error(Trouble(400, message, code="invalid_prompt"))
        message = (
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
            "Please modify your prompt and retry."
        )
        results = {**_SAFE, "violence": {"filtered": True, "severity": "medium"}}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results}
        extra = {"type": None, "status": 400, "innererror": inner}
        return self.error(Trouble(400, message, param="prompt", code="content_filter", extra=extra))

    def lacks_quota(self) -> Reply:
        message = "You exceeded your current quota, please check your plan and billing details."
        return self.error(Trouble(429, message, kind="insufficient_quota", code="insufficient_quota"))


def _error(trouble: Trouble) -> Json:
    status = trouble.status
    usual = "requests" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    code = _CODES.get(status) if trouble.code is None else trouble.code
    return {
        "message": trouble.message,
        "type": trouble.kind or usual,
        "param": trouble.param,
        "code": code or None,
    }


def _retry_headers(seconds: float | None) -> dict[str, str]:
    if seconds is None:
        return {}
    return {"retry-after": str(math.ceil(seconds)), "retry-after-ms": f"{seconds * 1000:g}"}
