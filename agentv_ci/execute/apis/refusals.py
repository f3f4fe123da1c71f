"""What the error of an API means, whichever vendor's words it uses: proxies mix them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import ErrorKind, ProviderError, kind_of_status
from agentv_ci.outside import count_at, dig, objects_at, text_at
from agentv_ci.retry import retry_hint_s

EXHAUSTED = re.compile(r"insufficient_quota|credit_balance|spend_limit|billing_hard_limit")
"""Words of a 429 that no wait of seconds mends, wherever they stand: in types, codes, details or plain text."""

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
    kind = "auth" if _is_bad_key(body) else kind_of_status(status)
    error = Refused(
        kind,
        f"HTTP {status}: {_sentence(body) or 'without a reason'}{_request_id(headers)}",
        status=status,
        retryable=kind != "auth" and not (status == 429 and _is_exhausted(body)),
        retry_after_s=_hint_s(headers, body, now),
    )
    error.body = body
    return error


def inner_error(body: JsonValue) -> ProviderError | None:
    """Return the error that an answer with status 200 carries inside, as some routers send it; None: it is none."""
    error = dig(body, "error")
    if not error:
        return None
    status = count_at(error, "code")
    kind: ErrorKind = "server"
    if status is not None:
        status = status if 400 <= status < 600 else None
        kind = kind_of_status(status) if status is not None else "server"
    said = error_message(body) or "without a message"
    return ProviderError(
        kind, f"the API answered with an error: {said}", status=status, retryable=status is not None and kind != "auth"
    )


def error_message(body: JsonValue) -> str | None:
    """Return the sentence of an error body.

    It is a text, or stands under `error`, `message` or `detail`, also of an object in one of them; or it is a list of
    `{"loc", "msg"}` (FastAPI).
    """
    match body:
        case str():
            return one_line(body) or None
        case list():
            return "; ".join(_located(each) for each in objects_at(body)) or None
        case dict():
            inner = (error_message(body.get(key)) for key in ("error", "message", "detail"))
            return next((each for each in inner if each), None)
        case _:
            return None


def _located(problem: JsonValue) -> str:
    place = dig(problem, "loc")
    steps = [str(step) for step in place if step != "body"] if isinstance(place, list) else []
    return f"{'.'.join(steps)}: {text_at(problem, 'msg') or 'wrong'}"


def one_line(text: str) -> str:
    """Return a text on one line; whoever takes the secrets out also shortens it."""
    return " ".join(text.split())


def _sentence(body: JsonValue) -> str:
    said = error_message(body) or one_line(json.dumps(body, ensure_ascii=False) if body else "")
    if _is_filtered(body):
        return f"the content filter refused the prompt: {said}"
    return said


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
