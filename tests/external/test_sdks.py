"""The official SDKs understand the double of model APIs, so that it speaks the real protocols.

Providers do not stream; the streams of the double are for the agents in tests/peers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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

pytestmark = pytest.mark.slow

COUNTED = (USAGE.input, USAGE.cached, USAGE.output, USAGE.reasoning)
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an SDK makes of an answer."""

    text: str = ANSWER
    stop: str | None = None
    thought: str = ""
    refusal: str = ""
    call: tuple[str, Any] | None = None
    counted: tuple[int, int, int, int] | None = COUNTED
    """Tokens: input, cached, output, reasoning."""
    model: str = "mock-model-2030-01-02"


Ask = Callable[..., Parsed]


def ask_chat(client: Any, *, tool: str | None = None, **more: Any) -> Parsed:
    if tool:
        more["tools"] = [{"type": "function", "function": {"name": tool, "parameters": SCHEMA}}]
    completion = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}], **more)
    # The SDK does not look at errors behind status 200.
    assert completion.choices is not None, completion.error["message"]
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


def chat_counted(usage: Any) -> tuple[int, int, int, int]:
    assert usage.total_tokens == USAGE.total
    cached, reasoning = usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens
    return usage.prompt_tokens, cached, usage.completion_tokens, reasoning


def ask_responses(client: Any, *, tool: str | None = None, **more: Any) -> Parsed:
    if tool:
        more["tools"] = [{"type": "function", "name": tool, "parameters": SCHEMA, "strict": False}]
    response = client.responses.create(model=MODEL, input="hi", **more)
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


def ask_anthropic(client: Any, *, tool: str | None = None, **more: Any) -> Parsed:
    if tool:
        more["tools"] = [{"name": tool, "input_schema": SCHEMA}]
    asked = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **more}
    message = client.messages.create(**asked)
    blocks, usage = message.content, message.usage
    calls = [(block.name, block.input) for block in blocks if block.type == "tool_use"]
    cached, thinking = usage.cache_read_input_tokens, usage.output_tokens_details.thinking_tokens
    given = usage.input_tokens + cached + usage.cache_creation_input_tokens
    return Parsed(
        text="".join(block.text for block in blocks if block.type == "text"),
        stop=message.stop_reason,
        thought="".join(block.thinking for block in blocks if block.type == "thinking"),
        refusal=message.stop_details.explanation if message.stop_details else "",
        call=calls[0] if calls else None,
        counted=(given, cached, usage.output_tokens, thinking),
        model=message.model,
    )


def ask_gemini(client: Any, *, tool: str | None = None, **config: Any) -> Parsed:
    if tool:
        config["tools"] = [{"function_declarations": [{"name": tool, "parameters_json_schema": SCHEMA}]}]
    response = client.models.generate_content(model=MODEL, contents="hi", config=config)
    if not response.candidates:
        return Parsed("", response.prompt_feedback.block_reason.name, counted=None, model=response.model_version)
    (candidate,) = response.candidates
    parts = candidate.content.parts if candidate.content else []
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    return Parsed(
        text="".join(part.text or "" for part in parts if not part.thought),
        stop=candidate.finish_reason.name,
        thought="".join(part.text for part in parts if part.thought),
        call=calls[0] if calls else None,
        counted=gemini_counted(response.usage_metadata),
        model=response.model_version,
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
    """The stop reason of a complete answer."""
    length: str

    @contextmanager
    def asking(self, *steps: Step, key: str = KEY) -> Iterator[Ask]:
        with model_api(*steps, requires_key=key) as api, self.client(api.url) as client:
            yield lambda **more: self.ask(client, **more)

    def error(self, name: str) -> type[Exception]:
        """Return an exception of the SDK, by the name that OpenAI's and Anthropic's share."""
        module = self.module
        if module == "google.genai":
            module, name = "google.genai.errors", "ServerError" if name == "InternalServerError" else "ClientError"
        found: type[Exception] = getattr(sdk(module, self.module.replace(".", "-")), name)
        return found


PEERS: Mapping[str, Peer] = {
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

all_peers = pytest.mark.parametrize("name", PEERS)


@all_peers
def test_answers(name: str) -> None:
    peer = PEERS[name]
    text = "Grüße, 42 → 43\n\nZeile  zwei \n"
    with peer.asking(says(text), truncates("half an"), reasons("42", "six times seven")) as ask:
        assert ask() == Parsed(text, peer.end)
        assert ask() == Parsed("half an", peer.length)
        assert ask() == Parsed("42", peer.end, thought="six times seven")
    with peer.asking(calls_tool("echo 'a  b'")) as ask:
        parsed = ask(tool="bash")
    assert (parsed.call, parsed.counted) == (("bash", {"command": "echo 'a  b'"}), COUNTED)


@all_peers
def test_refused_and_filtered_answers(name: str) -> None:
    peer = PEERS[name]
    refused, filtered = Parsed("", peer.end, refusal="no"), Parsed("", "content_filter")
    if name == "anthropic":
        refused, filtered = (Parsed(text, "refusal", refusal="mock refusal") for text in ("no", ""))
    elif name == "gemini":
        refused, filtered = Parsed("", "SAFETY"), Parsed("", "SAFETY", counted=None)
    with peer.asking(refuses("no"), filters()) as ask:
        assert ask() == refused
        assert ask() == filtered


@all_peers
def test_filtered_prompts(name: str) -> None:
    peer = PEERS[name]
    with peer.asking(filters_prompt()) as ask:
        if name == "gemini":
            assert ask().stop == "PROHIBITED_CONTENT"
            return
        with pytest.raises(peer.error("BadRequestError")) as caught:
            ask()
    error: Any = caught.value
    if name.startswith("azure"):
        assert (error.code, error.param) == ("content_filter", "prompt")
        assert error.body["innererror"]["code"] == "ResponsibleAIPolicyViolation"
    elif name.startswith("openai"):
        assert error.code == "invalid_prompt"


ERRORS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
    502: "InternalServerError",
}


@pytest.mark.parametrize("status", ERRORS)
@all_peers
def test_errors_by_status(name: str, status: int) -> None:
    peer = PEERS[name]
    step = garbage(status) if status == 502 else fails(status, "no luck")
    with peer.asking(step) as ask, pytest.raises(peer.error(ERRORS[status])) as caught:
        ask()
    error: Any = caught.value
    assert (error.status_code if hasattr(error, "status_code") else error.code) == status
    assert status == 502 or "no luck" in str(error)


@all_peers
def test_wrong_key(name: str) -> None:
    peer = PEERS[name]
    # Google answers a wrong key with 400.
    with peer.asking(key="another") as ask, pytest.raises(peer.error("AuthenticationError"), match=r"40[01]|invalid"):
        ask()


@pytest.mark.parametrize(
    ("name", "step", "error", "found"),
    [
        *((name, lacks_quota(), "RateLimitError", {"code": "insufficient_quota"}) for name in OPENAI_LIKE),
        ("anthropic", lacks_quota(), "EnforcedSpendLimitReachedError", {"status_code": 429}),
        ("anthropic", fails(529), "OverloadedError", {"status_code": 529, "request_id": "req_mock"}),
        ("gemini", lacks_quota(), "RateLimitError", {"status": "RESOURCE_EXHAUSTED"}),
    ],
)
def test_limits(name: str, step: Step, error: str, found: Mapping[str, Any]) -> None:
    peer = PEERS[name]
    with peer.asking(step) as ask, pytest.raises(peer.error(error)) as caught:
        ask()
    assert {key: getattr(caught.value, key) for key in found} == found


@all_peers
def test_rejected_parameters(name: str) -> None:
    peer = PEERS[name]
    rejected = "top_k" if name == "anthropic" else "temperature"
    given = {"extra_body": {"top_k": 3}} if name == "anthropic" else {"temperature": 0.2}
    with peer.asking(rejects(rejected)) as ask:
        with pytest.raises(peer.error("BadRequestError"), match=rejected) as caught:
            ask(**given)
        assert ask().text == ANSWER
    error: Any = caught.value
    if name in OPENAI_LIKE:
        assert (error.param, error.code) == ("temperature", "unsupported_value" if name in CHATS else None)


@all_peers
def test_dropped_connections(name: str) -> None:
    peer = PEERS[name]
    expected = peer.error("APIConnectionError") if peer.module == "openai" else Exception
    with peer.asking(cuts()) as ask, pytest.raises(expected, match=r"Connection error|peer closed connection"):
        ask()


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.module == "openai"])
def test_errors_behind_status_200(name: str) -> None:
    said = "Provider returned error" if name in CHATS else "code='server_error'"
    with PEERS[name].asking(failed_inside()) as ask, pytest.raises(AssertionError, match=said):
        ask()


