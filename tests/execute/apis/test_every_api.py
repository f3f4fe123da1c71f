"""What holds for every API: the same steps of one server that speaks all of their protocols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Request, Response
from agentv_ci.contracts.results import Usage
from agentv_ci.contracts.targets import Target
from tests.execute.builders import ask_all, context
from tests.external import sdk_requests
from tests.servers import model_api as served
from tests.servers.model_api import ModelApi, Step, model_api
from tests.support import FakeClock

KEY = "sk-canary-0123456789abcdef"
CHAT = (ChatMessage("system", "S"), ChatMessage("user", "hi"))
QUESTION = Request("one", "hi", "", CHAT, timeout_s=600, cwd=Path("/"))


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to ask."""

    settings: dict[str, Any]
    base: str = ""
    """What follows the server's address in `base_url` or `endpoint`."""
    address: str = "base_url"

    def target(self, url: str, **given: Any) -> Target:
        settings = {"name": "model", "api_key": KEY, self.address: url + self.base, **self.settings, **given}
        return TypeAdapter[Target](Target).validate_python(settings)


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
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def ask(
    kind: Kind,
    api: ModelApi | str,
    *requests: Request,
    waits: FakeClock | None = None,
    warned: list[str] | None = None,
    **given: Any,
) -> list[Response | ProviderError]:
    url = api if isinstance(api, str) else api.url
    around = context(environment=(waits or FakeClock()).environment(), warned=warned)
    return list(ask_all(kind.target(url, **given), requests or (QUESTION,), around))


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
def test_answer_has_text_model_and_what_was_asked(kind: Kind) -> None:
    with model_api(served.says("42"), requires_key=KEY) as api:
        found = answer(kind, api)
    assert (found.answer, found.requests, found.has_trace) == ("42", 1, False)
    assert (found.model or "").endswith("-2030-01-02")
    assert found.finish_reason in ("stop", "completed", "end_turn", "STOP")
    assert "hi" in str(found.request)
    assert KEY not in str(found.request)


@each_kind
def test_usage_counts_all_that_was_read_and_written(kind: Kind) -> None:
    with model_api(served.reasons("42", "thinking")) as api:
        found = answer(kind, api)
    total = served.USAGE.input + served.USAGE.output
    assert found.usage == Usage(
        input_tokens=served.USAGE.input,
        output_tokens=served.USAGE.output,
        total_tokens=total,
        cached_tokens=served.USAGE.cached,
    )
    assert found.answer == "42"


@each_kind
def test_refusal_is_an_error_with_its_words(kind: Kind) -> None:
    error, asked = failure(kind, served.refuses("I cannot help"))
    assert (error.kind, asked) == ("request", 1)
    assert "refused" in error.detail or "withheld" in error.detail or "stopped: SAFETY" in error.detail


@each_kind
def test_filtered_answer_is_an_error(kind: Kind) -> None:
    error, asked = failure(kind, served.filters())
    assert (error.kind, asked) == ("request", 1)


@each_kind
def test_filtered_prompt_is_an_error_that_is_not_repeated(kind: Kind) -> None:
    error, asked = failure(kind, served.filters_prompt())
    assert (error.kind, asked) == ("request", 1)


@each_kind
def test_answer_that_is_cut_counts_and_is_told_once(kind: Kind) -> None:
    warned: list[str] = []
    with model_api(served.truncates("half an ans")) as api:
        found = answer(kind, api, warned=warned)
    assert found.answer == "half an ans"
    assert warned == [f"model: an answer was truncated ({found.finish_reason}); raise max_output_tokens"]


@each_kind
@pytest.mark.parametrize(
    ("status", "wanted", "requests"),
    [
        *((400, "request", 1), (401, "auth", 1), (403, "auth", 1), (404, "request", 1), (413, "request", 1)),
        *((408, "server", 4), (429, "rate_limit", 4), (500, "server", 4), (503, "server", 4)),
    ],
)
def test_status_has_its_kind_and_is_repeated_when_it_may_pass(
    kind: Kind, status: int, wanted: str, requests: int
) -> None:
    error, asked = failure(kind, served.fails(status, "sorry"))
    assert (error.kind, error.status, error.requests, asked) == (wanted, status, requests, requests)
    assert "sorry" in error.detail


@pytest.mark.parametrize(("name", "requests"), [("anthropic", 4), ("openai-chat", 1)])
def test_overload_of_anthropic_is_repeated(name: str, requests: int) -> None:
    error, asked = failure(KINDS[name], served.fails(529))
    assert (error.kind, asked) == ("server", requests)


@each_kind
def test_wait_that_the_server_asks_for_is_kept(kind: Kind, waits: FakeClock) -> None:
    with model_api(served.fails(429, retry_after_s=7), served.says("42")) as api:
        found = answer(kind, api, waits=waits)
    assert (found.answer, found.requests, waits.slept) == ("42", 2, [7])


@each_kind
def test_wait_beyond_the_cap_ends_the_retries(kind: Kind, waits: FakeClock) -> None:
    error, asked = failure(kind, served.fails(429, retry_after_s=61), waits=waits)
    assert (error.kind, asked, waits.slept) == ("rate_limit", 1, [])


@each_kind
def test_exhausted_quota_is_not_repeated(kind: Kind, waits: FakeClock) -> None:
    error, asked = failure(kind, served.lacks_quota(), waits=waits)
    assert (error.kind, asked) == ("rate_limit", 1)


@each_kind
def test_failure_inside_an_answer_is_a_failure(kind: Kind) -> None:
    error, asked = failure(kind, served.failed_inside())
    assert (error.kind, asked) == ("server", 4), "repeated like the status that it stands for"


