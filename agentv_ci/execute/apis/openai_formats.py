"""OpenAI's two APIs, which Azure speaks too: what they are called, how they are asked and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentv_ci.contracts.api_targets import AzureOpenAITarget, OpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.execute.apis.chat_completions import chat_body, read_chat
from agentv_ci.execute.apis.responses import read_responses, responses_body


class Body(Protocol):
    """Makes the body of a question; `limit_name` is what chat completions call the most tokens of an answer."""

    def __call__(
        self, target: OpenAITarget | AzureOpenAITarget, model: str, request: Request, *, limit_name: str
    ) -> JsonObject:
        """Return the body."""
        ...


class Read(Protocol):
    """Reads an answer."""

    def __call__(self, body: JsonObject) -> Response:
        """Return what it says; raises ProviderError for one that says nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One of the two APIs."""

    operation: str
    """The end of its path."""
    question: tuple[str, ...]
    """Keys of a body that hold what is asked."""
    takes_seed: bool
    body: Body
    read: Read


CHAT = Format("/chat/completions", ("messages",), takes_seed=True, body=chat_body, read=read_chat)
RESPONSES = Format("/responses", ("instructions", "input"), takes_seed=False, body=responses_body, read=read_responses)


def format_of(target: OpenAITarget | AzureOpenAITarget) -> Format:
    """Return the API that a resolved target speaks."""
    return RESPONSES if target.api_format == "responses" else CHAT
