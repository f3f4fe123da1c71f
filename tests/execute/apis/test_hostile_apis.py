"""Servers, environments and conversations that mean harm, or are merely odd."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter

from agentv_ci.contracts.api_targets import AzureOpenAITarget
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Request, Response
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.contracts.targets import Target
from agentv_ci.errors import CannotGoOn
from agentv_ci.execute.apis.transport import Transport
from agentv_ci.execute.providers import open_provider
from agentv_ci.execute.providers.azure_openai import azure_openai_api
from agentv_ci.execute.resolution import resolve_targets
from agentv_ci.redaction import Redactor
from agentv_ci.retry import retry_hint_s
from tests.execute.apis.test_every_api import KEY, KINDS, QUESTION, Kind, ask, failure
from tests.execute.builders import context
from tests.servers import model_api as served
from tests.servers.model_api import Reply, Step, model_api
from tests.support import NOW, CommandResult, FakeClock, run_process, write

CHAT = KINDS["openai-chat"]
RESPONSES = KINDS["openai-responses"]
ANTHROPIC = KINDS["anthropic"]
GEMINI = KINDS["gemini"]


def raw(body: object, status: int = 200, **headers: str) -> Step:
    """Answer with exactly this body: bytes, a text, or anything else as JSON; `_` stands for `-` in names."""
    text = json.dumps(body) if not isinstance(body, (bytes, str)) else body
    content = text if isinstance(text, bytes) else text.encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    named = {"content-type": "application/json", **given}
    return Step(lambda _dialect, _asked: Reply(status, content, named))


def completion(message: object, reason: str | None = "stop", **choice: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"message": message, "finish_reason": reason, **choice}]}


def answer_to(kind: Kind, step: Step, **given: Any) -> Response:
    with model_api(step) as api:
        (found,) = ask(kind, api, **given)
    assert isinstance(found, Response), repr(found)
    return found


def body_of(kind: Kind, *turns: ChatMessage, max_output_tokens: int | None = None, **given: Any) -> dict[str, Any]:
    """Ask once; return what was sent, which the server must have found in order."""
    chat = turns or QUESTION.chat
    question = Request("one", "", "", chat, timeout_s=30, cwd=Path("/"), max_output_tokens=max_output_tokens)
    with model_api() as api:
        (found,) = ask(kind, api, question, **given)
        assert isinstance(found, Response), repr(found)
        (asked,) = api.questions
    body: dict[str, Any] = asked.body
    return body


def resolved(environ: Mapping[str, str], **settings: Any) -> Target:
    target = TypeAdapter[Target](Target).validate_python({"name": "model", **settings})
    return resolve_targets({"model": target}, environ)["model"]


AZURE_ENVIRONMENT = {
    "AZURE_OPENAI_ENDPOINT": "https://environment.openai.azure.com",
    "AZURE_OPENAI_API_KEY": KEY,
    "AZURE_DEPLOYMENT_NAME": "d",
}


def azure_address(environ: Mapping[str, str], **settings: Any) -> str:
    target = resolved({**AZURE_ENVIRONMENT, **environ}, provider="azure-openai", **settings)
    assert isinstance(target, AzureOpenAITarget)
    api = azure_openai_api(target)
    return api.base_url + api.path


# Bodies


@pytest.mark.parametrize("charset", ["utf-16", "base64", "undefined"])
@pytest.mark.parametrize("status", [200, 502])
def test_charset_that_cannot_be_decoded_costs_one_answer_and_not_the_run(status: int, charset: str) -> None:
    step = raw("<html>bad gateway \u00e9</html>", status, content_type=f"text/html; charset={charset}")
    error, _ = failure(CHAT, step, max_retries=0)
    assert error.kind in ("malformed", "server")


def test_json_is_utf_8_whatever_charset_its_header_names() -> None:
    body = json.dumps(completion({"content": "n\u00e9"}), ensure_ascii=False)
    assert answer_to(CHAT, raw(body, content_type="application/json; charset=iso-8859-1")).answer == "n\u00e9"


def test_byte_order_mark_duplicate_keys_and_constants_that_are_no_json_are_borne() -> None:
    body = '\ufeff{"choices": 1, "choices": [{"message": {"content": "42", "score": NaN, "n": -Infinity}}]}'
    assert answer_to(CHAT, raw(body)).answer == "42"


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"NaN", b"[" * 100_000], ids=["nothing", "null", "list", "nan", "deep"]
)
def test_body_that_is_no_json_object_is_malformed(body: bytes) -> None:
    error, asked = failure(CHAT, raw(body))
    assert (error.kind, asked) == ("malformed", 1)


@pytest.mark.parametrize("output", [None, "42", {"type": "message"}], ids=repr)
def test_response_whose_output_is_no_list_is_malformed(output: object) -> None:
    error, _ = failure(RESPONSES, raw({"status": "completed", "output": output}))
    assert error.kind == "malformed"


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_response_that_is_not_ready_is_no_answer(status: str) -> None:
    error, _ = failure(RESPONSES, raw({"status": status, "output": []}))
    assert error.kind in ("malformed", "server")


def test_candidate_that_is_no_object_is_malformed() -> None:
    error, _ = failure(GEMINI, raw({"candidates": ["42"]}))
    assert error.kind == "malformed"


def test_failure_that_a_router_puts_into_the_choice_is_a_failure() -> None:
    """https://openrouter.ai/docs/api-reference/errors: `choices[0].error` and the finish reason `error`."""
    failed = {"code": 502, "message": "provider went away"}
    error, _ = failure(CHAT, raw(completion({"role": "assistant", "content": ""}, "error", error=failed)))
    assert error.kind == "server"
    assert "provider went away" in error.detail