@each_kind
def test_page_instead_of_an_answer_is_malformed(kind: Kind) -> None:
    error, asked = failure(kind, served.garbage())
    assert (error.kind, asked) == ("malformed", 1)
    assert "not JSON" in error.detail


@each_kind
def test_cut_connection_is_repeated(kind: Kind) -> None:
    with model_api(served.cuts(), served.says("42")) as api:
        found = answer(kind, api)
    assert (found.answer, found.requests) == ("42", 2)


@each_kind
def test_wrong_key_is_an_error_of_authentication_and_never_repeated(kind: Kind) -> None:
    with model_api(requires_key="another-key") as api:
        (found,) = ask(kind, api, retry_status_codes=[400, 401, 403])
    assert isinstance(found, ProviderError)
    assert (found.kind, found.requests) == ("auth", 1)


NOT_GEMINI = [name for name in KINDS if name != "gemini"]


@pytest.mark.parametrize("name", NOT_GEMINI)
def test_refused_temperature_is_left_out_and_remembered(name: str, waits: FakeClock) -> None:
    warned: list[str] = []
    with model_api(served.rejects("temperature")) as api:
        found = ask(KINDS[name], api, QUESTION, QUESTION, waits=waits, warned=warned, temperature=0.2)
        sent = ["temperature" in (each.body or {}) for each in api.questions]
    assert [isinstance(each, Response) and each.requests for each in found] == [2, 1]
    assert (sent, waits.slept) == ([True, False, False], [])
    assert warned == ["model: the model does not support 'temperature'; omitting it"]


@pytest.mark.parametrize("name", ["openai-chat", "azure-deployments", "azure-v1"])
def test_refused_limit_gets_its_other_name(name: str) -> None:
    warned: list[str] = []
    with model_api(served.rejects("max_tokens", new_name="max_completion_tokens")) as api:
        settings: dict[str, Any] = {"max_output_tokens": 100, "max_tokens_param": "max_tokens"}
        found = ask(KINDS[name], api, QUESTION, QUESTION, warned=warned, **settings)
        sent = [{key: value for key, value in (each.body or {}).items() if "max" in key} for each in api.questions]
    assert [isinstance(each, Response) and each.requests for each in found] == [2, 1]
    assert sent == [{"max_tokens": 100}, {"max_completion_tokens": 100}, {"max_completion_tokens": 100}]
    assert warned == ["model: the model does not support 'max_tokens'; sending 'max_completion_tokens' instead"]


@each_kind
def test_extra_keys_and_headers_go_out_and_win(kind: Kind) -> None:
    with model_api(served.says("42")) as api:
        ask(kind, api, temperature=0.5, extra_body={"metadata": {"a": "b"}}, headers={"X-Mine": "yes"})
        (asked,) = api.requests
    assert asked.headers["x-mine"] == "yes"
    assert (asked.body or {})["metadata"] == {"a": "b"}


SDKS: dict[str, Callable[[], sdk_requests.SdkRequest]] = {
    "openai-chat": sdk_requests.openai_chat,
    "openai-responses": sdk_requests.openai_responses,
    "azure-deployments": sdk_requests.azure_deployments,
    "azure-v1": sdk_requests.azure_v1_chat,
    "azure-v1-responses": sdk_requests.azure_v1_responses,
    "anthropic": sdk_requests.anthropic_messages,
    "gemini": sdk_requests.gemini,
}


@pytest.mark.parametrize("name", KINDS)
def test_request_is_that_of_the_vendors_own_client(name: str) -> None:
    """But for what a vendor's client changes of its own accord, which is named here."""
    theirs = SDKS[name]()
    chat = (ChatMessage("system", sdk_requests.SYSTEM), ChatMessage("user", sdk_requests.QUESTION))
    question = Request("one", "", "", chat, timeout_s=30, cwd=Path("/"), max_output_tokens=sdk_requests.MAX_TOKENS)
    kind = KINDS[name]
    model = "deployment" if name.startswith("azure") else "model"
    given: dict[str, Any] = {model: sdk_requests.MODEL, "max_tokens_param": "max_completion_tokens"}
    if name == "azure-deployments":
        given["version"] = sdk_requests.AZURE_VERSION
    if name == "gemini":
        # Theirs since 3.0; ours stays with v1beta, which knows more models.
        given |= {"api_version": "v1", "temperature": 0.2}
    with model_api(served.says("42")) as api:
        ask(kind, api, question, **given)
        (ours,) = api.questions
    assert (ours.method, ours.path) == (theirs.method, theirs.path)
    told = {header for header in ours.headers if header in theirs.headers or header in OTHERWISE.get(name, {}).values()}
    assert told == {OTHERWISE.get(name, {}).get(header, header) for header in theirs.headers}
    assert comparable(ours.body) == comparable(theirs.body)


OTHERWISE = {
    # Microsoft documents both; this one is the same for both styles of addresses.
    "azure-v1": {"authorization": "api-key"},
    "azure-v1-responses": {"authorization": "api-key"},
    # The key's own header is understood in all versions of the API.
    "anthropic": {"authorization": "x-api-key"},
}
"""Headers that we send under another name than the vendor's client."""


def comparable(body: JsonObject | None) -> JsonObject:
    """A body without `store`, which only we send, and the role that Google's client adds to the instructions."""
    found = {key: value for key, value in (body or {}).items() if key != "store"}
    if isinstance(instruction := found.get("systemInstruction"), dict):
        found["systemInstruction"] = {key: value for key, value in instruction.items() if key != "role"}
    return found
