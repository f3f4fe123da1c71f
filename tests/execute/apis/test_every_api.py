"""What holds for every API: the same steps of one server that supports all of their protocols."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Request, Response
from agentv_ci.contracts.results import Usage
from agentv_ci.contracts.targets import Target
from tests.execute import builders
from tests.execute.builders import ask_all, context, question
from tests.external import sdk_requests
from tests.servers import model_api as served
from tests.servers.http import Reply
from tests.servers.model_api import ModelApi, Step, model_api
from tests.support import FakeClock

KEY = "sk-canary-0123456789abcdef"
TOKENS = Usage(
    input_tokens=served.USAGE.input,
    output_tokens=served.USAGE.output,
    total_tokens=served.USAGE.input + served.USAGE.output,
    cached_tokens=served.USAGE.cached,
)
"""What the server says that an answer has used."""


def _without_writes(usage: Usage | None) -> Usage | None:
    """Return tokens as most vendors count them: Anthropic says which of them were written to the cache."""
    return usage and usage.model_copy(update={"cache_write_tokens": None})


QUESTION = question(chat=(ChatMessage("system", "S"), ChatMessage("user", "hi")))


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to ask."""

    settings: dict[str, Any]
    base: str = ""
    """What follows the server's address in `base_url` or `endpoint`."""
    address: str = "base_url"

    def target(self, url: str, **given: Any) -> Target:
        settings = {"name": "model", "api_key": KEY, self.address: url + self.base, **self.settings, **given}
        return builders.target(**settings)


AZURE = {"provider": "azure-openai", "deployment": "gpt-mock"}
KINDS = {
    "openai-chat": Kind({"provider": "openai", "model": "gpt-mock"}, "/v1"),
    "openai-responses": Kind({"provider": "openai", "model": "gpt-mock", "api_format": "responses"}, "/v1"),
    "azure-deployments": Kind(AZURE, address="endpoint"),
    "azure-v1": Kind({**AZURE, "version": "v1"}, address="endpoint"),
    "azure-v1-responses": Kind({**AZURE, "api_format": "responses"}, "/openai/v1", address="endpoint"),
    "anthropic": Kind({"provider": "anthropic", "model": "claude-haiku-4-5"}),
    "gemini": Kind({"provider": "gemini", "model": "gemini-mock"}),
}
CHAT = KINDS["openai-chat"]
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def ask(
    kind: Kind,
    api: ModelApi,
    *requests: Request,
    waits: FakeClock | None = None,
    warned: list[str] | None = None,
    log: list[str] | None = None,
    **given: Any,
) -> list[Response | ProviderError]:
    services = context(environment=(waits or FakeClock()).environment(), warned=warned, log=log)
    return list(ask_all(kind.target(api.url, **given), requests or (QUESTION,), services))


def answer(kind: Kind, api: ModelApi, **given: Any) -> Response:
    (found,) = ask(kind, api, **given)
    assert isinstance(found, Response), repr(found)
    return found


def failure(kind: Kind, *steps: Step, **given: Any) -> tuple[ProviderError, int]:
    """Ask once; return the failure and how many questions the server got."""
    with model_api(*steps) as api:
        (found,) = ask(kind, api, **given)
    assert isinstance(found, ProviderError), repr(found)
    assert KEY not in found.detail
    return found, len(api.questions)


@each_kind
def test_an_answer_has_text_model_tokens_and_what_was_asked(kind: Kind) -> None:
    with model_api(served.reasons("42", "thinking"), requires_key=KEY) as api:
        found = answer(kind, api)
    assert (found.answer, found.requests, found.has_trace, found.duration_ms) == ("42", 1, False, 0)
    assert (found.model or "").endswith("-2030-01-02")
    assert found.finish_reason in ("stop", "completed", "end_turn", "STOP")
    assert ("hi" in str(found.request), KEY in str(found.request)) == (True, False)
    assert (_without_writes(found.usage), found.expenses) == (TOKENS, ())


@each_kind
@pytest.mark.parametrize("step", [served.refuses("I cannot help"), served.filters(), served.filters_prompt()])
def test_a_refusal_and_what_a_filter_withholds_are_errors(step: Step, kind: Kind) -> None:
    error, asked = failure(kind, step)
    assert (error.kind, asked) == ("request", 1)


@each_kind
@pytest.mark.parametrize("step", [served.refuses(), served.filters()])
def test_a_withheld_answer_has_used_tokens(step: Step, kind: Kind) -> None:
    (expense,) = failure(kind, step)[0].expenses
    assert (expense.error_kind, expense.usage.input_tokens, expense.cost_usd) == ("request", 100, None)
    assert expense.usage.output_tokens in (0, 10)  # Gemini counts none for what it filters
    assert (expense.model or "").endswith("-2030-01-02")


