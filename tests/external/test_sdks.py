"""The official SDKs understand the loopback server of model APIs, so that it speaks the real protocols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.external import sdk_requests
from tests.external.sdk_requests import (
    KEY,
    MODEL,
    SdkRequest,
    anthropic_client,
    azure_client,
    azure_v1_client,
    gemini_client,
    openai_client,
    sdk,
)
from tests.servers.model_api import (
    ANSWER,
    USAGE,
    Step,
    calls_tool,
    cuts,
    failed_inside,
    fails,
    filters,
    filters_prompt,
    garbage,
    lacks_quota,
    model_api,
    reasons,
    refuses,
    rejects,
    says,
    truncates,
)
from tests.servers.model_api import anthropic_messages as anthropic_dialect
from tests.servers.model_api import gemini as gemini_dialect
from tests.servers.model_api import openai_chat as chat_dialect
from tests.servers.model_api import openai_responses as responses_dialect

COUNTED = (USAGE.input, USAGE.cached, USAGE.output, USAGE.reasoning)
SERVED = "mock-model-2030-01-02"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an SDK made of an answer."""

    text: str = ANSWER
    stop: str | None = None
    """In the vendor's word."""
    thought: str = ""
    refusal: str = ""
    call: tuple[str, Any] | None = None
    counted: tuple[int, int, int, int] | None = COUNTED
    """Tokens: input, cached, output, reasoning."""
    model: str = SERVED


Ask = Callable[..., Parsed]