BEARER = {"authorization": f"Bearer {KEY}"}
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
ANTHROPIC_BODY = {"model": MODEL, "max_tokens": 100, "system": "S", "messages": [{"role": "user", "content": "hi"}]}
GEMINI_BODY = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "systemInstruction": {"role": "user", "parts": [{"text": "S"}]},
    "generationConfig": {"temperature": 0.2, "maxOutputTokens": 100},
}
DEPLOYMENT = f"/openai/deployments/{MODEL}/chat/completions?api-version={sdk_requests.AZURE_VERSION}"


@pytest.mark.parametrize(
    ("recorded", "path", "body", "headers"),
    [
        (sdk_requests.openai_chat, "/v1/chat/completions", CHAT_BODY, BEARER),
        (sdk_requests.openai_responses, "/v1/responses", RESPONSES_BODY, BEARER),
        (sdk_requests.azure_deployments, DEPLOYMENT, CHAT_BODY, {"api-key": KEY}),
        (sdk_requests.azure_v1_chat, "/openai/v1/chat/completions", CHAT_BODY, BEARER),
        (sdk_requests.azure_v1_responses, "/openai/v1/responses", RESPONSES_BODY, BEARER),
        (
            sdk_requests.anthropic_messages,
            "/v1/messages",
            ANTHROPIC_BODY,
            {**BEARER, "anthropic-version": "2026-10-21"},
        ),
        (sdk_requests.gemini, f"/v1/models/{MODEL}:generateContent", GEMINI_BODY, {"x-goog-api-key": KEY}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_requests(recorded: Callable[[], SdkRequest], path: str, body: Any, headers: Mapping[str, str]) -> None:
    assert recorded() == SdkRequest("POST", path, {"content-type": "application/json", **headers}, body)


def test_the_double_knows_all_parameters() -> None:
    chat = sdk("openai.types.chat.completion_create_params", "openai").CompletionCreateParamsBase
    assert {*chat.__annotations__, "stream"} <= chat_dialect.PARAMETERS
    responses = sdk("openai.types.responses.response_create_params", "openai").ResponseCreateParamsBase
    assert {*responses.__annotations__, "stream"} <= responses_dialect.PARAMETERS
    messages = sdk("anthropic.types.beta.message_create_params", "anthropic").MessageCreateParamsBase
    # The SDK sends `betas` as a header.
    assert {*messages.__annotations__, "stream"} - {"betas"} <= anthropic_dialect.PARAMETERS
    generation = sdk("google.genai.types", "google-genai").GenerationConfig
    assert {field.alias or name for name, field in generation.model_fields.items()} <= gemini_dialect.GENERATION