def test_an_error_after_an_answer_was_paid_for_is_an_expense_of_the_next_try() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    body = {"error": {"code": 502, "message": "went away"}, "model": "gpt-mock", "usage": usage}
    paid = Step(lambda _dialect, _asked: Reply(200, json.dumps(body).encode()))
    lost = Usage(input_tokens=7, output_tokens=3, total_tokens=10)
    with model_api(paid, served.fails(503), paid, served.says("42")) as api:
        found = answer(CHAT, api)
    assert (found.answer, found.requests, found.usage) == ("42", 4, TOKENS)
    assert [(each.error_kind, each.usage) for each in found.expenses] == [("server", lost)] * 2
    error, asked = failure(CHAT, paid, served.fails(503), paid, served.fails(400))
    assert (error.kind, asked, [each.usage for each in error.expenses]) == ("request", 4, [lost, lost])


@pytest.mark.parametrize("name", ["openai-chat", "azure-deployments", "azure-v1"])
def test_an_answer_that_the_service_broke_off_is_asked_for_again(name: str) -> None:
    choice = {
        "finish_reason": "error",
        "message": {"role": "assistant", "content": "You can return it within 30 days if"},
    }
    body = {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 9}}
    broken = Step(lambda _dialect, _asked: Reply(200, json.dumps(body).encode()))
    with model_api(broken, served.says("42")) as api:
        assert answer(KINDS[name], api).answer == "42"
    error, asked = failure(KINDS[name], broken)
    assert (error.kind, error.detail, asked) == ("server", "the API broke the answer off (finish reason error)", 4)
    assert [each.usage.input_tokens for each in error.expenses] == [10] * 4


@each_kind
def test_a_truncated_answer_counts_with_a_warning(kind: Kind) -> None:
    warned: list[str] = []
    with model_api(served.truncates("half an ans")) as api:
        found = answer(kind, api, warned=warned)
    assert found.answer == "half an ans"
    assert warned == [f"model: an answer was truncated ({found.finish_reason}); raise max_output_tokens; case 'one'"]


STATUSES = {
    **dict.fromkeys((400, 404, 413), ("request", 1)),
    **dict.fromkeys((401, 402, 403), ("auth", 1)),
    **dict.fromkeys((408, 500, 503), ("server", 4)),
    429: ("rate_limit", 4),
}


@each_kind
def test_a_status_has_its_kind_and_is_retried_when_it_may_pass(kind: Kind) -> None:
    for status, (error_kind, requests) in STATUSES.items():
        error, asked = failure(kind, served.fails(status, "sorry"))
        assert (error.kind, error.status, error.requests, asked) == (error_kind, status, requests, requests)
        assert "sorry" in error.detail


@pytest.mark.parametrize(("name", "requests"), [("anthropic", 4), ("openai-chat", 1)])
def test_an_overload_of_anthropic_is_retried(name: str, requests: int) -> None:
    error, asked = failure(KINDS[name], served.fails(529))
    assert (error.kind, asked) == ("server", requests)


@each_kind
def test_the_wait_that_a_server_asks_for_is_kept_up_to_the_longest_one(kind: Kind, waits: FakeClock) -> None:
    with model_api(served.fails(429, retry_after_s=7), served.says("42")) as api:
        found = answer(kind, api, waits=waits)
    assert (found.answer, found.requests, waits.slept) == ("42", 2, [7])
    error, asked = failure(kind, served.fails(429, retry_after_s=61), waits=waits)
    assert (error.kind, asked, waits.slept) == ("rate_limit", 1, [7])
    assert error.detail.endswith("(retry-after 61 s is longer than retry_max_delay_ms)")


def test_the_retry_settings_of_a_target_count(waits: FakeClock) -> None:
    settings = {"max_retries": 2, "retry_initial_delay_ms": 100, "retry_max_delay_ms": 150, "retry_backoff_factor": 3}
    log: list[str] = []
    error, asked = failure(CHAT, served.fails(404), waits=waits, log=log, retry_status_codes=[404, 401], **settings)
    assert (error.requests, asked, waits.slept) == (3, 3, [0.1, 0.15])
    assert log[0] == f"model: {error.detail}; retry 1 of 2 in 0.1 s"
    assert failure(CHAT, served.fails(500), retry_status_codes=[404])[1] == 1


@each_kind
@pytest.mark.parametrize(
    ("step", "error_kind", "requests"),
    [
        (served.lacks_quota(), "rate_limit", 1),
        (served.failed_inside(), "server", 4),
        (served.garbage(), "malformed", 1),
        (served.cuts(), "network", 4),
    ],
    ids=["quota", "failed inside", "page", "cut"],
)
def test_failures_of_a_server_have_their_kinds(step: Step, error_kind: str, requests: int, kind: Kind) -> None:
    error, asked = failure(kind, step)
    assert (error.kind, asked) == (error_kind, requests)


@each_kind
def test_a_wrong_key_is_never_retried(kind: Kind) -> None:
    with model_api(requires_key="another-key") as api:
        (found,) = ask(kind, api, retry_status_codes=[400, 401, 403])
    assert isinstance(found, ProviderError)
    assert (found.kind, found.requests) == ("auth", 1)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "gemini"])