def test_thoughts_among_the_parts_of_a_message_are_no_part_of_the_answer() -> None:
    """As Mistral's reasoning models answer."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "six times seven"}]}
    assert answer_to(CHAT, raw(completion({"content": [thought, {"type": "text", "text": "42"}]}))).answer == "42"


def test_message_without_any_part_is_an_empty_answer() -> None:
    assert answer_to(CHAT, raw(completion({"content": []}))).answer == ""


def test_arguments_of_a_call_may_be_anything() -> None:
    written = ['{"a": 1}', "{", "", "NaN", '"\\ud800"', "[" * 5_000, None, {"b": 2}]
    calls = [{"function": {"name": "f", "arguments": each}} for each in written]
    found = answer_to(CHAT, raw(completion({"content": None, "tool_calls": [*calls, None, 5, {"function": None}]})))
    wanted: list[JsonValue] = [{"a": 1}, "{", "", None, "\ufffd", "[" * 5_000, None, {"b": 2}]
    assert found.calls == tuple(ToolCall(tool="f", input=each) for each in wanted)


def test_counts_of_tokens_that_are_no_whole_numbers_are_absent() -> None:
    usage = {"prompt_tokens": "7", "completion_tokens": 1.5, "total_tokens": True, "prompt_tokens_details": []}
    assert answer_to(CHAT, raw({**completion({"content": "x"}), "usage": usage})).usage == Usage()


def test_counts_of_tokens_below_nothing_are_absent() -> None:
    found = answer_to(CHAT, raw({**completion({"content": "x"}), "usage": {"prompt_tokens": -5}}))
    assert found.usage == Usage()


def test_content_encoding_that_lies_is_a_failure_and_nothing_more() -> None:
    error, asked = failure(CHAT, raw(completion({"content": "x"}), content_encoding="gzip"))
    assert (error.kind, asked) == ("network", 4)


def test_content_encoding_twice_is_decoded_twice() -> None:
    twice = gzip.compress(gzip.compress(json.dumps(completion({"content": "42"})).encode()))
    assert answer_to(CHAT, raw(twice, content_encoding="gzip, gzip")).answer == "42"


# Refusals


@pytest.mark.parametrize(
    "body",
    [
        {"error": "insufficient_quota"},
        {"message": "insufficient_quota: nothing left"},
        [{"error": {"code": "insufficient_quota", "message": "nothing left"}}],
        "insufficient_quota",
    ],
    ids=repr,
)
def test_exhausted_quota_is_not_repeated_in_whatever_shape_it_is_told(body: object) -> None:
    error, asked = failure(CHAT, raw(body, 429))
    assert (error.kind, asked) == ("rate_limit", 1)


def test_google_says_no_in_a_list_when_it_speaks_chat_completions(waits: FakeClock) -> None:
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}
    refused = [{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [wait]}}]
    with model_api(raw(refused, 429), served.says()) as api:
        ask(CHAT, api, waits=waits)
    assert waits.slept == [3]


@pytest.mark.parametrize(
    "body",
    [
        {
            "detail": [
                {"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}
            ]
        },
        {"message": {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}},
        [{"error": {"code": 400, "message": "temperature is not supported"}}],
        "temperature is not supported",
    ],
    ids=["fastapi", "mistral", "list", "text"],
)
def test_refused_temperature_is_left_out_in_whatever_shape_it_is_told(body: object) -> None:
    with model_api(raw(body, 422), served.says("42")) as api:
        (found,) = ask(CHAT, api, temperature=0.2)
    assert isinstance(found, Response), repr(found)


def test_parameter_that_is_named_as_a_better_one_is_not_left_out() -> None:
    error = {
        "message": "Unknown parameter: 'top_logprobs'. Did you mean 'top_p'?",
        "param": "top_logprobs",
        "code": "unknown_parameter",
    }
    found, asked = failure(CHAT, raw({"error": error}, 400), extra_body={"top_logprobs": 3, "top_p": 0.5})
    assert (found.kind, asked) == ("request", 1)


def test_parameters_refused_one_after_the_other_are_all_left_out(waits: FakeClock) -> None:
    names = ("temperature", "top_p", "max_completion_tokens", "max_tokens")
    refusals = [raw({"error": {"message": f"'{name}' is not supported"}}, 422) for name in names]
    with model_api(*refusals, served.says("42")) as api:
        (found,) = ask(
            CHAT,
            api,
            waits=waits,
            temperature=0.2,
            max_output_tokens=9,
            max_tokens_param="max_completion_tokens",
            extra_body={"top_p": 0.5},
            max_retries=0,
        )
        last = api.questions[-1].body
    assert isinstance(found, Response), repr(found)
    assert (found.requests, waits.slept) == (5, [])
    assert not set(names) & set(last)


def test_many_questions_at_once_learn_the_same_and_all_get_their_answers() -> None:
    warned: list[str] = []

    async def main(url: str) -> list[Response]:
        target = CHAT.target(url, max_output_tokens=9, max_tokens_param="max_tokens")
        provider = open_provider(target, context(warned=warned))
        try:
            return await asyncio.gather(*(provider.ask(QUESTION) for _ in range(20)))
        finally:
            await provider.close()

    with model_api(served.rejects("max_tokens", new_name="max_completion_tokens")) as api:
        found = asyncio.run(main(api.url))
        assert sum(each.requests for each in found) == len(api.questions)
    assert {each.answer for each in found} == {served.ANSWER}
    assert set(warned) == {"model: the model does not support 'max_tokens'; sending 'max_completion_tokens' instead"}


# FakeClock


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Wed, 02 Jan 2030 03:04:15 GMT", 10),
        ("Wednesday, 02-Jan-30 03:04:15 GMT", 10),
        ("Wed, 02 Jan 2030 05:04:15 +0200", 10),
        ("Tue, 01 Jan 2030 00:00:00 GMT", 0),
        ("Wed Jan  2 03:04:15 2030", 10),
        ("Wed, 02 Jan 2030 03:04:15 -0000", 10),
    ],
)
def test_dates_of_every_form_that_http_knows_are_understood(date: str, seconds: float) -> None:
    """RFC 9110, 5.6.7: a recipient MUST accept all three formats."""
    assert retry_hint_s({"retry-after": date}, NOW) == seconds


@pytest.mark.parametrize("value", ["1_0", "inf", "nan", "-1", "0x10", "7, 7", "7s", "Wed,", "\u0663"])
def test_wait_that_is_junk_is_no_wait(value: str) -> None:
    assert retry_hint_s({"retry-after": value}, NOW) is None


@pytest.mark.parametrize(("delay", "waited"), [("0.5s", 0.5), ("60s", 60), ("-1s", 1), ("37", 1), ("", 1)])
def test_wait_in_geminis_details_is_kept_when_it_is_one(delay: str, waited: float, waits: FakeClock) -> None:
    error = {"error": {"code": 429, "message": "x", "details": [None, {"retryDelay": 5}, {"retryDelay": delay}]}}
    with model_api(raw(error, 429), served.says()) as api:
        ask(GEMINI, api, waits=waits)
    assert waits.slept == [waited]


def test_longest_wait_of_nothing_repeats_at_once_unless_the_server_asks_for_a_wait(waits: FakeClock) -> None:
    failure(CHAT, served.fails(429, retry_after_s=1), waits=waits, retry_max_delay_ms=0)
    assert waits.slept == []
    failure(CHAT, served.fails(503), waits=waits, retry_max_delay_ms=0)
    assert waits.slept == [0, 0, 0]


def test_enormous_backoff_stays_below_the_cap(waits: FakeClock) -> None:
    failure(CHAT, served.fails(503), waits=waits, max_retries=6, retry_backoff_factor=1e300)
    assert waits.slept == [1, 60, 60, 60, 60, 60]


def test_question_that_runs_out_of_time_between_retries_says_what_the_server_said() -> None:
    """Who reads `no answer` looks for a hanging server, not for a limit."""

    async def main(url: str) -> str:
        no_time = context(environment=replace(FakeClock().environment(), sleep=asyncio.sleep))
        provider = open_provider(CHAT.target(url), no_time)
        try:
            await provider.ask(Request("one", "", "", QUESTION.chat, timeout_s=0.2, cwd=Path("/")))
        except ProviderError as error:
            return error.detail
        finally:
            await provider.close()
        return ""

    with model_api(served.fails(429, "slow down", retry_after_s=30)) as api:
        assert "slow down" in asyncio.run(main(api.url))


def test_question_after_a_cancelled_one_gets_its_own_answer() -> None:
    async def main(url: str) -> list[str]:
        provider = open_provider(CHAT.target(url), context())
        try:
            for _ in range(3):
                running = asyncio.create_task(provider.ask(QUESTION))
                await asyncio.sleep(0.1)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            return [(await provider.ask(QUESTION)).answer for _ in range(2)]
        finally:
            await provider.close()

    slow = served.after(0.3, served.says("late"))
    with model_api(slow, slow, slow, served.says("first"), served.says("second")) as api:
        assert asyncio.run(main(api.url)) == ["first", "second"]


# Settings


def test_address_in_a_target_wins_over_the_environment() -> None:
    assert azure_address({}, base_url="https://mine.example").startswith("https://mine.example/")


def test_endpoint_that_chooses_v1_wins_over_a_version_in_the_environment() -> None:
    found = azure_address({"AZURE_OPENAI_API_VERSION": "2024-10-21"}, endpoint="https://r.openai.azure.com/openai/v1/")
    assert found == "https://r.openai.azure.com/openai/v1/chat/completions"


DATED = "/openai/deployments/d/chat/completions?api-version=2024-12-01-preview"


@pytest.mark.parametrize(
    ("endpoint", "root"),
    [
        ("r", "https://r.openai.azure.com"),
        ("r.openai.azure.com", "https://r.openai.azure.com"),
        ("HTTPS://r.openai.azure.com/", "https://r.openai.azure.com"),
        ("https://r.services.ai.azure.com:8443/openai//", "https://r.services.ai.azure.com:8443"),
        (
            "https://r.openai.azure.com/openai/deployments/x/chat/completions?api-version=1",
            "https://r.openai.azure.com",
        ),
    ],
)
def test_endpoint_may_be_written_as_people_write_and_paste_it(endpoint: str, root: str) -> None:
    found = azure_address({}, endpoint=endpoint)
    assert found[:8].lower() + found[8:] == root + DATED


def test_deployment_with_odd_characters_is_one_step_of_the_path() -> None:
    assert "/deployments/gpt%204%2F%C3%B6%3Afree/chat" in azure_address({}, deployment="gpt 4/\u00f6:free")


def test_key_in_a_header_is_the_only_one_that_goes_out() -> None:
    """Anthropic obeys x-api-key when it gets both; anyone else would learn a key that is not theirs."""
    environ = {"ANTHROPIC_API_KEY": KEY}
    with model_api() as api:
        target = resolved(
            environ,
            provider="anthropic",
            model="claude-haiku-4-5",
            base_url=api.url,
            headers={"Authorization": "Bearer another-key"},
        )
        asyncio.run(_ask(target))
        (asked,) = api.requests
    assert asked.headers["authorization"] == "Bearer another-key"
    assert KEY not in str(asked.headers)


async def _ask(target: Target) -> None:
    provider = open_provider(target, context())
    try:
        await provider.ask(QUESTION)
    except ProviderError:
        pass
    finally:
        await provider.close()


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "two words", "a:b", ""])
def test_header_that_no_target_can_set_is_told_before_anything_is_asked(name: str) -> None:
    with pytest.raises(CannotGoOn, match="this header cannot be set"):
        resolved({}, provider="gemini", api_key=KEY, headers={name: "3"})


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_password_in_an_address_is_not_told(scheme: str) -> None:
    (found,) = ask(CHAT, f"{scheme}://user:canary-password@127.0.0.1:9", max_retries=0)
    assert isinstance(found, ProviderError)
    assert "canary-password" not in found.detail


def test_reference_that_leads_to_another_one_is_told_inside_lists_too() -> None:
    with pytest.raises(CannotGoOn, match=r"invalid retry_status_codes.*: the value is an environment reference itself"):
        resolved({"CODE": "${{ OTHER }}"}, provider="gemini", api_key=KEY, retry_status_codes=["${{ CODE }}"])


def test_unfit_value_of_a_variable_is_told_in_words_of_the_document() -> None:
    with pytest.raises(CannotGoOn) as caught:
        resolved({"RETRIES": "many"}, provider="gemini", api_key=KEY, max_retries="${{ RETRIES }}")
    assert "max_retries" in str(caught.value)
    assert "constrained" not in str(caught.value)
    assert "String should match pattern" not in str(caught.value)


def test_scheme_in_capitals_is_trusted_like_any_other() -> None:
    def trusted(url: str) -> bool:
        transport = Transport(url, ca_bundle=None, environment=FakeClock().environment())
        context = transport._ssl_context(None)  # noqa: SLF001  # nothing else shows it
        return context is not None and bool(context.get_ca_certs())

    assert trusted("https://example.com")
    assert trusted("HTTPS://example.com")


# Conversations and settings of the vendors

SYSTEM, USER, ASSISTANT = (ChatMessage(role, role) for role in ("system", "user", "assistant"))


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize(
    "chats",
    [
        [(SYSTEM,)],
        [(ChatMessage("system", " \n"), USER), (ChatMessage("user", "\ud800 \x00 \U0001f600"),)],
        [(USER, SYSTEM, USER, USER), (ASSISTANT, ASSISTANT, USER), (USER, ASSISTANT)],
        [(ChatMessage("user", " "), ASSISTANT, ChatMessage("assistant", ""))],
    ],
    ids=["guidelines", "odd-text", "odd-order", "empty-turns"],
)
def test_conversation_is_taken_whatever_its_turns(name: str, chats: list[tuple[ChatMessage, ...]]) -> None:
    for chat in chats:
        body = body_of(KINDS[name], *chat)
        assert body.get("messages") or body.get("contents") or body.get("input"), "somebody has to say something"


@pytest.mark.parametrize("model", ["anthropic/claude-opus-4.7", "claude-sonnet-4.6"])
def test_model_that_writes_its_revision_behind_a_dot_thinks_as_it_likes(model: str) -> None:
    body = body_of(ANTHROPIC, model=model, thinking_budget=4_000)
    assert body["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("claude-3-7-sonnet-20250219", "enabled"),
        ("claude-sonnet-4@20250514", "enabled"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "enabled"),
        ("anthropic.claude-opus-4-6-v1:0", "adaptive"),
        ("claude-opus-10", "adaptive"),
    ],
)
def test_model_of_any_house_thinks_in_the_way_of_its_generation(model: str, kind: str) -> None:
    body = body_of(ANTHROPIC, model=model, thinking_budget=1, max_output_tokens=5)
    assert body["thinking"]["type"] == kind
    assert body["max_tokens"] > body["thinking"].get("budget_tokens", 0)


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-6"])
def test_budget_of_thoughts_takes_nothing_from_the_answer(model: str) -> None:
    """Thoughts count against max_tokens in either form."""
    body = body_of(ANTHROPIC, model=model, thinking_budget=30_000, max_output_tokens=500)
    assert body["max_tokens"] >= 30_500


# Secrets

SECRET = "sk-canary/0123+456789=abcdef"  # the characters that codings differ in
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: openai, base_url: "${{ API_URL }}", api_key: "${{ API_KEY }}", model: m,
     retryInitialDelayMs: 1, maxRetries: 1}
"""
CASE = """\
  - id: {}
    expected_outcome: x
    input_messages: [{{role: user, content: x}}]
    expected_messages: []
    evaluators: [{{name: a, type: contains, value: x}}]
"""


