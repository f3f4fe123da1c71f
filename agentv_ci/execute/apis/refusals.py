"""Errors of APIs, recognized in the formats of all vendors: proxies mix them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime

from agentv_ci.base.json_access import count_at, objects_at, text_at, value_at
from agentv_ci.base.retry import retry_hint_s
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError, kind_of_status
from agentv_ci.execute.answers import error_message, one_line

EXHAUSTED = re.compile(r"insufficient_quota|credit_balance|spend_limit|billing_hard_limit|PerDay")
"""Marks of a 429 that is not worth a retry; found in types, codes, details or plain text."""

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
"""Type or code of an error inside an answer → its HTTP status; all others count as 500."""

NEGOTIABLE = ("temperature", "top_p", "max_tokens", "max_completion_tokens")
"""Parameters that can be omitted without changing the question."""
OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
UNSUPPORTED = re.compile(
    r"unsupported|not supported|does(?: not|n't) support|extra inputs are not permitted"
    r"|deprecated|unrecognized"
    r"|unknown (?:parameter|field|name)|only the default|may only be set",
    re.IGNORECASE,
)

REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id")


class Refused(ProviderError):
    """An error answer of an API."""

    body: JsonValue = None
    """The error's body: JSON, or text."""


def refused(status: int, headers: Mapping[str, str], body: JsonValue, *, now: datetime) -> Refused:
    """Return the error of an answer with a status from 400 on; header names are lower case."""
    if isinstance(body, list) and body and isinstance(body[0], dict):
        # Google's OpenAI-compatible API.
        body = body[0]
    detail = (
        f"HTTP {status}: {_sentence(body) or 'no reason given'}{_code(body)}{_request_id(headers)}"
    )
    error = _judged(status, detail, body)
    error.retry_after_s = _hint_s(headers, body, now)
    return error


def inner_error(body: JsonValue) -> Refused | None:
    """Return the error inside an answer with status 200, or None.

    It is treated like the HTTP status that its code or type stands for.
    """
    error = value_at(body, "error")
    if not error:
        return None
    return _judged(
        _inner_status(error),
        f"the API answered with an error: {error_message(body) or 'no message'}",
        body,
    )


def _judged(status: int, detail: str, body: JsonValue) -> Refused:
    kind = "auth" if _is_bad_key(body) else kind_of_status(status)
    is_exhausted = status == 429 and EXHAUSTED.search(json.dumps(body)) is not None
    is_final = kind == "auth" or is_exhausted
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
    message = error_message(body) or one_line(json.dumps(body, ensure_ascii=False) if body else "")
    # Azure: HTTP 400 with code content_filter and innererror ResponsibleAIPolicyViolation.
    is_filtered = "content_filter" in (
        text_at(body, "error", "code"),
        text_at(body, "error", "innererror", "code"),
    )
    if is_filtered:
        return f"the content filter refused the prompt: {message}"
    return message


def _code(body: JsonValue) -> str:
    """Return the error's code, unless its message has it: people search for it."""
    code = text_at(body, "error", "code")
    if code and code not in (error_message(body) or ""):
        return f" [{code}]"
    return ""


def _request_id(headers: Mapping[str, str]) -> str:
    for request_id in filter(None, map(headers.get, REQUEST_ID_HEADERS)):
        return f" (request id {request_id})"
    return ""


def _is_bad_key(body: JsonValue) -> bool:
    """Whether a key is invalid.

    Gemini answers with 400, and google.rpc.ErrorInfo has the reason.
    """
    return any(
        text_at(detail, "reason") == "API_KEY_INVALID"
        for detail in objects_at(body, "error", "details")
    )


def _hint_s(headers: Mapping[str, str], body: JsonValue, now: datetime) -> float | None:
    hint_s = retry_hint_s(headers, now)
    if hint_s is not None:
        return hint_s
    for detail in objects_at(body, "error", "details"):
        delay = re.fullmatch(r"(\d+(?:\.\d+)?)s", text_at(detail, "retryDelay") or "")
        if delay is not None:
            return float(delay[1])
    return None


class Parameters:
    """The parameters that a target's model has refused.

    They are omitted or renamed from then on.
    """

    def __init__(self) -> None:
        self._refused: dict[str, str | None] = {}

    def adapted(self, body: JsonObject) -> JsonObject:
        """Return a body without refused parameters."""
        adapted = dict(body)
        for name, other in self._refused.items():
            if name in adapted:
                value = adapted.pop(name)
                if other is not None and other not in self._refused:
                    adapted.setdefault(other, value)
        return adapted

    def learn(self, error: ProviderError, sent: JsonObject) -> str | None:
        """Remember the parameter that an error refuses, and return a warning.

        None if it refuses none.

        A parameter that was renamed and is refused again is omitted.
        """
        name = _refused_parameter(error, sent)
        if name is None:
            return None
        other = OTHER_NAMES.get(name)
        self._refused[name] = None if other in self._refused else other
        if self._refused[name] is not None:
            return f"the model does not support '{name}'; sending '{other}' instead"
        return f"the model does not support '{name}'; omitting it"


def _refused_parameter(error: ProviderError, sent: JsonObject) -> str | None:
    if not isinstance(error, Refused) or error.status not in (400, 422):
        return None
    message = error_message(error.body) or ""
    code = text_at(error.body, "error", "code") or ""
    if UNSUPPORTED.search(message) is None and not code.startswith("unsupported_"):
        return None
    named = text_at(error.body, "error", "param")
    candidates = [named] if named else re.findall(r"\w+", message)
    return next((name for name in candidates if name in sent and name in NEGOTIABLE), None)