def ask_chat(client: Any, *, stream: bool = False, tool: str | None = None, **more: Any) -> Parsed:
    if tool:
        more["tools"] = [{"type": "function", "function": {"name": tool, "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "hi"}]
    if not stream:
        return chat_parsed(client.chat.completions.create(model=MODEL, messages=messages, **more))
    more["stream_options"] = {"include_usage": True}
    with client.chat.completions.create(model=MODEL, messages=messages, stream=True, **more) as chunks:
        return chat_joined(chunks)


def chat_parsed(completion: Any) -> Parsed:
    (choice,) = completion.choices
    message = choice.message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return Parsed(
        text=message.content or "",
        stop=choice.finish_reason,
        thought=getattr(message, "reasoning_content", None) or "",
        refusal=message.refusal or "",
        call=calls[0] if calls else None,
        counted=chat_counted(completion.usage),
        model=completion.model,
    )


def chat_joined(chunks: Any) -> Parsed:
    joined = dict.fromkeys(("content", "reasoning_content", "refusal", "name", "arguments"), "")
    parsed = Parsed(counted=None)
    for chunk in chunks:
        parsed = replace(parsed, model=chunk.model or parsed.model)
        if chunk.usage:
            parsed = replace(parsed, counted=chat_counted(chunk.usage))
        for choice in chunk.choices:
            parsed = replace(parsed, stop=choice.finish_reason or parsed.stop)
            for key in ("content", "reasoning_content", "refusal"):
                joined[key] += getattr(choice.delta, key, None) or ""
            for call in choice.delta.tool_calls or []:
                joined["name"] += call.function.name or ""
                joined["arguments"] += call.function.arguments or ""
    call = (joined["name"], json.loads(joined["arguments"])) if joined["name"] else None
    thought, refusal = joined["reasoning_content"], joined["refusal"]
    return replace(parsed, text=joined["content"], thought=thought, refusal=refusal, call=call)


def chat_counted(usage: Any) -> tuple[int, int, int, int]:
    assert usage.total_tokens == USAGE.total
    cached, reasoning = usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens
    return usage.prompt_tokens, cached, usage.completion_tokens, reasoning


def ask_responses(client: Any, *, stream: bool = False, tool: str | None = None, **more: Any) -> Parsed:
    if tool:
        more["tools"] = [{"type": "function", "name": tool, "parameters": SCHEMA, "strict": False}]
    if not stream:
        return responses_parsed(client.responses.create(model=MODEL, input="hi", **more))
    # The SDK's own accumulation, so that events out of order would be noticed.
    with client.responses.stream(model=MODEL, input="hi", **more) as events:
        said, response = "", None
        for event in events:
            said += event.delta if event.type == "response.output_text.delta" else ""
            response = getattr(event, "response", response)
    parsed = responses_parsed(response)
    assert said == parsed.text
    return parsed


def responses_parsed(response: Any) -> Parsed:
    assert response.error is None, response.error
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    summaries = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    usage = response.usage
    assert usage.total_tokens == USAGE.total
    cached, reasoning = usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens
    return Parsed(
        text=response.output_text,
        stop=response.incomplete_details.reason if response.incomplete_details else response.status,
        thought="".join(summaries),
        refusal="".join(part.refusal for part in parts if part.type == "refusal"),
        call=calls[0] if calls else None,
        counted=(usage.input_tokens, cached, usage.output_tokens, reasoning),
        model=response.model,
    )


def ask_anthropic(client: Any, *, stream: bool = False, tool: str | None = None, **more: Any) -> Parsed:
    if tool:
        more["tools"] = [{"name": tool, "input_schema": SCHEMA}]
    asked = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **more}
    if not stream:
        return anthropic_parsed(client.messages.create(**asked))
    with client.messages.stream(**asked) as events:
        return anthropic_parsed(events.get_final_message())


def anthropic_parsed(message: Any) -> Parsed:
    blocks, usage = message.content, message.usage
    calls = [(block.name, block.input) for block in blocks if block.type == "tool_use"]
    cached = usage.cache_read_input_tokens
    return Parsed(
        text="".join(block.text for block in blocks if block.type == "text"),
        stop=message.stop_reason,
        thought="".join(block.thinking for block in blocks if block.type == "thinking"),
        refusal=message.stop_details.explanation if message.stop_details else "",
        call=calls[0] if calls else None,
        counted=(
            usage.input_tokens + cached + usage.cache_creation_input_tokens,
            cached,
            usage.output_tokens,
            usage.output_tokens_details.thinking_tokens,
        ),
        model=message.model,
    )


def ask_gemini(client: Any, *, stream: bool = False, tool: str | None = None, **config: Any) -> Parsed:
    if tool:
        config["tools"] = [{"function_declarations": [{"name": tool, "parameters_json_schema": SCHEMA}]}]
    asked = {"model": MODEL, "contents": "hi", "config": config}
    if not stream:
        return gemini_parsed([client.models.generate_content(**asked)])
    return gemini_parsed(list(client.models.generate_content_stream(**asked)))


def gemini_parsed(chunks: list[Any]) -> Parsed:
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or []]
    parts = [part for candidate in candidates if candidate.content for part in candidate.content.parts]
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    last = chunks[-1]
    stop = candidates[-1].finish_reason if candidates else last.prompt_feedback.block_reason
    return Parsed(
        text="".join(part.text or "" for part in parts if not part.thought),
        stop=stop.name,
        thought="".join(part.text for part in parts if part.thought),
        call=calls[0] if calls else None,
        counted=gemini_counted(last.usage_metadata) if candidates else None,
        model=last.model_version,
    )


def gemini_counted(usage: Any) -> tuple[int, int, int, int]:
    assert usage.total_token_count == USAGE.total
    output = usage.candidates_token_count + usage.thoughts_token_count
    return usage.prompt_token_count, usage.cached_content_token_count, output, usage.thoughts_token_count


@dataclass(frozen=True, slots=True)
class Peer:
    """An SDK in front of one protocol."""

    client: Callable[[str], Any]
    ask: Ask
    module: str
    end: str
    """The word for an answer that is complete."""
    length: str

    @contextmanager
    def asking(self, *steps: Step, key: str = KEY) -> Iterator[Ask]:
        with model_api(*steps, requires_key=key) as api, self.client(api.url) as client:
            yield lambda **more: self.ask(client, **more)

    def error(self, name: str) -> type[Exception]:
        """Return an exception of the SDK, by the name that OpenAI's and Anthropic's share."""
        if self.module == "google.genai":
            name = "ServerError" if name == "InternalServerError" else "ClientError"
            found: type[Exception] = getattr(sdk("google.genai.errors", "google-genai"), name)
        else:
            found = getattr(sdk(self.module, self.module), name)
        return found


PEERS = {
    "openai chat": Peer(openai_client, ask_chat, "openai", "stop", "length"),
    "openai responses": Peer(openai_client, ask_responses, "openai", "completed", "max_output_tokens"),
    "azure deployments": Peer(azure_client, ask_chat, "openai", "stop", "length"),
    "azure v1 chat": Peer(azure_v1_client, ask_chat, "openai", "stop", "length"),
    "azure v1 responses": Peer(azure_v1_client, ask_responses, "openai", "completed", "max_output_tokens"),
    "anthropic": Peer(anthropic_client, ask_anthropic, "anthropic", "end_turn", "max_tokens"),
    "gemini": Peer(gemini_client, ask_gemini, "google.genai", "STOP", "MAX_TOKENS"),
}
OPENAI_LIKE = [name for name, peer in PEERS.items() if peer.module == "openai"]
CHATS = [name for name, peer in PEERS.items() if peer.ask is ask_chat]
RESPONSES = [name for name, peer in PEERS.items() if peer.ask is ask_responses]

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
all_peers = pytest.mark.parametrize("name", PEERS)


def status_of(caught: pytest.ExceptionInfo[Exception]) -> int:
    error: Any = caught.value
    return int(error.status_code if hasattr(error, "status_code") else error.code)


@both_ways
@all_peers
def test_a_text_with_its_usage(name: str, *, stream: bool) -> None:
    peer = PEERS[name]
    with peer.asking(says("Grüße, 42 → 43\n\nZeile  zwei \n")) as ask:
        assert ask(stream=stream) == Parsed("Grüße, 42 → 43\n\nZeile  zwei \n", peer.end)


@both_ways
@all_peers
def test_a_text_cut_off_at_the_limit(name: str, *, stream: bool) -> None:
    peer = PEERS[name]
    with peer.asking(truncates("half an")) as ask:
        assert ask(stream=stream) == Parsed("half an", peer.length)


@both_ways
@all_peers
def test_thoughts_are_told_from_the_text(name: str, *, stream: bool) -> None:
    peer = PEERS[name]
    with peer.asking(reasons("42", "six times seven")) as ask:
        assert ask(stream=stream) == Parsed("42", peer.end, thought="six times seven")


@both_ways
@all_peers
def test_a_call_of_a_tool(name: str, *, stream: bool) -> None:
    with PEERS[name].asking(calls_tool("echo 'a  b'")) as ask:
        parsed = ask(stream=stream, tool="bash")
    assert parsed.call == ("bash", {"command": "echo 'a  b'"})
    assert parsed.counted == COUNTED


@both_ways
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, Parsed("", "stop", refusal="no")) for name in CHATS),
        *((name, Parsed("", "completed", refusal="no")) for name in RESPONSES),
        ("anthropic", Parsed("no", "refusal", refusal="mock refusal")),
        ("gemini", Parsed("", "SAFETY")),
    ],
)
def test_a_refusal(name: str, expected: Parsed, *, stream: bool) -> None:
    with PEERS[name].asking(refuses("no")) as ask:
        assert ask(stream=stream) == expected