def evaluate(repository: Path, *steps: Step, cases: str = "a") -> tuple[CommandResult, str]:
    """Run the command line against a server; return how it ended and all it wrote and printed."""
    evals = "".join(map(CASE.format, cases))
    write(repository, {"targets.yaml": TARGETS, "q.test.yaml": f"$schema: agentv-eval-v2\nevalcases:\n{evals}"})
    with model_api(*steps) as api:
        environ = {"API_URL": f"{api.url}/v1", "API_KEY": SECRET}
        flags = ("--out", "r.jsonl", "--verbose", "--include-trace")
        done = run_process("eval", "q.test.yaml", *flags, cwd=repository, env=environ)
    written = "".join(path.read_text("utf-8") for path in repository.rglob("*") if path.is_file())
    return done, written + done.out + done.err


def test_key_in_the_reason_to_stop_is_masked(repository: Path) -> None:
    done, seen = evaluate(repository, raw(completion({"content": "x"}, f"stop {SECRET}")))
    assert done.code == 0
    assert SECRET not in seen


def test_key_anywhere_else_in_an_answer_is_masked(repository: Path) -> None:
    call = {"function": {"name": SECRET, "arguments": json.dumps({SECRET: [SECRET]})}}
    said = {**completion({"content": f"x {SECRET} {base64.b64encode(SECRET.encode()).decode()}", "tool_calls": [call]})}
    done, seen = evaluate(repository, raw({**said, "model": SECRET}))
    assert done.code == 0
    assert SECRET not in seen
    assert base64.b64encode(SECRET.encode()).decode().rstrip("=") not in seen


@pytest.mark.parametrize(
    "written",
    [quote(SECRET), quote(SECRET, safe="").replace("%2F", "%2f"), SECRET.replace("/", "\\/")],
    ids=["slash-kept", "small-hexadecimals", "slash-escaped"],
)
def test_key_is_masked_in_every_spelling_of_its_codings(written: str) -> None:
    assert Redactor([SECRET]).text(f"https://elsewhere/?key={written}") == "https://elsewhere/?key=***"


def test_key_in_a_refusal_or_its_headers_is_masked(repository: Path) -> None:
    done, seen = evaluate(repository, raw({"error": f"bad key {SECRET}"}, 500, x_request_id=SECRET))
    assert done.code == 4
    assert "retry 1 of 1" in done.err
    assert SECRET not in seen


def test_absurd_counts_of_tokens_do_not_end_the_run(repository: Path) -> None:
    body = json.dumps(completion({"content": "x"}))[:-1] + ', "usage": {"prompt_tokens": ' + "9" * 4_300 + "}}"
    done, _ = evaluate(repository, raw(body), cases="ab")
    assert done.code == 0, done.err[-300:]
