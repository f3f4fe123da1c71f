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

from tests.external.sdk_requests import KEY, SDKS, client, sdk
from tests.servers import model_api as served
from tests.servers.model_api import ANSWER, USAGE, Step, model_api

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


def of_chat(completion: Any) -> Parsed:
    (choice,) = completion.choices
    message = choice.message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    usage = completion.usage
    assert usage.total_tokens == USAGE.total
    cached, reasoning = usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens
    return Parsed(
        text=message.content or "",
        stop=choice.finish_reason,
        thought=getattr(message, "reasoning_content", None) or "",
        refusal=message.refusal or "",
        call=calls[0] if calls else None,
        counted=(usage.prompt_tokens, cached, usage.completion_tokens, reasoning),
        model=completion.model,
    )


def of_responses(response: Any) -> Parsed:
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


def of_anthropic(message: Any) -> Parsed:
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


def of_gemini(response: Any) -> Parsed:
    if not response.candidates:
        return Parsed("", response.prompt_feedback.block_reason.name, counted=None, model=response.model_version)
    (candidate,) = response.candidates
    parts = candidate.content.parts if candidate.content else []
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    usage = response.usage_metadata
    assert usage.total_token_count == USAGE.total
    output = usage.candidates_token_count + usage.thoughts_token_count
    return Parsed(
        text="".join(part.text or "" for part in parts if not part.thought),
        stop=candidate.finish_reason.name,
        thought="".join(part.text for part in parts if part.thought),
        call=calls[0] if calls else None,
        counted=(usage.prompt_token_count, usage.cached_content_token_count, output, usage.thoughts_token_count),
        model=response.model_version,
    )


@dataclass(frozen=True, slots=True)
class Peer:
    """An SDK in front of one protocol."""

    name: str
    read: Callable[[Any], Parsed]
    tool: Any
    """How a tool is declared."""
    module: str
    end: str
    """The stop reason of a complete answer."""
    length: str

    @contextmanager
    def asking(self, *steps: Step, key: str = KEY) -> Iterator[Ask]:
        with model_api(*steps, requires_key=key) as api, client(self.name, api.url) as asking:
            yield lambda **more: self.read(SDKS[self.name][1](asking, **more))

    def error(self, name: str) -> type[Exception]:
        """Return an exception of the SDK, by the name that OpenAI's and Anthropic's share."""
        if self.module == "google.genai.errors":
            name = "ServerError" if name == "InternalServerError" else "ClientError"
        found: type[Exception] = getattr(sdk(self.module), name)
        return found


CHAT = (of_chat, {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}, "openai", "stop", "length")
FUNCTION = {"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}
RESPONSES = (of_responses, FUNCTION, "openai", "completed", "max_output_tokens")
DECLARED = {"function_declarations": [{"name": "bash", "parameters_json_schema": SCHEMA}]}
PEERS = (
    Peer("openai-chat", *CHAT),
    Peer("openai-responses", *RESPONSES),
    Peer("azure-deployments", *CHAT),
    Peer("azure-v1", *CHAT),
    Peer("azure-v1-responses", *RESPONSES),
    Peer("anthropic", of_anthropic, {"name": "bash", "input_schema": SCHEMA}, "anthropic", "end_turn", "max_tokens"),
    Peer("gemini", of_gemini, DECLARED, "google.genai.errors", "STOP", "MAX_TOKENS"),
)
OPENAI_LIKE, ANTHROPIC, GEMINI = PEERS[:5], PEERS[5], PEERS[6]
all_peers = pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)


@all_peers
def test_answers(peer: Peer) -> None:
    text = "Grüße, 42 → 43\n\nZeile  zwei \n"
    steps = (served.says(text), served.truncates("half an"), served.reasons("42", "six times seven"))
    with peer.asking(*steps, served.calls_tool("echo 'a  b'")) as ask:
        assert ask() == Parsed(text, peer.end)
        assert ask() == Parsed("half an", peer.length)
        assert ask() == Parsed("42", peer.end, thought="six times seven")
        assert ask(tools=[peer.tool]).call == ("bash", {"command": "echo 'a  b'"})


@all_peers
def test_refused_and_filtered_answers(peer: Peer) -> None:
    refused, filtered = Parsed("", peer.end, refusal="no"), Parsed("", "content_filter")
    if peer is ANTHROPIC:
        refused, filtered = (Parsed(text, "refusal", refusal="mock refusal") for text in ("no", ""))
    elif peer is GEMINI:
        refused, filtered = Parsed("", "SAFETY"), Parsed("", "SAFETY", counted=None)
    with peer.asking(served.refuses("no"), served.filters()) as ask:
        assert [ask(), ask()] == [refused, filtered]


AZURE_FILTER = {"code": "content_filter", "param": "prompt"}
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
def test_errors_by_status(peer: Peer, status: int) -> None:
    step = served.garbage(status) if status == 502 else served.fails(status, "no luck")
    with peer.asking(step) as ask, pytest.raises(peer.error(ERRORS[status])) as caught:
        ask()
    error: Any = caught.value
    assert (error.code if peer is GEMINI else error.status_code) == status
    assert status == 502 or "no luck" in str(error)


@pytest.mark.parametrize(
    ("peer", "step", "error", "found"),
    [
        *((peer, served.lacks_quota(), "RateLimitError", {"code": "insufficient_quota"}) for peer in OPENAI_LIKE),
        (ANTHROPIC, served.lacks_quota(), "EnforcedSpendLimitReachedError", {"status_code": 429}),
        (GEMINI, served.lacks_quota(), "RateLimitError", {"status": "RESOURCE_EXHAUSTED"}),
        (ANTHROPIC, served.fails(529), "OverloadedError", {"status_code": 529, "request_id": "req_mock"}),
        *((peer, served.filters_prompt(), "BadRequestError", {"code": "invalid_prompt"}) for peer in OPENAI_LIKE[:2]),
        *((peer, served.filters_prompt(), "BadRequestError", AZURE_FILTER) for peer in OPENAI_LIKE[2:]),
        (ANTHROPIC, served.filters_prompt(), "BadRequestError", {}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_reasons_of_errors(peer: Peer, step: Step, error: str, found: Mapping[str, Any]) -> None:
    with peer.asking(step) as ask, pytest.raises(peer.error(error)) as caught:
        ask()
    raised: Any = caught.value
    assert {key: getattr(raised, key) for key in found} == found
    assert found != AZURE_FILTER or raised.body["innererror"]["code"] == "ResponsibleAIPolicyViolation"
