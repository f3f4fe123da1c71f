"""The server itself: which protocol a path speaks."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers.http import Asked, Reply, answers, serve
from tests.servers.model_api.anthropic_messages import AnthropicMessages
from tests.servers.model_api.dialect import Dialect, Mistake
from tests.servers.model_api.gemini import Gemini
from tests.servers.model_api.openai_chat import OpenAIChat
from tests.servers.model_api.openai_responses import OpenAIResponses
from tests.servers.model_api.steps import Step, says

_QUESTIONS: Mapping[str, Dialect] = {
    "/v1/chat/completions": OpenAIChat(),
    "/v1/responses": OpenAIResponses(),
    "/openai/v1/chat/completions": OpenAIChat(azure=True),
    "/openai/v1/responses": OpenAIResponses(azure=True),
    "/openai/deployments/[^/]+/chat/completions": OpenAIChat(azure=True, by_deployment=True),
    "/v1/messages": AnthropicMessages(),
    "/(v1|v1beta)/models/[^/:]+:(generateContent|streamGenerateContent)": Gemini(),
}
_OTHERS: Mapping[str, Any] = {
    "/v1/messages/count_tokens": {"input_tokens": 42},
    "/(v1|v1beta)/models/[^/:]+:countTokens": {"totalTokens": 42},
    "/v1/models": {"object": "list", "data": [{"id": "mock-model", "object": "model"}]},
    "/": {},
}


@dataclass(slots=True)
class ModelApi:
    """A running server and what it was asked."""

    url: str = ""
    requests: list[Asked] = field(default_factory=list)
    """All of them, in order."""
    questions: list[Asked] = field(default_factory=list)
    """Those that a model has to answer, also when they were refused."""


@contextmanager
def model_api(*steps: Step, requires_key: str | None = None) -> Iterator[ModelApi]:
    """Serve until the block ends: one step per question that is in order, the last one for all that follow.

    Args:
        steps: what to do; without any, every question is answered with a text.
        requires_key: the key that every question has to carry, in the vendor's way.
    """
    api, lock, left = ModelApi(), threading.Lock(), [*(steps or (says(),))]

    def reply(asked: Asked) -> Reply:
        api.requests.append(asked)
        dialect: Dialect | None = _at(_QUESTIONS, asked)
        if dialect is None:
            other = _at(_OTHERS, asked)
            return answers(404 if other is None else 200, other)
        api.questions.append(asked)
        try:
            if requires_key is not None:
                dialect.check_key(asked, requires_key)
            dialect.check(asked)
        except Mistake as mistake:
            return dialect.error(mistake.trouble)
        with lock:
            step = left.pop(0) if len(left) > 1 else left[0]
        return step.reply(dialect, asked)

    with serve(reply) as api.url:
        yield api


def _at(routes: Mapping[str, Any], asked: Asked) -> Any:
    return next((found for path, found in routes.items() if re.fullmatch(path, asked.route)), None)
