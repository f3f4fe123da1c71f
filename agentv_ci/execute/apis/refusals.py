"""What the error of an API means, whichever vendor's words it uses: proxies mix them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import ProviderError, kind_of_status
from agentv_ci.execute.answers import error_message, one_line
from agentv_ci.json_access import count_at, objects_at, text_at, value_at
from agentv_ci.retry import retry_hint_s

EXHAUSTED = re.compile(r"insufficient_quota|credit_balance|spend_limit|billing_hard_limit|PerDay")
"""Words of a 429 that no wait of seconds mends, wherever they stand: in types, codes, details or plain text."""

STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "RESOURCE_EXHAUSTED": 429,
    "insufficient_quota": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
}
"""Words for an error inside an answer → the status that it would have had; all others are the server's fault."""

REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id")


class Refused(ProviderError):
    """An API that said no, with what it said."""

    body: JsonValue = None
    """The error's body: JSON, or a text."""


def refused(status: int, headers: Mapping[str, str], body: JsonValue, *, now: datetime) -> Refused:
    """Return the error of an answer with a status from 400 on; header names are lower case."""
    if isinstance(body, list) and body and isinstance(body[0], dict):
        # Google's, when it speaks OpenAI's protocol.
        body = body[0]
    detail = f"HTTP {status}: {_sentence(body) or 'without a reason'}{_code(body)}{_request_id(headers)}"
    error = _judged(status, detail, body)
    error.retry_after_s = _hint_s(headers, body, now)
    return error


def inner_error(body: JsonValue) -> Refused | None:
    """Return the error that an answer with status 200 carries inside; None: it is none.

    It is judged like the status that it names, or that its words stand for.
    """
    error = value_at(body, "error")
    if not error:
        return None
    return _judged(
        _inner_status(error), f"the API answered with an error: {error_message(body) or 'without a message'}", body
    )


def _judged(status: int, detail: str, body: JsonValue) -> Refused:
    kind = "auth" if _is_bad_key(body) else kind_of_status(status)
    is_final = kind == "auth" or (status == 429 and _is_exhausted(body))
    error = Refused(kind, detail, status=status, retryable=not is_final)
    error.body = body
    return error


def _inner_status(error: JsonValue) -> int:
    code = text_at(error, "code") or str(count_at(error, "code"))
    if re.fullmatch(r"[45][0-9]{2}", code):
        return int(code)
    words = (code, text_at(error, "type"), text_at(error, "status"))
    return next((STATUSES[word] for word in words if word in STATUSES), 500)


def _sentence(body: JsonValue) -> str:
    said = error_message(body) or one_line(json.dumps(body, ensure_ascii=False) if body else "")
    if _is_filtered(body):
        return f"the content filter refused the prompt: {said}"
    return said


def _code(body: JsonValue) -> str:
    """The error's code, where its sentence does not say it: people search for it."""
    code = text_at(body, "error", "code")
    return f" [{code}]" if code and code not in (error_message(body) or "") else ""


def _request_id(headers: Mapping[str, str]) -> str:
    found = next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), None)
    return f" (request id {found})" if found else ""


def _is_filtered(body: JsonValue) -> bool:
    """Azure: HTTP 400 with code content_filter and innererror ResponsibleAIPolicyViolation."""
    return "content_filter" in (text_at(body, "error", "code"), text_at(body, "error", "innererror", "code"))


def _is_bad_key(body: JsonValue) -> bool:
    """Gemini answers a wrong key with 400; google.rpc.ErrorInfo has the reason."""
    return any(text_at(detail, "reason") == "API_KEY_INVALID" for detail in objects_at(body, "error", "details"))


def _is_exhausted(body: JsonValue) -> bool:
    return bool(EXHAUSTED.search(json.dumps(body)))


def _hint_s(headers: Mapping[str, str], body: JsonValue, now: datetime) -> float | None:
    hint_s = retry_hint_s(headers, now)
    if hint_s is not None:
        return hint_s
    delays = (text_at(detail, "retryDelay") for detail in objects_at(body, "error", "details"))
    matches = (re.fullmatch(r"(\d+(?:\.\d+)?)s", delay) for delay in delays if delay)
    return next((float(match[1]) for match in matches if match), None)
