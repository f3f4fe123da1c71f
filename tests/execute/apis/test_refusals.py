"""Errors of APIs: their kind, what is quoted of them, when to ask again, and refused parameters."""

from __future__ import annotations

import pytest

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.apis.refusals import Parameters, inner_error, refused
from tests.support import NOW

FILTERED = "the content filter refused the prompt: no"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"error": {"message": "inside"}}, "inside"),
        ({"error": {"message": "inside", "code": "odd_code"}}, "inside [odd_code]"),
        ({"error": {"message": "an odd_code", "code": "odd_code"}}, "an odd_code"),
        ({"error": "a string"}, "a string"),
        ({"detail": "from FastAPI"}, "from FastAPI"),
        ({"detail": [{"loc": ["body", "top_p"], "msg": "too large"}, {"loc": 5}]}, "top_p: too large; : invalid"),
        ({"message": {"detail": "nested"}}, "nested"),
        ([{"error": {"message": "in a list"}}], "in a list"),
        ("plain text\nin lines", "plain text in lines"),
        ([1], "[1]"),
        ({"é": 1}, '{"é": 1}'),
        ({}, "no reason given"),
        ({"error": {"message": "no", "code": "content_filter"}}, f"{FILTERED} [content_filter]"),
        ({"error": {"message": "no", "innererror": {"code": "content_filter"}}}, FILTERED),
    ],
)
def test_the_message_of_an_error_is_quoted(body: JsonValue, detail: str) -> None:
    assert refused(400, {}, body, now=NOW).detail == f"HTTP 400: {detail}"


@pytest.mark.parametrize("name", ["x-request-id", "request-id", "apim-request-id"])
def test_the_request_id_is_quoted(name: str) -> None:
    assert refused(500, {name: "r-1", "x-other": "o"}, "sorry", now=NOW).detail == "HTTP 500: sorry (request id r-1)"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "quota", "type": "insufficient_quota"}},
        {"error": {"message": "No credit", "code": "credit_balance_exhausted"}},
        {"error": {"message": "Spend limit", "code": "organization_spend_limit_exceeded"}},
        {"error": "billing_hard_limit_reached"},
        {"message": "insufficient_quota: nothing left"},
        [{"error": {"code": "insufficient_quota", "message": "nothing left"}}],
        {"error": {"message": "quota", "details": [{"violations": [{"quotaId": "RequestsPerDayPerModel"}]}]}},
        "insufficient_quota",
    ],
    ids=repr,
)
def test_an_exhausted_quota_is_not_retried(body: JsonValue) -> None:
    error = refused(429, {"retry-after": "1"}, body, now=NOW)
    assert (error.kind, error.retryable, error.retry_after_s) == ("rate_limit", False, 1)
    assert refused(500, {}, body, now=NOW).retryable


def test_an_invalid_key_of_gemini_is_recognised_by_its_details() -> None:
    body: JsonValue = {"error": {"code": 400, "message": "no", "details": [{"reason": "API_KEY_INVALID"}]}}
    error = refused(400, {}, body, now=NOW)
    assert (error.kind, error.retryable) == ("auth", False)