@both_ways
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, Parsed("", "content_filter")) for name in [*CHATS, *RESPONSES]),
        ("anthropic", Parsed("", "refusal", refusal="mock refusal")),
        ("gemini", Parsed("", "SAFETY", counted=None)),
    ],
)
def test_an_answer_that_is_filtered(name: str, expected: Parsed, *, stream: bool) -> None:
    with PEERS[name].asking(filters()) as ask:
        assert ask(stream=stream) == expected


@both_ways
@pytest.mark.parametrize("name", [*OPENAI_LIKE, "anthropic"])
def test_a_prompt_that_is_filtered(name: str, *, stream: bool) -> None:
    peer = PEERS[name]
    with peer.asking(filters_prompt()) as ask, pytest.raises(peer.error("BadRequestError")) as caught:
        ask(stream=stream)
    error: Any = caught.value
    if name.startswith("azure"):
        assert (error.code, error.param) == ("content_filter", "prompt")
        assert error.body["innererror"]["code"] == "ResponsibleAIPolicyViolation"
    elif name.startswith("openai"):
        assert error.code == "invalid_prompt"


@both_ways
def test_a_prompt_that_gemini_filters_is_no_error_of_http(*, stream: bool) -> None:
    with PEERS["gemini"].asking(filters_prompt()) as ask:
        assert ask(stream=stream).stop == "PROHIBITED_CONTENT"


