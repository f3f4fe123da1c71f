"""`provider: openai` on the wire."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.execute.providers import open_provider
from tests.execute.builders import ask_all, context
from tests.servers.chat_api import ChatApi, Reply, answers, chat_api, fails, says
from tests.support import NOW, FakeClock

KEY = "sk-canary-0123456789abcdef"

QUESTION = Request(
    case_id="one",
    prompt="What is six times seven?",
    guidelines="",
    chat=(ChatMessage("system", "Be brief."), ChatMessage("user", "What is six times seven?")),
    timeout_s=30,
    cwd=Path("/"),
)


def target(base_url: str, **given: Any) -> OpenAITarget:
    """A resolved target; `given` are its fields."""
    settings = {"name": "gpt", "provider": "openai", "model": "gpt-mock", "base_url": base_url, "api_key": KEY}
    return OpenAITarget.model_validate({**settings, **given})


def ask(
    asked: OpenAITarget, *requests: Request, waits: FakeClock | None = None, log: list[str] | None = None
) -> Sequence[Response | ProviderError]:
    """Ask one question after the other; return answers and failures."""
    lines: list[str] = [] if log is None else log

    return ask_all(asked, requests or (QUESTION,), context(environment=(waits or FakeClock()).environment(), log=lines))


def answer(api: ChatApi, *, waits: FakeClock | None = None, request: Request = QUESTION, **given: Any) -> Response:
    """Ask once; return the answer."""
    (found,) = ask(target(api.base_url, **given), request, waits=waits)
    assert isinstance(found, Response), found
    return found


def failure(
    api: ChatApi | str, *, waits: FakeClock | None = None, request: Request = QUESTION, **given: Any
) -> ProviderError:
    """Ask once; return the failure."""
    (found,) = ask(target(api if isinstance(api, str) else api.base_url, **given), request, waits=waits)
    assert isinstance(found, ProviderError), found
    return found


def asked_body(request: Request = QUESTION, **given: Any) -> dict[str, Any]:
    """Return the body that the server got."""
    with chat_api() as api:
        answer(api, request=request, **given)
        body: dict[str, Any] = api.requests[0]["body"]
        return body


def test_a_question_is_posted_as_a_chat_completion() -> None:
    with chat_api() as api:
        answer(api)
    (request,) = api.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["body"] == {
        "model": "gpt-mock",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is six times seven?"},
        ],
    }


def test_a_question_carries_these_headers_and_no_others() -> None:
    with chat_api() as api:
        answer(api)
    headers = api.requests[0]["headers"]
    of_the_client = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-length"}
    assert {name: value for name, value in headers.items() if name not in of_the_client} == {
        "authorization": f"Bearer {KEY}",
        "content-type": "application/json",
    }


def test_the_address_is_used_as_given_but_for_a_trailing_slash() -> None:
    with chat_api() as api:
        ask(target(f"{api.url}/some/path/"))
    assert api.requests[0]["path"] == "/some/path/chat/completions"


def test_a_chat_without_a_system_message_gets_a_default_one() -> None:
    body = asked_body(replace(QUESTION, chat=(ChatMessage("user", "Hello"),)))
    system, user = body["messages"]
    assert (system["role"], user) == ("system", {"role": "user", "content": "Hello"})
    assert system["content"].count("\n") == 0
    assert "careful assistant" in system["content"]


def test_a_chat_goes_out_turn_by_turn() -> None:
    chat = (
        ChatMessage("system", "S"),
        ChatMessage("user", "Grüße, 世界 \u2028 🎉"),
        ChatMessage("assistant", ""),
        ChatMessage("user", "Q"),
    )
    body = asked_body(replace(QUESTION, chat=chat))
    assert body["messages"] == [{"role": each.role, "content": each.content} for each in chat]


def test_a_seed_is_sent() -> None:
    assert asked_body(replace(QUESTION, seed=7))["seed"] == 7


def test_a_seed_of_zero_is_a_seed() -> None:
    assert asked_body(replace(QUESTION, seed=0))["seed"] == 0


@pytest.mark.parametrize(
    ("of_target", "of_request", "sent"),
    [({}, None, None), ({"temperature": 0.2}, None, 0.2), ({"temperature": 0.2}, 0.0, 0.0), ({}, 1.0, 1.0)],
)
def test_the_temperature_is_the_requests_else_the_targets_else_none(
    of_target: dict[str, float], of_request: float | None, sent: float | None
) -> None:
    assert asked_body(replace(QUESTION, temperature=of_request), **of_target).get("temperature") == sent


@pytest.mark.parametrize(
    ("given", "of_request", "sent"),
    [
        ({}, None, {}),
        ({"max_output_tokens": 100}, None, {"max_tokens": 100}),
        ({"max_output_tokens": 100}, 50, {"max_tokens": 50}),
        (
            {"max_output_tokens": 100, "max_tokens_param": "max_completion_tokens"},
            None,
            {"max_completion_tokens": 100},
        ),
        ({"max_output_tokens": 100, "max_tokens_param": "max_tokens"}, None, {"max_tokens": 100}),
    ],
)
def test_the_longest_answer_is_limited_under_the_servers_name_for_it(
    given: dict[str, Any], of_request: int | None, sent: dict[str, int]
) -> None:
    body = asked_body(replace(QUESTION, max_output_tokens=of_request), **given)
    assert {name: value for name, value in body.items() if name.startswith("max_")} == sent


def test_openai_itself_gets_the_limit_under_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_api() as api:
        # A proxy gets the whole address, so it can stand in for any host.
        monkeypatch.setenv("HTTP_PROXY", api.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        ask(target("http://api.openai.com/v1", max_output_tokens=100))
    (request,) = api.requests
    assert request["path"] == "http://api.openai.com/v1/chat/completions"
    assert (request["body"].get("max_completion_tokens"), "max_tokens" in request["body"]) == (100, False)


def test_further_headers_are_sent() -> None:
    with chat_api() as api:
        answer(api, headers={"OpenAI-Organization": "org-1", "X-Title": "evals"})
    headers = api.requests[0]["headers"]
    assert (headers["openai-organization"], headers["x-title"]) == ("org-1", "evals")


def test_further_keys_of_the_body_are_sent_and_win() -> None:
    body = asked_body(extra_body={"reasoning_effort": "low", "stop": None, "seed": 1}, temperature=0.5)
    assert (body["reasoning_effort"], body["stop"], body["seed"], body["temperature"]) == ("low", None, 1, 0.5)


@pytest.mark.parametrize("key", [None, ""])
def test_no_key_is_no_authorization_header(key: str | None) -> None:
    with chat_api() as api:
        given = {} if key is None else {"api_key": key}
        settings = {"name": "local", "provider": "ollama", "model": "llama", "base_url": api.base_url, **given}
        ask(OpenAITarget.model_validate(settings))
    assert "authorization" not in api.requests[0]["headers"]


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "ollama", "vllm", "openrouter"])
def test_every_name_of_the_provider_speaks_the_same_protocol(provider: str) -> None:
    with chat_api() as api:
        assert answer(api, provider=provider).answer == "MOCK-ANSWER 42"


def test_an_answer_comes_back_with_model_and_usage_and_what_was_asked() -> None:
    with chat_api(says("42")) as api:
        found = answer(api)
    assert found == Response(
        answer="42",
        messages=(OutputMessage(role="assistant", content="42"),),
        has_trace=False,
        model="mock-model-2030",
        usage=Usage(input_tokens=100, output_tokens=10, total_tokens=110, cached_tokens=20),
        finish_reason="stop",
        requests=1,
        duration_ms=0,
        request={"messages": api.requests[0]["body"]["messages"]},
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, Usage()),
        ({"prompt_tokens": 3, "completion_tokens": None}, Usage(input_tokens=3)),
        ({"prompt_tokens": 3, "prompt_tokens_details": None, "total_tokens": "many"}, Usage(input_tokens=3)),
    ],
)
def test_usage_is_what_the_server_says_and_never_fails_an_answer(usage: object, expected: Usage | None) -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "42"}}], "usage": usage}
    with chat_api(answers(200, body)) as api:
        assert answer(api).usage == expected


def test_an_answer_needs_neither_model_nor_usage() -> None:
    with chat_api(answers(200, {"choices": [{"message": {"content": "42"}}]})) as api:
        found = answer(api)
    assert (found.answer, found.model, found.usage) == ("42", None, None)


def test_a_refusal_is_no_answer() -> None:
    with chat_api(says(None, message={"role": "assistant", "content": None, "refusal": "I cannot."})) as api:
        found = failure(api)
    assert (found.kind, found.detail) == ("request", "the model refused to answer: I cannot.")


def test_an_answer_without_content_is_empty() -> None:
    with chat_api(says(None)) as api:
        assert answer(api).answer == ""


def test_an_answer_cut_at_its_limit_is_an_answer() -> None:
    with chat_api(says("half an ans", finish_reason="length")) as api:
        assert answer(api).answer == "half an ans"


def test_content_in_parts_is_not_lost() -> None:
    parts = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    with chat_api(says(None, message={"role": "assistant", "content": parts})) as api:
        assert answer(api).answer == "42"


def test_content_of_an_unknown_form_is_not_lost() -> None:
    with chat_api(says(None, message={"role": "assistant", "content": [{"type": "image", "url": "x"}]})) as api:
        assert json.loads(answer(api).answer) == [{"type": "image", "url": "x"}]


def test_a_compressed_answer_is_read() -> None:
    plain = says("42")
    packed = Reply(200, gzip.compress(plain.body), {**plain.headers, "content-encoding": "gzip"})
    with chat_api(packed) as api:
        assert answer(api).answer == "42"


def test_a_byte_order_mark_before_an_answer_does_no_harm() -> None:
    plain = says("42")
    with chat_api(replace(plain, body=b"\xef\xbb\xbf" + plain.body)) as api:
        assert answer(api).answer == "42"


def test_tool_calls_come_back_as_a_trace() -> None:
    calls = [
        {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "tea"}'}},
        {"id": "2", "type": "function", "function": {"name": "fetch", "arguments": "not json"}},
        {"id": "3", "type": "function", "function": {"name": "stop", "arguments": ""}},
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    with chat_api(says(None, message=message, finish_reason="tool_calls")) as api:
        found = answer(api)
    assert found.has_trace
    assert found.messages == (
        OutputMessage(
            role="assistant",
            content="",
            tool_calls=(
                ToolCall(tool="search", input={"q": "tea"}),
                ToolCall(tool="fetch", input="not json"),
                ToolCall(tool="stop", input=""),
            ),
        ),
    )


def test_arguments_nested_without_end_are_text_and_not_a_crash() -> None:
    deep = "[" * 100_000
    call = {"type": "function", "function": {"name": "dig", "arguments": deep}}
    with chat_api(says(None, message={"role": "assistant", "content": "42", "tool_calls": [call]})) as api:
        assert answer(api).messages[0].tool_calls == (ToolCall(tool="dig", input=deep),)


def test_half_an_emoji_in_an_answer_does_not_reach_anything_that_cannot_hold_it() -> None:
    with chat_api(says("cut \ud83d")) as api:
        answer(api).answer.encode("utf-8")


@pytest.mark.parametrize(
    ("status", "kind", "requests"),
    [
        (400, "request", 1),
        (401, "auth", 1),
        (402, "auth", 1),
        (403, "auth", 1),
        (404, "request", 1),
        (409, "request", 1),
        (413, "request", 1),
        (422, "request", 1),
        (408, "server", 4),
        (429, "rate_limit", 4),
        (500, "server", 4),
        (502, "server", 4),
        (503, "server", 4),
        (504, "server", 4),
    ],
)
def test_a_status_has_its_kind_and_is_repeated_when_it_may_pass(
    status: int, kind: ErrorKind, requests: int, waits: FakeClock
) -> None:
    with chat_api(fails(status, "it went wrong")) as api:
        error = failure(api, waits=waits)
    assert (error.kind, error.status, error.requests, len(api.requests)) == (kind, status, requests, requests)
    assert error.detail.startswith(f"HTTP {status}: it went wrong")
    assert waits.slept == [1, 2, 4][: requests - 1]


def test_an_answer_after_failures_says_how_many_tries_it_took(waits: FakeClock) -> None:
    with chat_api(fails(503), fails(500), says("42")) as api:
        found = answer(api, waits=waits)
    assert (found.answer, found.requests, waits.slept) == ("42", 3, [1, 2])


def test_every_try_posts_the_same() -> None:
    with chat_api(fails(503), says("42")) as api:
        answer(api)
    first, second = api.requests
    assert first == second


@pytest.mark.parametrize(
    ("headers", "slept"),
    [
        ({"retry_after": "7"}, [7]),
        ({"retry_after": "9", "retry_after_ms": "500"}, [0.5]),
        ({"retry_after": format_datetime(NOW + timedelta(seconds=5), usegmt=True)}, [5]),
        ({"retry_after": "soon"}, [1]),
    ],
)
def test_the_wait_that_a_server_asks_for_is_kept(headers: dict[str, str], slept: list[float], waits: FakeClock) -> None:
    with chat_api(fails(429, **headers), says("42")) as api:
        assert answer(api, waits=waits).answer == "42"
    assert waits.slept == slept


def test_a_wait_longer_than_the_longest_is_not_kept_but_ends_the_tries(waits: FakeClock) -> None:
    with chat_api(fails(429, retry_after="61"), says("42")) as api:
        error = failure(api, waits=waits)
    assert (error.kind, error.requests, waits.slept) == ("rate_limit", 1, [])


def test_the_targets_retry_settings_count(waits: FakeClock) -> None:
    settings: dict[str, Any] = {
        "max_retries": 2,
        "retry_initial_delay_ms": 100,
        "retry_max_delay_ms": 150,
        "retry_backoff_factor": 3,
    }
    with chat_api(fails(429)) as api:
        error = failure(api, waits=waits, **settings)
    assert (error.requests, waits.slept) == (3, [0.1, 0.15])


def test_no_retries_is_one_try() -> None:
    with chat_api(fails(429), says("42")) as api:
        assert failure(api, max_retries=0).requests == 1


def test_listed_statuses_replace_the_default_ones(waits: FakeClock) -> None:
    with chat_api(fails(404), fails(500), says("42")) as api:
        error = failure(api, waits=waits, retry_status_codes=[404, 401])
    assert (error.status, error.requests) == (500, 2)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_not_tried_again_although_the_status_is_listed(status: int) -> None:
    with chat_api(fails(status), says("42")) as api:
        assert failure(api, retry_status_codes=[status, 429]).requests == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"},
        {"message": "No credit", "type": "billing", "code": "credit_balance_exhausted"},
        {"message": "Spend limit", "type": "billing", "code": "organization_spend_limit_exceeded"},
        {"message": "Spend limit", "type": "billing", "code": "project_spend_limit_exceeded"},
    ],
)
def test_a_quota_that_is_used_up_is_not_tried_again(error: dict[str, str]) -> None:
    with chat_api(answers(429, {"error": error}, retry_after="1"), says("42")) as api:
        found = failure(api)
    assert (found.kind, found.requests, error["message"] in found.detail) == ("rate_limit", 1, True)


def test_a_retry_is_logged_with_its_reason_its_number_and_its_wait() -> None:
    log: list[str] = []
    with chat_api(fails(429, "slow down", retry_after="7"), says("42")) as api:
        ask(target(api.base_url), log=log)
    assert log == ["gpt: HTTP 429: slow down; retry 1 of 3 in 7.0 s"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "inside"}}', "inside"),
        (b'{"error": "a string"}', "a string"),
        (b'{"detail": "from FastAPI"}', "from FastAPI"),
        (b'{"message": "bare"}', "bare"),
        (b"plain text\nin lines", "plain text in lines"),
        (b"<html><h1>Bad gateway</h1></html>", "<html><h1>Bad gateway</h1></html>"),
        (b"[1]", "[1]"),
        (b"\xff\xfe", ""),
    ],
)
def test_what_a_server_says_of_its_error_is_quoted(body: bytes, said: str) -> None:
    with chat_api(Reply(400, body)) as api:
        assert failure(api).detail.startswith(f"HTTP 400: {said}")


@pytest.mark.parametrize("error", [{"message": "upstream is down", "code": 502}, "upstream is down"])
def test_an_error_inside_a_200_is_an_error(error: object) -> None:
    with chat_api(answers(200, {"error": error, "choices": []})) as api:
        found = failure(api)
    assert (found.kind, "upstream is down" in found.detail) == ("server", True)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"",
        b"\xff",
        b"[1, 2]",
        b"null",
        b"{}",
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": [null]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": {"0": 1}}',
        b'{"choices": ' + b"[" * 100_000,
    ],
    ids=lambda body: body[:30],
)
def test_an_answer_that_is_none_is_malformed_and_not_tried_again(body: bytes) -> None:
    with chat_api(Reply(200, body), says("42")) as api:
        found = failure(api)
    assert (found.kind, found.requests) == ("malformed", 1)


def test_an_answer_that_the_content_filter_withheld_is_an_error() -> None:
    with chat_api(says(None, finish_reason="content_filter")) as api:
        found = failure(api)
    assert (found.kind, "content filter" in found.detail) == ("request", True)


def test_a_value_out_of_range_is_the_users_mistake_and_is_not_left_out() -> None:
    error = {"message": "Invalid 'temperature': too large", "param": "temperature", "code": "decimal_above_max_value"}
    with chat_api(answers(400, {"error": error})) as api:
        found = failure(api, temperature=9)
    assert (found.kind, found.requests) == ("request", 1)


def test_a_cut_connection_is_a_network_error_and_tried_again(waits: FakeClock) -> None:
    with chat_api(replace(says("x" * 1000), cut=True), says("42")) as api:
        found = answer(api, waits=waits)
    assert (found.answer, found.requests, waits.slept) == ("42", 2, [1])


def test_a_connection_that_is_always_cut_is_given_up_and_named(waits: FakeClock) -> None:
    with chat_api(replace(says("x" * 1000), cut=True)) as api:
        found = failure(api, waits=waits)
        assert (found.kind, found.requests, len(api.requests)) == ("network", 4, 4)
        assert found.detail.startswith(f"RemoteProtocolError at {api.base_url}")


def test_a_server_that_is_not_there_is_a_network_error_and_tried_again(waits: FakeClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    found = failure(f"http://127.0.0.1:{port}/v1", waits=waits)
    assert (found.kind, found.requests, waits.slept) == ("network", 4, [1, 2, 4])
    assert found.detail.startswith(f"ConnectError at http://127.0.0.1:{port}/v1")


def test_a_server_that_does_not_answer_in_time_is_a_timeout_and_left_to_the_next_attempt() -> None:
    with chat_api(replace(says("late"), delay_s=0.5)) as api:
        found = failure(api, request=replace(QUESTION, timeout_s=0.1))
    assert (found.kind, found.requests) == ("timeout", 1)


def test_a_redirect_is_not_followed_but_named() -> None:
    with chat_api(Reply(302, b"", {"location": "https://elsewhere.example/v1"}), says("42")) as api:
        found = failure(api)
    assert (found.kind, found.status, len(api.requests)) == ("request", 302, 1)
    assert "https://elsewhere.example/v1" in found.detail
    assert "base_url" in found.detail


def test_one_question_after_the_other_is_answered() -> None:
    with chat_api(says("1"), fails(400), says("3")) as api:
        first, second, third = ask(target(api.base_url), QUESTION, QUESTION, QUESTION)
    assert isinstance(second, ProviderError)
    assert [each.answer for each in (first, third) if isinstance(each, Response)] == ["1", "3"]


def test_a_cancelled_question_leaves_a_provider_that_can_be_asked_again() -> None:
    async def main(api: ChatApi) -> Response:
        provider = open_provider(target(api.base_url), context())
        try:
            cancelled = asyncio.create_task(provider.ask(QUESTION))
            while not api.requests:  # noqa: ASYNC110  # a thread says it, not the event loop
                await asyncio.sleep(0.01)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            return await provider.ask(QUESTION)
        finally:
            await provider.close()

    with chat_api(replace(says("late"), delay_s=0.5), says("42")) as api:
        assert asyncio.run(main(api)).answer == "42"


@pytest.mark.parametrize("secret", [f"{KEY}\n", f"{KEY}\nx: y", f"{KEY}ü", f"{KEY}\0", f"{KEY}世"])
@pytest.mark.parametrize("field", ["api_key", "headers"])
def test_a_secret_that_no_header_can_hold_is_an_error_that_does_not_show_it(field: str, secret: str) -> None:
    given: dict[str, Any] = {"api_key": secret} if field == "api_key" else {"headers": {"x-auth": secret}}
    with chat_api() as api:
        found = failure(api, **given)
    assert (found.kind, found.requests, api.requests) == ("request", 1, [])
    assert KEY not in found.detail


def test_what_was_asked_is_kept_without_secrets() -> None:
    with chat_api() as api:
        found = answer(api, headers={"x-auth": KEY})
    assert KEY not in json.dumps(dict(found.request))