def test_a_refused_temperature_is_omitted_and_remembered(name: str, waits: FakeClock) -> None:
    warned: list[str] = []
    with model_api(served.rejects("temperature")) as api:
        found = ask(KINDS[name], api, QUESTION, QUESTION, waits=waits, warned=warned, temperature=0.2)
    assert [isinstance(each, Response) and each.requests for each in found] == [2, 1]
    sent = ["temperature" in (each.body or {}) for each in api.questions]
    assert (sent, waits.slept) == ([True, False, False], [])
    assert warned == ["model: the model does not support 'temperature'; omitting it"]


@pytest.mark.parametrize(("name", "warnings"), [("openai-chat", 0), ("openai-responses", 1), ("gemini", 0)])
def test_a_seed_is_a_warning_where_the_api_does_not_support_it(name: str, warnings: int) -> None:
    warned: list[str] = []
    with model_api() as api:
        ask(KINDS[name], api, question(chat=QUESTION.chat, seed=7), warned=warned)
    assert warned == ["model: seeds are ignored: the API does not support them"] * warnings


@each_kind
def test_further_keys_and_headers_are_sent_and_override(kind: Kind) -> None:
    identifying = {"X-Mine": "yes", "x-api-key": "other", "Authorization": "other", "api-key": "other"}
    identifying |= {"x-goog-api-key": "other"}
    with model_api(served.says("42")) as api:
        ask(kind, api, extra_body={"metadata": {"a": "b"}, "tools": []}, headers=identifying)
    (asked,) = api.requests
    assert (asked.headers["x-mine"], (asked.body or {})["metadata"]) == ("yes", {"a": "b"})
    assert KEY not in str(asked.headers)


def test_further_keys_are_merged_into_objects_and_tools_make_a_trace() -> None:
    tools: Any = [{"functionDeclarations": []}]
    with model_api(served.says("42")) as api:
        found = answer(
            KINDS["gemini"], api, temperature=0.5, extra_body={"tools": tools, "generationConfig": {"topK": 3}}
        )
    assert (api.questions[0].body or {})["generationConfig"] == {"temperature": 0.5, "topK": 3}
    assert found.has_trace


SYSTEM, USER, ASSISTANT = (ChatMessage(role, role) for role in ("system", "user", "assistant"))
CHATS = [
    (SYSTEM,),
    (ChatMessage("system", " \n"), USER),
    (ChatMessage("user", "\ud800 \x00 \U0001f600"),),
    (USER, SYSTEM, USER, USER),
    (ASSISTANT, ASSISTANT, USER),
    (USER, ASSISTANT),
    (ChatMessage("user", " "), ASSISTANT, ChatMessage("assistant", "")),
]


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_every_conversation_is_one_that_the_vendor_accepts(name: str) -> None:
    with model_api() as api:
        found = ask(KINDS[name], api, *(question(chat=chat) for chat in CHATS))
    assert [each for each in found if isinstance(each, ProviderError)] == []


OTHER_HEADERS = {
    # Microsoft documents both; this one is the same for both forms of address.
    "azure-v1": {"authorization": "api-key"},
    "azure-v1-responses": {"authorization": "api-key"},
    # All versions of the API support the key's own header.
    "anthropic": {"authorization": "x-api-key"},
}
"""Headers that we send under another name than the vendor's client."""


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_request_is_that_of_the_vendors_own_client(name: str) -> None:
    theirs = sdk_requests.request(name)
    chat = (ChatMessage("system", sdk_requests.SYSTEM), ChatMessage("user", sdk_requests.QUESTION))
    model = "deployment" if name.startswith("azure") else "model"
    given: dict[str, Any] = {model: sdk_requests.MODEL, "max_tokens_param": "max_completion_tokens"}
    if name == "azure-deployments":
        given["version"] = sdk_requests.AZURE_VERSION
    if name == "gemini":
        # Theirs since 3.0; our default is v1beta, which has more models.
        given |= {"api_version": "v1", "temperature": 0.2}
    with model_api(served.says("42")) as api:
        ask(KINDS[name], api, question(chat=chat, max_output_tokens=sdk_requests.MAX_TOKENS), **given)
    (ours,) = api.questions
    assert (ours.method, ours.path) == (theirs.method, theirs.path)
    others = OTHER_HEADERS.get(name, {})
    sent = {header for header in ours.headers if header in theirs.headers or header in others.values()}
    assert sent == {others.get(header, header) for header in theirs.headers}
    assert comparable(ours.body) == comparable(theirs.body)


def comparable(body: JsonObject | None) -> JsonObject:
    """Return a body without `store`, which only we send, and the role that Google's client adds to instructions."""
    found = {key: value for key, value in (body or {}).items() if key != "store"}
    if isinstance(instruction := found.get("systemInstruction"), dict):
        found["systemInstruction"] = {key: value for key, value in instruction.items() if key != "role"}
    return found