ERRORS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
}


@both_ways
@pytest.mark.parametrize("status", ERRORS)
@all_peers
def test_errors_are_typed_by_status(name: str, status: int, *, stream: bool) -> None:
    peer = PEERS[name]
    with peer.asking(fails(status, "no luck")) as ask, pytest.raises(peer.error(ERRORS[status])) as caught:
        ask(stream=stream)
    assert status_of(caught) == status
    assert "no luck" in str(caught.value)


def test_anthropic_has_an_error_of_its_own_for_overload() -> None:
    peer = PEERS["anthropic"]
    with peer.asking(fails(529)) as ask, pytest.raises(peer.error("OverloadedError")) as caught:
        ask()
    error: Any = caught.value
    assert (error.status_code, error.request_id) == (529, "req_mock")
    assert error.response.headers["x-should-retry"] == "true"


@all_peers
def test_a_wrong_key(name: str) -> None:
    peer = PEERS[name]
    with peer.asking(key="another") as ask, pytest.raises(peer.error("AuthenticationError")) as caught:
        ask()
    # Google answers a bad key with 400.
    assert status_of(caught) == (400 if name == "gemini" else 401)


@pytest.mark.parametrize("name", OPENAI_LIKE)
def test_openai_lacks_quota(name: str) -> None:
    peer = PEERS[name]
    with peer.asking(lacks_quota()) as ask, pytest.raises(peer.error("RateLimitError")) as caught:
        ask()
    error: Any = caught.value
    assert (error.type, error.code) == ("insufficient_quota", "insufficient_quota")


def test_anthropic_reached_its_spend_limit() -> None:
    peer = PEERS["anthropic"]
    with peer.asking(lacks_quota()) as ask, pytest.raises(peer.error("EnforcedSpendLimitReachedError")) as caught:
        ask()
    assert status_of(caught) == 429


def test_gemini_lacks_quota() -> None:
    peer = PEERS["gemini"]
    with peer.asking(lacks_quota()) as ask, pytest.raises(peer.error("RateLimitError")) as caught:
        ask()
    error: Any = caught.value
    assert error.status == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize("name", OPENAI_LIKE)
def test_openai_names_the_parameter_that_it_rejects(name: str) -> None:
    peer = PEERS[name]
    with peer.asking(rejects("temperature")) as ask:
        with pytest.raises(peer.error("BadRequestError")) as caught:
            ask(temperature=0.2)
        assert ask() == Parsed(ANSWER, peer.end)
    error: Any = caught.value
    assert (error.param, error.code) == ("temperature", "unsupported_value" if name in CHATS else None)


def test_anthropic_rejects_a_parameter() -> None:
    peer = PEERS["anthropic"]
    with peer.asking(rejects("top_k")) as ask:
        with pytest.raises(peer.error("BadRequestError"), match="top_k: Extra inputs are not permitted"):
            ask(extra_body={"top_k": 3})
        assert ask().text == ANSWER


def test_gemini_rejects_a_parameter() -> None:
    peer = PEERS["gemini"]
    with peer.asking(rejects("temperature")) as ask:
        with pytest.raises(peer.error("BadRequestError"), match=r'Unknown name "temperature"'):
            ask(temperature=0.2)
        assert ask().text == ANSWER


@both_ways
@all_peers
def test_a_connection_that_drops_in_the_middle(name: str, *, stream: bool) -> None:
    peer = PEERS[name]
    expected = peer.error("APIConnectionError") if peer.module == "openai" else Exception
    # Anthropic's SDK wraps it in answers but not in streams, Google's never does.
    with peer.asking(cuts()) as ask, pytest.raises(expected, match=r"Connection error|peer closed connection"):
        ask(stream=stream)


@both_ways
@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_that_failed_is_no_exception(name: str, *, stream: bool) -> None:
    with PEERS[name].asking(failed_inside()) as ask, pytest.raises(AssertionError, match="code='server_error'"):
        ask(stream=stream)