@pytest.mark.parametrize(
    ("delay", "hint_s"), [("0.5s", 0.5), ("60s", 60), ("-1s", None), ("37", None), ("", None), ("xs", None)]
)
def test_the_wait_may_be_in_the_details(delay: str, hint_s: float | None) -> None:
    body: JsonValue = {"error": {"code": 429, "details": [None, {"retryDelay": 5}, {"retryDelay": delay}]}}
    assert refused(429, {}, body, now=NOW).retry_after_s == hint_s
    assert refused(429, {"retry-after": "9"}, body, now=NOW).retry_after_s == 9


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "down", "code": 502}, "server", 502),
        ({"message": "down", "code": "502"}, "server", 502),
        ({"message": "slow", "code": 429}, "rate_limit", 429),
        ({"message": "down", "code": 99}, "server", 500),
        ({"message": "no", "type": "authentication_error"}, "auth", 401),
        ({"message": "no", "type": "permission_error"}, "auth", 403),
        ({"message": "no", "type": "invalid_request_error"}, "request", 400),
        ({"message": "no", "code": "invalid_prompt"}, "request", 400),
        ({"message": "no", "type": "not_found_error"}, "request", 404),
        ({"message": "no", "type": "rate_limit_error"}, "rate_limit", 429),
        ({"message": "no", "code": "rate_limit_exceeded"}, "rate_limit", 429),
        ({"message": "no", "status": "RESOURCE_EXHAUSTED"}, "rate_limit", 429),
        ({"message": "no", "type": "overloaded_error"}, "server", 529),
        ({"message": "no", "type": "odd"}, "server", 500),
        ("no", "server", 500),
    ],
    ids=repr,
)
def test_an_error_inside_an_answer_is_treated_like_its_status(error: JsonValue, kind: str, status: int) -> None:
    found = inner_error({"error": error, "choices": []})
    assert found is not None
    message = error if isinstance(error, str) else error["message"] if isinstance(error, dict) else ""
    assert (found.kind, found.status, found.detail) == (kind, status, f"the API answered with an error: {message}")


@pytest.mark.parametrize("body", [{}, {"error": None}, {"error": {}}, "error", None])
def test_an_answer_without_an_error_has_none(body: JsonValue) -> None:
    assert inner_error(body) is None


SENT: JsonObject = {"model": "m", "temperature": 0.2, "top_p": 0.5, "max_tokens": 9, "user": "u"}


@pytest.mark.parametrize(
    ("status", "body", "left"),
    [
        (400, {"error": {"message": "'temperature' is not supported with this model"}}, "temperature"),
        (400, {"error": {"message": "no", "param": "temperature", "code": "unsupported_value"}}, "temperature"),
        (400, {"error": {"message": "Only the default (1) value of top_p is supported"}}, "top_p"),
        (400, {"error": {"message": "`temperature` may only be set to 1"}}, "temperature"),
        (422, {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}, "temperature"),
        (422, {"message": {"detail": [{"loc": ["body", "top_p"], "msg": "Extra inputs are not permitted"}]}}, "top_p"),
        (400, [{"error": {"code": 400, "message": "temperature is deprecated"}}], "temperature"),
        (400, "Unrecognized request argument supplied: temperature", "temperature"),
        (500, {"error": {"message": "'temperature' is not supported"}}, None),
        (400, {"error": {"message": "Invalid 'temperature': too large", "param": "temperature"}}, None),
        (400, {"error": {"message": "'user' is not supported", "param": "user"}}, None),
        (400, {"error": {"message": "'seed' is not supported"}}, None),
        (400, {"error": {"message": "Unknown: 'logprobs'. Did you mean 'top_p'?", "param": "logprobs"}}, None),
    ],
)
def test_an_unsupported_parameter_is_omitted_from_then_on(status: int, body: JsonValue, left: str | None) -> None:
    parameters = Parameters()
    said = parameters.learn(refused(status, {}, body, now=NOW), SENT)
    assert said == (None if left is None else f"the model does not support '{left}'; omitting it")
    assert parameters.adapted(SENT) == {name: value for name, value in SENT.items() if name != left}


def refusing(parameters: Parameters, name: str, body: JsonObject) -> str | None:
    return parameters.learn(refused(400, {}, f"{name} is not supported", now=NOW), body)


def test_a_limit_is_renamed_once_and_then_omitted() -> None:
    parameters = Parameters()
    body: JsonObject = {"max_tokens": 9}
    said = refusing(parameters, "max_tokens", body)
    assert said == "the model does not support 'max_tokens'; sending 'max_completion_tokens' instead"
    assert parameters.adapted(body) == {"max_completion_tokens": 9}
    assert parameters.adapted({"max_tokens": 9, "max_completion_tokens": 5}) == {"max_completion_tokens": 5}
    said = refusing(parameters, "max_completion_tokens", parameters.adapted(body))
    assert said == "the model does not support 'max_completion_tokens'; omitting it"
    assert parameters.adapted(body) == {}


def test_other_failures_teach_nothing() -> None:
    assert Parameters().learn(ProviderError("network", "temperature is not supported", status=400), SENT) is None
