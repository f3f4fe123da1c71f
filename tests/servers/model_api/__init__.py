"""A loopback server that speaks the protocols of the model vendors, plain and as server-sent events.

Served: OpenAI's chat completions and Responses, both as Azure serves them too, Anthropic's Messages and Gemini's
generateContent. What it answers is a list of steps, one per question; the last one repeats. A request that the vendor
would refuse is refused with the vendor's message, and takes no step.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tests.servers.http import Asked, Reply, answers, serve
from tests.servers.model_api.anthropic_messages import AnthropicMessages
from tests.servers.model_api.dialect import ANSWER, USAGE, Answer, Dialect, Mistake, Trouble, pieces
from tests.servers.model_api.gemini import Gemini
from tests.servers.model_api.openai import OpenAIChat, OpenAIResponses

__all__ = ["ANSWER", "USAGE", "Asked"]


@dataclass(frozen=True, slots=True)
class Step:
    """How one question is answered, in whichever protocol it was asked."""

    reply: Callable[[Dialect, Asked], Reply]


def answers_with(answer: Answer) -> Step:
    """Say anything that a model can say."""
    return Step(lambda dialect, asked: dialect.answer(asked, answer))


def says(text: str = ANSWER) -> Step:
    """Answer with a text."""
    return answers_with(Answer(text))


def calls_tool(command: str, text: str = ANSWER) -> Step:
    """Ask the agent to run a shell command.

    The answer is the text when no tool is declared, or when the request carries a tool's result already.
    """
    return answers_with(Answer(text, command=command))


def reasons(text: str = ANSWER, thought: str = "mock thought") -> Step:
    """Think aloud, then answer with a text."""
    return answers_with(Answer(text, thought=thought))


def refuses(text: str = "I can't help with that.") -> Step:
    """Refuse, as the model's own decision."""
    return answers_with(Answer(text, stop="refusal"))


def filters() -> Step:
    """Hold the answer back for its content, with status 200."""
    return answers_with(Answer(stop="filter"))


def filters_prompt() -> Step:
    """Refuse the prompt for its content: Azure with status 400, the others with what they have for it."""
    return Step(lambda dialect, asked: dialect.filtered_prompt(asked))


def truncates(text: str = ANSWER) -> Step:
    """Stop at the limit of tokens."""
    return answers_with(Answer(text, stop="length"))


def fails(status: int, message: str = "mock failure", *, retry_after_s: float | None = None) -> Step:
    """Answer with an error of the vendor."""
    trouble = Trouble(status, message, retry_after_s=retry_after_s)
    return Step(lambda dialect, _asked: dialect.error(trouble))


def rejects(parameter: str) -> Step:
    """Refuse a parameter as unsupported for as long as the request carries it; then answer."""

    def reply(dialect: Dialect, asked: Asked) -> Reply:
        trouble = dialect.unsupported(asked, parameter)
        return dialect.error(trouble) if trouble else dialect.answer(asked, Answer())

    return Step(reply)


def lacks_quota() -> Step:
    """Say that nothing is left to spend: status 429, but no retry will help."""
    return Step(lambda dialect, _asked: dialect.lacks_quota())


def failed_inside() -> Step:
    """Report an error behind status 200."""
    return Step(lambda dialect, asked: dialect.failed_inside(asked))


def garbage(status: int = 200) -> Step:
    """Answer with HTML, as a proxy would."""
    reply = Reply(status, b"<html><body>not the API</body></html>", {"content-type": "text/html"})
    return Step(lambda _dialect, _asked: reply)


def cuts(text: str = ANSWER) -> Step:
    """Drop the connection in the middle of the answer; a stream has begun with the text by then."""

    def reply(dialect: Dialect, asked: Asked) -> Reply:
        whole = dialect.answer(asked, Answer(text))
        if not whole.streamed:
            return replace(whole, cut_at=len(whole.body) // 2)
        begun = whole.body.find(pieces(text)[0].encode())
        return replace(whole, cut_at=whole.body.find(b"data:", begun) + 20)

    return Step(reply)


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