@pytest.mark.parametrize("name", [*CHATS, "anthropic", "gemini"])
def test_an_error_behind_status_200_is_seen_in_streams(name: str) -> None:
    peer = PEERS[name]
    expected = "InternalServerError" if name == "gemini" else "APIError"
    with peer.asking(failed_inside()) as ask, pytest.raises(peer.error(expected)) as caught:
        ask(stream=True)
    error: Any = caught.value
    if name == "anthropic":
        assert (error.status_code, error.body["error"]["type"]) == (200, "overloaded_error")


@pytest.mark.parametrize("name", CHATS)
def test_an_error_behind_status_200_reaches_the_caller_of_chat_completions(name: str) -> None:
    peer = PEERS[name]
    with model_api(failed_inside()) as api, peer.client(api.url) as client:
        completion = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
    assert completion.choices is None
    assert completion.error["message"] == "Provider returned error"


@both_ways
@all_peers
def test_a_page_of_a_proxy_is_typed_by_its_status(name: str, *, stream: bool) -> None:
    peer = PEERS[name]
    with peer.asking(garbage(502)) as ask, pytest.raises(peer.error("InternalServerError")) as caught:
        ask(stream=stream)
    assert status_of(caught) == 502


def request(path: str, body: dict[str, Any], **headers: str) -> SdkRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return SdkRequest("POST", path, {"content-type": "application/json", **named}, body)


CHAT_BODY = {
    "model": MODEL,
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}],
    "max_completion_tokens": 100,
}
RESPONSES_BODY = {
    "model": MODEL,
    "instructions": "S",
    "input": [{"role": "user", "content": "hi"}],
    "max_output_tokens": 100,
}
BEARER = f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (sdk_requests.openai_chat, request("/v1/chat/completions", CHAT_BODY, authorization=BEARER)),
        (sdk_requests.openai_responses, request("/v1/responses", RESPONSES_BODY, authorization=BEARER)),
        (
            sdk_requests.azure_deployments,
            request(
                f"/openai/deployments/{MODEL}/chat/completions?api-version={sdk_requests.AZURE_VERSION}",
                CHAT_BODY,
                api_key=KEY,
            ),
        ),
        (sdk_requests.azure_v1_chat, request("/openai/v1/chat/completions", CHAT_BODY, authorization=BEARER)),
        (sdk_requests.azure_v1_responses, request("/openai/v1/responses", RESPONSES_BODY, authorization=BEARER)),
        (
            sdk_requests.anthropic_messages,
            request(
                "/v1/messages",
                {
                    "model": MODEL,
                    "max_tokens": 100,
                    "system": "S",
                    "messages": [{"role": "user", "content": "hi"}],
                },
                authorization=BEARER,
                anthropic_version="2026-10-21",
            ),
        ),
        (
            sdk_requests.gemini,
            request(
                f"/v1/models/{MODEL}:generateContent",
                {
                    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                    "systemInstruction": {"role": "user", "parts": [{"text": "S"}]},
                    "generationConfig": {"temperature": 0.2, "maxOutputTokens": 100},
                },
                x_goog_api_key=KEY,
            ),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_an_sdk_asks(recorded: Callable[[], SdkRequest], expected: SdkRequest) -> None:
    assert recorded() == expected


def test_the_server_knows_the_parameters_of_the_sdks() -> None:
    chat = sdk("openai.types.chat.completion_create_params", "openai").CompletionCreateParamsBase
    assert {*chat.__annotations__, "stream"} <= chat_dialect.PARAMETERS
    responses = sdk("openai.types.responses.response_create_params", "openai").ResponseCreateParamsBase
    assert {*responses.__annotations__, "stream"} <= responses_dialect.PARAMETERS
    messages = sdk("anthropic.types.beta.message_create_params", "anthropic").MessageCreateParamsBase
    # The SDK sends `betas` as a header.
    assert {*messages.__annotations__, "stream"} - {"betas"} <= anthropic_dialect.PARAMETERS
    generation = sdk("google.genai.types", "google-genai").GenerationConfig
    named = {field.alias or name for name, field in generation.model_fields.items()}
    assert named <= gemini_dialect.GENERATION
